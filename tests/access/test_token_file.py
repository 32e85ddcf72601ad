"""The token file: complete or as before, its owner's only, and clear about what is wrong."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from plait.access import token_file
from plait.access.token_file import MAX_TOKENS, TokenFile, TokenFileError, TokenRecord
from plait.access.tokens import written_hash

NOW = datetime.now(UTC).replace(microsecond=0)


def record(id: str, expires: datetime | None = None) -> TokenRecord:
    return TokenRecord(id, "notes", written_hash(id.encode()), NOW, expires)


def test_what_was_added_is_read_and_what_was_removed_is_not(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "home")
    assert file.read() == ()
    file.add(record("t-1"))
    file.add(record("t-2", NOW + timedelta(days=1)))
    assert file.remove("t-1") == record("t-1")
    assert file.remove("t-1") is None
    assert TokenFile(tmp_path / "home").read() == (record("t-2", NOW + timedelta(days=1)),)


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "home")
    file.add(record("t-1"))
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.directory.stat().st_mode) == 0o700


def test_tokens_added_at_the_same_time_are_all_there(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: TokenFile(tmp_path).add(record(f"t-{n}")), range(40)))
    assert {kept.id for kept in TokenFile(tmp_path).read()} == {f"t-{n}" for n in range(40)}
    assert {path.name for path in tmp_path.iterdir()} == {"tokens.json", ".tokens.lock"}


def test_expired_tokens_are_forgotten_when_one_is_added(tmp_path: Path) -> None:
    file = TokenFile(tmp_path)
    file.add(record("t-old", NOW - timedelta(seconds=1)))
    file.add(record("t-new"))
    assert [kept.id for kept in file.read()] == ["t-new"]


def test_a_full_file_takes_no_more_and_says_so(tmp_path: Path) -> None:
    file = TokenFile(tmp_path)
    contents = token_file.Contents(1, tuple(record(f"t-{n}") for n in range(MAX_TOKENS)))
    file.write(contents)
    with pytest.raises(TokenFileError, match=f"{MAX_TOKENS} is the limit"):
        file.add(record("t-more"))
    assert len(file.read()) == MAX_TOKENS


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"version": 2, "tokens": []}',
        '{"version": 1, "tokens": [{"id": "t-1"}]}',
        '{"version": 1, "tokens": [], "extra": 1}',
        '{"version": 1, "tokens": [{"id": "t", "app": "notes", "hash": "plait_secret",'
        ' "created": "2026-01-01T00:00:00Z"}]}',
        '{"version": 1, "tokens": [{"id": "t", "app": "../x", "hash": "sha256:'
        + "0" * 64
        + '", "created": "2026-01-01T00:00:00Z"}]}',
        "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
    ],
)
def test_a_damaged_file_is_told_and_neither_read_nor_overwritten(tmp_path: Path, text: str) -> None:
    file = TokenFile(tmp_path)
    file.path.write_text(text, encoding="latin-1")
    with pytest.raises(TokenFileError, match="is damaged"):
        file.read()
    with pytest.raises(TokenFileError, match="is damaged"):
        file.add(record("t-1"))
    assert file.path.read_text(encoding="latin-1") == text


def test_a_place_that_cannot_be_written_names_the_next_step(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with pytest.raises(TokenFileError, match="point PLAIT_HOME at a directory"):
        TokenFile(tmp_path / "home").add(record("t-1"))


def test_without_plait_home_tokens_are_kept_with_the_configuration(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("PLAIT_HOME", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert tmp_path in TokenFile().path.parents
