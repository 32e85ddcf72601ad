"""`plait token …`: the secret once, alone on stdout; what can go wrong says what to do."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from plait import cli, exits
from plait.access.token_file import TokenFile
from plait.access.tokens import written_hash


@pytest.fixture(autouse=True)
def declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration with one app; returns the home of its tokens."""
    for name in [name for name in os.environ if name.startswith("PLAIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PLAIT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plait.toml").write_text("[apps.notes]\n")
    return tmp_path / "home"


def test_a_new_token_is_alone_on_stdout_and_kept_as_its_hash(
    declared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["token", "create", "notes"]) == exits.EXIT_OK
    shown = capsys.readouterr()
    token = shown.out.removesuffix("\n")
    (kept,) = TokenFile(declared).read()
    assert re.fullmatch(r"plait_[\w-]{43}", token)
    assert (kept.app, kept.hash, kept.expires) == ("notes", written_hash(token.encode()), None)
    assert kept.id in shown.err
    assert token not in shown.err + TokenFile(declared).path.read_text()


def test_the_list_shows_everything_but_secrets(
    declared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main(["token", "create", "notes", "--expires", "30d", "--note", "my phone"])
    token = capsys.readouterr().out.strip()
    cli.main(["token", "create", "notes"])
    capsys.readouterr()
    assert cli.main(["token", "list"]) == exits.EXIT_OK
    listed = capsys.readouterr().out
    heading, first, second = listed.splitlines()
    assert heading.split() == ["ID", "APP", "CREATED", "EXPIRES", "NOTE"]
    assert re.fullmatch(r"t-\w{8}  notes  [\d:-]+ [\d:]+ UTC  [\d:-]+ [\d:]+ UTC  my phone", first)
    assert "never" in second
    assert token not in listed
    assert written_hash(token.encode()).removeprefix("sha256:")[:8] not in listed


def test_a_revoked_token_is_gone_and_an_unknown_one_is_told(
    declared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main(["token", "create", "notes"])
    (kept,) = TokenFile(declared).read()
    assert cli.main(["token", "revoke", kept.id]) == exits.EXIT_OK
    assert TokenFile(declared).read() == ()
    assert cli.main(["token", "revoke", kept.id]) == exits.EXIT_FAILED
    assert "token list` shows all there are" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["notse"], "Did you mean 'notes'?"),
        (["blog"], r"Declare it with \[apps.blog\]"),
        (["notes", "--expires", "soon"], "like 30d"),
        (["notes", "--note", "two\nlines"], "one line of at most 200"),
        (["notes", "--note", "x" * 201], "one line of at most 200"),
    ],
)
def test_what_cannot_be_made_says_why_and_makes_nothing(
    declared: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert cli.main(["token", "create", *arguments]) == exits.EXIT_USAGE
    shown = capsys.readouterr()
    assert re.search(says, shown.err)
    assert shown.out == ""
    assert not declared.exists()


def test_a_damaged_file_is_told_with_its_place(
    declared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    declared.mkdir()
    (declared / "tokens.json").write_text("{")
    assert cli.main(["token", "list"]) == exits.EXIT_USAGE
    assert "tokens.json is damaged" in capsys.readouterr().err


def test_without_tokens_the_list_says_how_to_make_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["token", "list"]) == exits.EXIT_OK
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "token create APP" in shown.err


def test_token_alone_shows_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["token"]) == exits.EXIT_USAGE
    shown = capsys.readouterr().err
    assert all(word in shown for word in ("create", "list", "revoke"))
