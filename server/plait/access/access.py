"""The door of a running server: who is let in, and until when.

Tokens come from the configuration, which does not change, and from the token file, which is
watched: what `plait token` does takes effect at once, on open connections too. A connection holds
the grant it was let in with, and is told when that counts no longer: revoked, or expired by the
wall clock. Does NOT know: HTTP, what a session does when it is told.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import structlog
from watchfiles import Change, awatch

from plait.access.keyring import Grant, Keyring
from plait.access.tickets import Tickets
from plait.access.token_file import FILE_NAME, TokenFile, TokenFileError, TokenRecord
from plait.access.tokens import digest, parse_hash
from plait.config import Config
from plait.config_checks import ConfigError

# A timer runs on a clock that may stand still while the machine sleeps, and the wall clock may be
# set: a token's end is looked at again at least this often.
MAX_TIMER_SECONDS: Final = 3600.0
SETTLE_MS: Final = 200  # longest that changes in quick succession are taken for one
LOOK_AGAIN_SECONDS: Final = 1.0  # where the system cannot tell of changes

Watch = Callable[..., AsyncIterator[object]]
"""`watchfiles.awatch`."""

log = structlog.get_logger("plait.access")


@dataclass(slots=True, eq=False)
class _Connection:
    """One that was let in, and how to tell it that it no longer is."""

    grant: Grant
    revoke: Callable[[], None]
    timer: asyncio.TimerHandle | None = field(default=None, repr=False)

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class Access:
    """`declared`: the names of apps; tokens of others open nothing. Single event loop."""

    def __init__(
        self,
        configured: Sequence[Grant],
        declared: frozenset[str],
        file: TokenFile,
        *,
        wall_clock: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
        watch: Watch = awatch,
    ) -> None:
        self._configured = configured
        self._declared = declared
        self._file = file
        self._wall_clock = wall_clock
        self._clock = clock
        self._watch = watch
        self._tickets = Tickets()
        self._connections: set[_Connection] = set()
        self._records = file.read() if declared else ()
        self._keyring = self._keyring_of(self._records)

    @classmethod
    def of(cls, config: Config, file: TokenFile | None = None) -> Access:
        """Raises TokenFileError where tokens are kept in a file that cannot be read, ConfigError
        where it is not clear whose a token is."""
        grants = [Grant(digest(token.encode()), None) for token in config.tokens]
        for name, app in config.apps.items():
            grants += [Grant(parse_hash(text), name) for text in app.token_hashes]
        _check_owners(grants)
        return cls(grants, frozenset(config.apps), file or TokenFile())

    @property
    def token_required(self) -> bool:
        return self._keyring.required

    # --- letting in ----------------------------------------------------------------------------

    def find(self, token: bytes | None) -> Grant | None:
        """Whose token it is; None for a wrong, missing, revoked or expired one."""
        return self._keyring.find(token, self._wall_clock())

    def admit(self, shown: bytes | None) -> Grant | None:
        """Who connects, by token or by ticket, which is used up by it."""
        grant = self.find(shown)
        if grant is None and shown is not None:
            issued_for = self._tickets.redeem(shown, self._clock())
            if issued_for is not None:
                grant = self._keyring.renew(issued_for, self._wall_clock())
        return grant

    def issue_ticket(self, grant: Grant) -> str:
        """Raises TooManyTickets."""
        return self._tickets.issue(grant, self._clock())

    @contextmanager
    def holding(self, grant: Grant, revoke: Callable[[], None]) -> Iterator[None]:
        """While the block runs, `revoke` is called once when the grant counts no longer; at once
        where that came between."""
        connection = _Connection(grant, revoke)
        self._connections.add(connection)
        self._check(connection)
        try:
            yield
        finally:
            self._connections.discard(connection)
            connection.stop_timer()

    # --- taking back ---------------------------------------------------------------------------

    async def watch(self) -> None:
        """Follow the token file until cancelled. Without declared apps it says nothing."""
        if not self._declared:
            return
        changed = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._notice(changed))
            while True:
                await changed.wait()
                changed.clear()
                await self.reload()

    async def reload(self) -> None:
        """Read the file again and close what it no longer lets in. A file that cannot be read
        changes nothing: neither locks everybody out nor lets anybody back in."""
        try:
            records = await asyncio.to_thread(self._file.read)
        except TokenFileError as error:
            log.warning("tokens.unreadable", why=str(error), still="the tokens as they were before")
            return
        if records == self._records:
            return
        self._records = records
        self._keyring = self._keyring_of(records)
        log.info("tokens.changed", tokens=len(records))
        for connection in list(self._connections):
            self._check(connection)

    async def _notice(self, changed: asyncio.Event) -> None:
        directory = self._file.directory
        try:
            await asyncio.to_thread(self._file.make_directory)
            # In the next turn, when the watch has begun: what came before it is seen then.
            asyncio.get_running_loop().call_soon(changed.set)
            async for _ in self._watch(
                directory, watch_filter=_is_token_file, debounce=SETTLE_MS, recursive=False
            ):
                changed.set()
        except (OSError, RuntimeError) as error:  # the latter is what the library raises
            # No watch to spare: that must neither end the server nor keep in who was revoked.
            log.warning("tokens.unwatched", why=str(error), read_every_seconds=LOOK_AGAIN_SECONDS)
            while True:
                await asyncio.sleep(LOOK_AGAIN_SECONDS)
                changed.set()

    def _keyring_of(self, records: Sequence[TokenRecord]) -> Keyring:
        strangers = sorted({record.app for record in records} - self._declared)
        if strangers:
            log.warning("tokens.of_undeclared_apps", apps=strangers)
        grants = [_grant(record) for record in records if record.app in self._declared]
        grants = [*self._configured, *grants]
        if self._declared and not grants:
            log.warning("tokens.none", so="nobody can connect", next="plait token create APP")
        return Keyring(grants, required=bool(self._configured or self._declared))

    def _check(self, connection: _Connection) -> None:
        """Take it back, or look again when it is due."""
        connection.stop_timer()
        now = self._wall_clock()
        grant = self._keyring.renew(connection.grant, now)
        if grant is None:
            self._connections.discard(connection)
            log.info("connection.revoked", app=connection.grant.app)
            connection.revoke()
        elif grant.expires is not None:
            wait = min(grant.expires - now, MAX_TIMER_SECONDS)
            loop = asyncio.get_running_loop()
            connection.timer = loop.call_later(wait, self._check, connection)


def _check_owners(grants: Sequence[Grant]) -> None:
    owners: dict[bytes, str | None] = {}
    for grant in grants:
        other = owners.setdefault(grant.digest, grant.app)
        if other != grant.app:
            whose = f"[apps.{other}]" if other else "the setting tokens"
            raise ConfigError(
                f"[apps.{grant.app}] and {whose} share a token, so it is not clear what it may do."
                f" Give each its own: `plait token create {grant.app}`.",
                key="apps",
            )


def _grant(record: TokenRecord) -> Grant:
    expires = None if record.expires is None else record.expires.timestamp()
    return Grant(parse_hash(record.hash), record.app, expires)


def _is_token_file(change: Change, path: str) -> bool:
    return path.endswith("/" + FILE_NAME)
