"""The door: who is let in, and that what no longer counts is told to whom it let in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from plait.access.access import MAX_TIMER_SECONDS, Access
from plait.access.keyring import ANYBODY, Grant
from plait.access.tickets import TICKET_SECONDS
from plait.access.token_file import TokenFile, TokenFileError, TokenRecord
from plait.access.tokens import digest, written_hash
from plait.config import Config
from plait.config_checks import ConfigError
from plait.config_tables import AppTable
from tests.virtual_time import virtually

NOTES = frozenset({"notes"})
SECONDS = 10.0  # far longer than a change of a file takes to be noticed


def record(id: str, app: str = "notes", expires: datetime | None = None) -> TokenRecord:
    """The token is the id."""
    return TokenRecord(id, app, written_hash(id.encode()), datetime.now(UTC), expires)


@pytest.fixture
def file(tmp_path: Path) -> TokenFile:
    """With the tokens t-1 and t-2 of notes."""
    file = TokenFile(tmp_path / "home")
    file.add(record("t-1"))
    file.add(record("t-2"))
    return file


@pytest.fixture
def access(file: TokenFile) -> Access:
    return Access([], NOTES, file)


def door(expires: float | None = None) -> Access:
    """One configured token, `t`, on the running loop's clock."""
    now = asyncio.get_running_loop().time
    grant = Grant(digest(b"t"), "notes", expires)
    return Access([grant], frozenset(), TokenFile(Path()), wall_clock=now, clock=now)


def test_tokens_of_the_settings_may_everything_and_those_of_apps_are_theirs(tmp_path: Path) -> None:
    app = AppTable(token_hashes=(written_hash(b"of notes"),))
    access = Access.of(Config(tokens=("of all",), apps={"notes": app}), TokenFile(tmp_path))
    of_all, of_notes = access.find(b"of all"), access.find(b"of notes")
    assert of_all is not None
    assert of_all.app is None
    assert of_notes is not None
    assert of_notes.app == "notes"
    assert access.find(b"of nobody") is None


@pytest.mark.parametrize("tokens", [(), ("shared",)])
def test_a_token_of_two_owners_stops_the_start(tmp_path: Path, tokens: tuple[str, ...]) -> None:
    app = AppTable(token_hashes=(written_hash(b"shared"),))
    config = Config(tokens=tokens, apps={"notes": app} if tokens else {"notes": app, "other": app})
    with pytest.raises(ConfigError, match="share a token"):
        Access.of(config, TokenFile(tmp_path))


def test_declared_apps_alone_ask_for_a_token_and_nothing_declared_asks_for_none(
    tmp_path: Path,
) -> None:
    assert Access.of(Config(apps={"notes": AppTable()}), TokenFile(tmp_path)).token_required
    assert Access.of(Config(), TokenFile(tmp_path)).find(None) is ANYBODY


def test_tokens_of_apps_that_are_not_declared_open_nothing(tmp_path: Path) -> None:
    file = TokenFile(tmp_path)
    file.add(record("t-1", app="gone"))
    access = Access([], NOTES, file)
    assert access.find(b"t-1") is None


def test_a_damaged_file_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "tokens.json").write_text("{")
    with pytest.raises(TokenFileError):
        Access([], NOTES, TokenFile(tmp_path))


@virtually
async def test_a_ticket_lets_one_connection_in_and_is_no_token() -> None:
    access = door()
    grant = access.find(b"t")
    assert grant is not None
    ticket = access.issue_ticket(grant).encode()
    assert access.find(ticket) is None
    assert access.admit(ticket) is grant
    assert access.admit(ticket) is None


@virtually
async def test_a_ticket_dies_with_its_token() -> None:
    access = door(expires=5.0)
    grant = access.find(b"t")
    assert grant is not None
    ticket = access.issue_ticket(grant).encode()
    await asyncio.sleep(TICKET_SECONDS / 2)
    assert access.admit(ticket) is None


@pytest.mark.parametrize("expires", [5.0, 3 * MAX_TIMER_SECONDS])
@virtually
async def test_a_connection_is_told_once_when_its_token_expires(expires: float) -> None:
    access, loop = door(expires), asyncio.get_running_loop()
    grant = access.find(b"t")
    assert grant is not None
    told: list[float] = []
    with access.holding(grant, lambda: told.append(loop.time())):
        await asyncio.sleep(4 * MAX_TIMER_SECONDS)
    assert told == [expires]


