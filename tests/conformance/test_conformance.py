"""`plait conformance`: its cases, the report, the command, and the document they follow."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from plait.cli import main
from plait.conformance.cases import Case, chosen
from plait.conformance.error_table import ERRORS
from plait.conformance.fields import FIELDS
from plait.conformance.report import Fault, Outcome, lines_of, plan_of, summary_of
from plait.conformance.target import Target, TargetError
from tests.conformance.small_server import small_server

PROTOCOL = (Path(__file__).parents[2] / "PROTOCOL.md").read_text(encoding="utf-8")


def test_the_list_of_errors_is_that_of_the_document() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| (client|capacity|model|internal) \| (yes|no) \|", PROTOCOL, re.M
    )

    assert {code: (kind, retryable == "yes") for code, kind, retryable in rows} == ERRORS


def test_the_types_of_messages_are_those_of_the_document() -> None:
    table = PROTOCOL.partition("### Server → client")[2].partition("### Guarantees")[0]

    assert set(re.findall(r"^\| `(\w+)` \|", table, re.M)) == set(FIELDS)


def test_every_case_has_a_name_of_its_own_and_a_section() -> None:
    cases = chosen(slow=True)

    assert len({case.name for case in cases}) == len(cases)
    assert all(re.match(r"§\d|R\d|S\d", case.section) for case in cases)


def test_every_race_a_client_can_provoke_alone_has_a_case() -> None:
    sections = {case.section for case in chosen(slow=True)}

    # R5 loads a model, R12 kills a process, R13 stops the server: not a client's to do.
    wanted = {f"R{number}" for number in range(1, 16)} - {"R12", "R13"}
    assert wanted <= sections


@pytest.mark.parametrize(
    ("pattern", "found"),
    [("R10", {"R10"}), ("deadlines.*", {"§2", "§2 G9", "R6"}), ("r1*", None), ("nothing", set())],
)
def test_cases_are_chosen_by_parts_and_patterns(pattern: str, found: set[str] | None) -> None:
    sections = {case.section for case in chosen([pattern])}

    assert sections == found or (found is None and {"R1", "R10", "R15"} <= sections)


def test_a_broken_case_says_what_was_expected_where_it_is_written_and_the_last_frames() -> None:
    fault = Fault("§5", "4 items at most", "5")
    outcome = Outcome("flow.x", "§5", "about", "broken", 1.5, ["a note"], "", [fault], ["1.0 < x"])

    head, *rest = lines_of(outcome)

    assert head.startswith("broken")
    assert "§5" in head
    assert "1.50 s" in head
    assert rest[0].split() == ["expected", "4", "items", "at", "most", "(PROTOCOL.md", "§5)"]
    assert rest[1].split() == ["seen", "5"]
    assert rest[-1].endswith("1.0 < x")


def test_a_summary_counts_the_verdicts() -> None:
    verdicts = [Outcome("a", "§1", "", "holds", 1), Outcome("b", "§1", "", "skipped", 0.25)]

    assert summary_of(verdicts) == "2 cases: 1 holds, 0 broken, 1 skipped, in 1.2 s"


def test_one_case_is_no_plural_and_the_plan_says_how_long_and_what_it_does() -> None:
    assert summary_of([Outcome("a", "§1", "", "holds", 1)]).startswith("1 case: 1 holds, ")
    assert plan_of(164, 0).startswith("164 cases, about 41 s to 8 min")
    assert "serves nobody else" in plan_of(1, 0)


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("http://127.0.0.1:1", "ws://127.0.0.1:1/v1/ws"),
        ("https://host/", "wss://host/v1/ws"),
        ("ws://host:2/deep/v1/ws", "ws://host:2/deep/v1/ws"),
        ("127.0.0.1:3", "ws://127.0.0.1:3/v1/ws"),
    ],
)
def test_a_server_is_named_by_any_of_its_addresses(given: str, url: str) -> None:
    assert Target.of(given).url == url


@pytest.mark.parametrize(
    "url", ["ftp://x", "http://", "http://u:secret@x", "http://x?token=secret"]
)
def test_an_address_with_a_secret_or_none_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(TargetError) as refused:
        Target.of(url)
    assert "secret@" not in str(refused.value)


@pytest.fixture(scope="module")
def small() -> Iterator[str]:
    """A small server in a thread of its own: the command runs its own loop."""
    started, ended = threading.Event(), threading.Event()
    urls: list[str] = []

    async def serve() -> None:
        async with small_server() as url:
            urls.append(url)
            started.set()
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert started.wait(30)
    yield urls[0]
    ended.set()
    thread.join(30)


def test_the_command_reports_and_exits_0_when_nothing_is_broken(
    small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "report.json"

    code = main(["conformance", small, "--only", "handshake.pings", "--json", str(file)])

    assert code == 0
    assert "1 holds, 0 broken" in capsys.readouterr().out
    assert json.loads(file.read_text())["cases"][0]["verdict"] == "holds"


def test_the_command_exits_1_when_something_is(
    small: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["conformance", small, "--only", "faults.unreadable", "--timeout", "0.5"])

    assert code == 1
    assert "PROTOCOL.md §6" in capsys.readouterr().out


def test_an_interrupted_run_says_what_it_has_found_so_far(
    small: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Case] = []

    async def interrupted(case: Case, *rest: object) -> Outcome:
        if asked:
            raise KeyboardInterrupt
        asked.append(case)
        return Outcome(case.name, case.section, case.about, "broken", 1.0)

    monkeypatch.setattr("plait.conformance.running.run_case", interrupted)

    assert main(["conformance", small, "--only", "cancelling"]) == 130
    *_, interruption, counts, broken = capsys.readouterr().out.splitlines()
    assert interruption.startswith("Interrupted: ")
    assert counts.startswith("1 case: 0 hold, 1 broken")
    assert broken == f"broken: {asked[0].name}"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.0 404 File not found", "answered HTTP 404, so it is no plait.v1 server"),
        (b"HTTP/1.1 404 Not Found", "answered HTTP 404, so it is no plait.v1 server"),
        (b"HTTP/1.1 401 Unauthorized", "Give --token, or set PLAIT_TOKEN"),
        (b"HTTP/1.1 403 Forbidden", "Give an --origin"),
        (b"SSH-2.0-OpenSSH_9.6", "is not HTTP"),
    ],
)
async def test_a_server_that_cannot_be_asked_is_told_by_what_it_answered(
    answer: bytes, said: str
) -> None:
    async def answering(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer + b"\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answering, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(TargetError, match=re.escape(said)):
            await Target.of(f"http://127.0.0.1:{port}").reach()


def test_without_a_server_or_a_case_the_command_says_what_to_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["conformance"]) == 2
    assert main(["conformance", "http://x", "--only", "no such case"]) == 2
    assert main(["conformance", "http://127.0.0.1:1", "--only", "R1"]) == 1
    said = capsys.readouterr().err
    assert "Check the address" in said
    assert "`plait serve`" in said


def test_a_report_that_cannot_be_written_is_said_after_the_verdicts(
    small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "no directory" / "report.json"

    code = main(["conformance", small, "--only", "handshake.pings", "--json", str(file)])

    said = capsys.readouterr()
    assert code == 1
    assert "1 holds, 0 broken" in said.out
    assert f"{file} cannot be written" in said.err


@pytest.mark.parametrize("seconds", ["0", "-1", "nan"])
def test_a_wait_that_is_none_is_wrong_usage(seconds: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["conformance", "http://x", f"--timeout={seconds}"])
    assert ended.value.code == 2


def test_the_list_of_cases_needs_no_server(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", "--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(chosen(slow=True))
