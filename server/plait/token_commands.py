"""`plait token create|list|revoke`: tokens of the declared apps, in the token file.

A token is shown once, alone on stdout, so that a script can take it; what there is to know about it
goes to stderr. Running servers that use the same PLAIT_HOME see a change at once.
Does NOT know: servers, what an app may do.
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime, timedelta
from typing import Final

from plait.access.token_file import MAX_NOTE_CHARACTERS, TokenFile, TokenRecord
from plait.access.tokens import new_id, new_token, parse_lifetime, written_hash
from plait.config_checks import ConfigError, nearest
from plait.config_sources import load_config
from plait.exits import EXIT_FAILED, EXIT_OK
from plait.installation import program_name
from plait.terminal import fail, say

HEADINGS: Final = ("ID", "APP", "CREATED", "EXPIRES", "NOTE")
MINUTE: Final = "%Y-%m-%d %H:%M"


def create(parsed: argparse.Namespace) -> int:
    """Raises ConfigError for an app that is not declared, or an odd lifetime or note."""
    _check_declared(parsed)
    if len(parsed.note) > MAX_NOTE_CHARACTERS or not parsed.note.isprintable():
        raise ConfigError(
            f"--note: one line of at most {MAX_NOTE_CHARACTERS} characters, not {len(parsed.note)}."
        )
    now = datetime.now(UTC).replace(microsecond=0)
    expires = None if parsed.expires is None else now + _lifetime(parsed.expires)
    token = new_token()
    hash = written_hash(token.encode())
    record = TokenRecord(new_id(), parsed.app, hash, now, expires, parsed.note)
    file = TokenFile()
    file.add(record)
    until = "until it is revoked" if expires is None else f"until {_moment(expires)}"
    sys.stderr.write(
        f"Token {record.id} of {record.app}, good {until}. It is shown this once; {file.path} keeps"
        " its hash.\n"
    )
    say(token)
    return EXIT_OK


def list_tokens(parsed: argparse.Namespace) -> int:
    records = TokenFile().read()
    if not records:
        sys.stderr.write(f"No tokens yet. `{program_name()} token create APP` makes one.\n")
        return EXIT_OK
    rows = [HEADINGS, *(_row(record) for record in records)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        say("  ".join(cells).rstrip())
    return EXIT_OK


def revoke(parsed: argparse.Namespace) -> int:
    file = TokenFile()
    removed = file.remove(parsed.id)
    if removed is None:
        hint = nearest(parsed.id, [record.id for record in file.read()])
        step = f" `{program_name()} token list` shows all there are."
        return fail(f"there is no token {parsed.id!r}.{hint or step}", EXIT_FAILED)
    say(f"{removed.id} of {removed.app} is revoked; its connections are closed.")
    return EXIT_OK


def _lifetime(text: str) -> timedelta:
    try:
        return parse_lifetime(text)
    except ValueError as error:
        raise ConfigError(f"--expires {text!r}: {error}.") from None


def _check_declared(parsed: argparse.Namespace) -> None:
    apps = load_config(parsed.config).apps
    if parsed.app not in apps:
        hint = nearest(parsed.app, apps) or f" Declare it with [apps.{parsed.app}] in plait.toml."
        raise ConfigError(f"there is no app {parsed.app!r} in the configuration.{hint}")


def _row(record: TokenRecord) -> tuple[str, ...]:
    expires = "never" if record.expires is None else _moment(record.expires)
    if record.expired(datetime.now(UTC)):
        expires += " (expired)"
    return record.id, record.app, _moment(record.created), expires, record.note


def _moment(moment: datetime) -> str:
    """In UTC, to the minute."""
    return f"{moment.astimezone(UTC):{MINUTE}} UTC"