@virtually
async def test_a_connection_that_has_left_is_told_nothing() -> None:
    access = door(expires=5.0)
    grant = access.find(b"t")
    assert grant is not None
    with access.holding(grant, lambda: pytest.fail("it has left")):
        await asyncio.sleep(1)
    await asyncio.sleep(10)


@virtually
async def test_a_clock_set_forward_ends_a_token_within_the_hour() -> None:
    loop, ahead = asyncio.get_running_loop(), [0.0]
    grant = Grant(digest(b"t"), None, 10 * MAX_TIMER_SECONDS)
    access = Access(
        [grant], frozenset(), TokenFile(Path()), wall_clock=lambda: loop.time() + ahead[0]
    )
    told: list[float] = []
    with access.holding(grant, lambda: told.append(loop.time())):
        ahead[0] = 10 * MAX_TIMER_SECONDS
        await asyncio.sleep(2 * MAX_TIMER_SECONDS)
    assert told == [MAX_TIMER_SECONDS]


async def test_what_was_revoked_while_its_connection_was_made_is_told_at_once(
    file: TokenFile, access: Access
) -> None:
    grant, told = access.admit(b"t-1"), []
    assert grant is not None
    await asyncio.to_thread(file.remove, "t-1")
    await access.reload()
    with access.holding(grant, lambda: told.append("revoked")):
        assert told == ["revoked"]


async def test_a_damaged_file_changes_nothing_until_it_is_mended(
    file: TokenFile, access: Access
) -> None:
    grant, told = access.admit(b"t-1"), []
    assert grant is not None
    with access.holding(grant, lambda: told.append("revoked")):
        await asyncio.to_thread(file.path.write_text, "{")
        await access.reload()
        assert access.find(b"t-1") is not None
        assert told == []
        await asyncio.to_thread(file.path.unlink)
        await access.reload()
        assert told == ["revoked"]


async def test_a_token_given_other_times_keeps_its_connection(
    file: TokenFile, access: Access
) -> None:
    grant, later = access.admit(b"t-1"), datetime.now(UTC) + timedelta(hours=1)
    assert grant is not None
    with access.holding(grant, lambda: pytest.fail("it counts still")):
        await asyncio.to_thread(file.remove, "t-1")
        await asyncio.to_thread(file.add, record("t-1", expires=later))
        await access.reload()
        assert access.find(b"t-1") == Grant(grant.digest, "notes", later.timestamp())


@asynccontextmanager
async def watching(access: Access) -> AsyncIterator[None]:
    task = asyncio.create_task(access.watch())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_revoked_token_is_noticed_by_itself(file: TokenFile, access: Access) -> None:
    revoked = asyncio.Event()
    grant, other = access.admit(b"t-1"), access.admit(b"t-2")
    assert grant is not None
    assert other is not None
    with (
        access.holding(grant, revoked.set),
        access.holding(other, lambda: pytest.fail("not its token")),
    ):
        async with watching(access):
            await asyncio.to_thread(file.remove, "t-1")
            await asyncio.wait_for(revoked.wait(), SECONDS)
    assert access.find(b"t-1") is None


async def test_a_revocation_before_the_watch_begins_is_noticed_too(
    file: TokenFile, access: Access
) -> None:
    revoked = asyncio.Event()
    grant = access.admit(b"t-1")
    assert grant is not None
    await asyncio.to_thread(file.remove, "t-1")
    with access.holding(grant, revoked.set):
        async with watching(access):
            await asyncio.wait_for(revoked.wait(), SECONDS)


async def test_without_a_watch_to_spare_a_revoked_token_is_noticed_all_the_same(
    file: TokenFile,
) -> None:
    def watch(directory: Path, **how: Any) -> AsyncIterator[object]:
        raise RuntimeError("Too many open files (os error 24)")

    access = await asyncio.to_thread(Access, [], NOTES, file, watch=watch)
    revoked = asyncio.Event()
    grant = access.admit(b"t-1")
    assert grant is not None
    with access.holding(grant, revoked.set):
        async with watching(access):
            await asyncio.to_thread(file.remove, "t-1")
            await asyncio.wait_for(revoked.wait(), SECONDS)
