"""`$PLAIT_HOME/tokens.json`: the tokens made by `plait token create`, as hashes only.

Written by the command line, read by running servers, which watch it. Invariants: a reader finds
the old file or the new one, never a part; two writers wait for each other; only its owner may read
it. Does NOT know: which apps there are, how a token is compared.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta
from platformdirs import user_config_path

from plait.config_checks import ConfigError
from plait.config_tables import APP_NAME, TOKEN_HASH

FILE_NAME: Final = "tokens.json"
LOCK_NAME: Final = ".tokens.lock"
MAX_TOKENS: Final = 1000  # each connection's token is compared with all of them
MAX_FILE_BYTES: Final = 1 << 20
MAX_NOTE_CHARACTERS: Final = 200
VERSION: Final = 1

Moment = Annotated[datetime, Meta(tz=True)]


class TokenRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One token. `hash` as in `plait.toml`; without `expires` it lives until it is revoked."""

    id: Annotated[str, Meta(min_length=1, max_length=32)]
    app: Annotated[str, Meta(pattern=f"^{APP_NAME.pattern}$")]
    hash: Annotated[str, Meta(pattern=f"^{TOKEN_HASH.pattern}$")]
    created: Moment
    expires: Moment | None = None
    note: Annotated[str, Meta(max_length=MAX_NOTE_CHARACTERS)] = ""

    def expired(self, now: datetime) -> bool:
        return self.expires is not None and self.expires <= now


class Contents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of the file."""

    version: Annotated[int, Meta(ge=VERSION, le=VERSION)]
    tokens: Annotated[tuple[TokenRecord, ...], Meta(max_length=MAX_TOKENS)]


class TokenFileError(ConfigError):
    """The file is there and cannot be read, or cannot be written."""


def default_directory() -> Path:
    """Beside the models where PLAIT_HOME says so; else with the user's configuration: tokens are
    no cache."""
    home = os.environ.get("PLAIT_HOME")
    return Path(home).expanduser() if home else user_config_path("plait")


class TokenFile:
    """All operations name what failed and what to do: TokenFileError."""

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = directory or default_directory()
        self.path = self.directory / FILE_NAME

    def read(self) -> tuple[TokenRecord, ...]:
        """No file is no tokens."""
        try:
            with self.path.open("rb") as file:
                raw = file.read(MAX_FILE_BYTES + 1)
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise TokenFileError(_unusable(self.path, "read", error)) from error
        try:
            return msgspec.json.decode(raw, type=Contents).tokens
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise TokenFileError(
                f"{self.path} is damaged: {error}. Restore it, or delete it, which revokes all its"
                " tokens."
            ) from None

    def make_directory(self) -> None:
        """For its owner only, where it is new. Raises OSError."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def add(self, record: TokenRecord) -> None:
        """Expired tokens are forgotten on the way. Raises TokenFileError when it is full."""
        with self._changing() as tokens:
            now = datetime.now(UTC)
            kept = [token for token in tokens if not token.expired(now)]
            if len(kept) >= MAX_TOKENS:
                raise TokenFileError(
                    f"{self.path} holds {len(kept)} tokens and {MAX_TOKENS} is the limit. Revoke"
                    " some with `plait token revoke`."
                )
            tokens[:] = [*kept, record]

    def remove(self, id: str) -> TokenRecord | None:
        """The token that was removed; None when there is none of that id."""
        with self._changing() as tokens:
            removed = next((token for token in tokens if token.id == id), None)
            if removed is not None:
                tokens.remove(removed)
        return removed

    @contextmanager
    def _changing(self) -> Iterator[list[TokenRecord]]:
        """Its tokens, to change in place; written when the block ends well."""
        try:
            self.make_directory()
            with (self.directory / LOCK_NAME).open("ab") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                before = self.read()
                tokens = list(before)
                yield tokens
                if tuple(tokens) != before:
                    self.write(Contents(VERSION, tuple(tokens)))
        except OSError as error:
            raise TokenFileError(_unusable(self.path, "written", error)) from error

    def write(self, contents: Contents) -> None:
        """Replace it as a whole. Raises OSError."""
        encoded = msgspec.json.format(msgspec.json.encode(contents))
        # mkstemp makes files of mode 0600, and in this directory a rename is atomic.
        descriptor, name = tempfile.mkstemp(dir=self.directory, prefix=".tokens-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(encoded + b"\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, self.path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def _unusable(path: Path, what: str, error: OSError) -> str:
    return (
        f"{path} cannot be {what}: {error.strerror}. Run this as the user that runs the server, or"
        " point PLAIT_HOME at a directory that this user may write."
    )
