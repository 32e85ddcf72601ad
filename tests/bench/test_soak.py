"""The soak's books, trends and verdicts; and a short run against a server by script."""

from __future__ import annotations

import argparse
import json
import mmap
import random
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from plait.bench import cli
from plait.bench.serving import BenchError
from plait.bench.soak import report
from plait.bench.soak.asking import METHODS, Asking, bad_message
from plait.bench.soak.books import Book, Broken, Life
from plait.bench.soak.cli import engines_of
from plait.bench.soak.files import markdown, panels, record
from plait.bench.soak.running import Outcome, Plan, Tally
from plait.bench.soak.sampling import HELD, KEPT, TOTALS, Held, Names, Sample, held_by
from plait.bench.soak.trends import second_half, slope_of
from plait.wire.connection import Connection
from plait.wire.events import OpenReceived, OpenRejected
from tests.wire.support import NOW, limits

MIB = 2**20
ALL = Asking(dict.fromkeys(METHODS, True))
TIMES = [float(second) for second in range(600)]


def told(type: str, **fields: Any) -> str:
    return json.dumps({"type": type, "id": 1, **fields})


def book(*frames: str) -> Book:
    kept = Book({1: Life("chat")})
    for frame in frames:
        kept.take(frame)
    return kept


ACCEPTED, ITEM = told("accepted"), told("item", seq=1, data={})
DONE, CANCELLED = told("done", seq=1), told("cancelled", seq=0, released=False)


# --- books -------------------------------------------------------------------------------------


def test_a_stream_with_items_and_one_terminal_is_in_order() -> None:
    kept = book(ACCEPTED, ITEM, DONE)

    assert (kept.over, kept.lives[1].end, kept.lives[1].seq) == (True, "done", 1)


def test_a_late_release_and_the_code_of_an_error_are_kept() -> None:
    failed = told("error", seq=0, error={"code": "queue_timeout"})

    assert book(ACCEPTED, CANCELLED).lives[1].released is False
    assert book(ACCEPTED, failed).lives[1].code == "queue_timeout"


@pytest.mark.parametrize(
    ("frames", "what"),
    [
        ([ACCEPTED, ITEM, DONE, ITEM], "item after the end"),
        ([ACCEPTED, ITEM, DONE, DONE], "done after the end"),
        ([ACCEPTED, ITEM, ITEM], "item 1"),
        ([ACCEPTED, DONE], "a terminal of seq 1"),
        ([ITEM], "an item before accepted"),
        ([ACCEPTED, told("rejected", error={"code": "internal"})], "rejected after accepted"),
        ([told("accepted", id=7)], "stream 7, which was never opened"),
    ],
)
def test_what_the_protocol_does_not_allow_is_broken(frames: list[str], what: str) -> None:
    with pytest.raises(Broken, match=what):
        book(*frames)


# --- what is asked -----------------------------------------------------------------------------


@pytest.mark.parametrize("scripted", [True, False])
def test_good_openings_of_every_method_are_taken_by_the_codec(scripted: bool) -> None:
    rng, asking = random.Random(1), Asking(dict.fromkeys(METHODS, scripted))
    connection, methods = Connection(limits(max_streams=200)), set()

    for id in range(1, 100):
        method, asked = asking.opening(id, 4, rng)
        [event] = connection.receive_text(asked.frames[0], NOW)
        assert isinstance(event, OpenReceived)
        methods.add(method)

    assert methods == set(METHODS)


def test_bad_openings_are_rejected_or_name_a_model_nobody_has() -> None:
    rng, connection = random.Random(1), Connection(limits(max_streams=200))

    for id in range(1, 100):
        _, asked = ALL.bad_opening(id, rng)
        [event] = connection.receive_text(asked.frames[0], NOW)
        unknown = isinstance(event, OpenReceived) and event.params.model == "nobody's"
        assert isinstance(event, OpenRejected) or unknown


def test_the_same_seed_asks_the_same() -> None:
    def asked(seed: int) -> list[Any]:
        rng = random.Random(seed)
        return [ALL.opening(id, 4, rng)[1].frames for id in range(20)] + [bad_message(1, rng)]

    assert asked(1) == asked(1) != asked(2)


# --- trends ------------------------------------------------------------------------------------


def test_a_steady_growth_is_found_in_spite_of_outliers() -> None:
    values = [90 + time / 100 + (40 if time % 50 == 0 else 0) for time in TIMES]

    slope = slope_of(TIMES, values)

    assert slope is not None
    assert slope.value == pytest.approx(0.01, rel=0.05)
    assert slope.below(0.02) is True
    assert slope.below(0.005) is False


def test_what_only_goes_up_and_down_has_no_slope_for_sure() -> None:
    rng = random.Random(1)

    slope = slope_of(TIMES, [300 + rng.gauss(0, 5) for _ in TIMES])

    assert slope is not None
    assert slope.low < 0 < slope.high
    assert slope.below(slope.high / 2) is None


def test_too_few_samples_have_no_slope() -> None:
    assert slope_of(TIMES[:5], TIMES[:5]) is None
    assert second_half([]) == 0
    assert second_half([0.0, 1.0, 2.0, 10.0]) == 3


# --- verdicts ----------------------------------------------------------------------------------


def sample(
    at: float = 0.0,
    rss_mib: float = 90.0,
    mapped_mib: float = 0.0,
    fds: int = 15,
    **gauges: float,
) -> Sample:
    values = dict.fromkeys([*HELD, *KEPT, *TOTALS], 0.0)
    held = Held(round(rss_mib * MIB), round(mapped_mib * MIB), fds, 7)
    return Sample(at, values | gauges, {"gateway": held, "w (forked)": held}, 5.0)


def outcome(
    after: Sample | None = None, mib_per_hour: float = 0.0, mapped: float = 0.0, **tally: Any
) -> Outcome:
    """`mapped`: the share of the growth that is of files."""
    grown = [mib_per_hour * at / 3600 for at in TIMES]
    samples = [sample(at, 90 + mib, mapped * mib) for at, mib in zip(TIMES, grown, strict=True)]
    metrics: Any = ({}, {("plait_loop_lag_seconds_bucket", frozenset({("le", "0.01")})): 3.0})
    plan = Plan(600, 8, 1, 1)
    last = after or sample()
    return Outcome(plan, sample(), last, samples, Tally(**tally), metrics, 600.0, False)


def missed(of: Outcome) -> list[str]:
    return [target.what for target in report.targets(of) if target.met is False]


def test_a_server_that_is_as_before_meets_every_target_but_what_never_happened() -> None:
    found = report.targets(outcome())

    assert [target.what for target in found if target.met is not True] == [
        "release of cancels p99 at most 100 ms"
    ]


@pytest.mark.parametrize(
    ("of", "what"),
    [
        (outcome(sample(slots=1.0)), "slots, KV, streams and connections 0 at rest"),
        (outcome(sample(tasks=3.0)), "tasks as before"),
        (outcome(sample(fds=16)), "descriptors as before"),
        (outcome(mib_per_hour=100.0), "own memory of gateway grows by less than 32 MiB/h"),
        (outcome(broken=["x"]), "every stream accepted or rejected, one terminal, dense seqs"),
        (outcome(refused=1), "no connection turned away"),
    ],
)
def test_what_is_left_behind_is_named(of: Outcome, what: str) -> None:
    assert missed(of) == [what]


def test_memory_of_a_run_too_short_to_judge_it_is_not_measured() -> None:
    of = outcome(mib_per_hour=1300.0)
    of.samples = of.samples[:60]

    [memory] = [target for target in report.targets(of) if "own memory" in target.what]

    assert memory.met is None
    assert memory.measured == "too short to judge memory; run 10 minutes or more"


def test_growth_whose_interval_straddles_the_bound_is_undecided() -> None:
    rng, of = random.Random(1), outcome()
    of.samples = [sample(at, 300 + rng.gauss(0, 20)) for at in TIMES]

    [memory] = [target for target in report.targets(of) if "own memory" in target.what]

    assert memory.met is None
    assert memory.measured.startswith("undecided: ")


def test_what_the_first_work_of_a_method_opens_is_no_leak() -> None:
    of = outcome(sample(fds=16))
    of.cold = ("embed",)

    [found] = [t for t in report.targets(of) if t.what == "descriptors as before"]

    assert (missed(of), found.met) == ([], None)
    assert "first work of embed" in found.measured


def test_only_streams_that_brought_something_and_were_done_warm_a_model_up() -> None:
    visit: Any = SimpleNamespace(leaving="stays", book=book(ACCEPTED, ITEM, DONE))
    empty: Any = SimpleNamespace(leaving="stays", book=book(ACCEPTED, told("done", seq=0)))
    tally = Tally()

    tally.add(visit)
    tally.add(empty)

    assert (tally.ends["chat", "done"], tally.worked["chat"]) == (2, 1)


def test_the_table_of_ends_says_which_are_provoked() -> None:
    of = outcome()
    of.ran_seconds = 60.0

    title = report.ends_table(of).title

    assert title.startswith("soak: 1 minute, ")
    assert "clients provoke error, rejected and lost on purpose" in title


def test_weights_that_become_resident_as_they_are_used_are_no_growth() -> None:
    assert missed(outcome(mib_per_hour=100.0, mapped=0.8)) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells them apart")
def test_of_a_process_memory_what_is_mapped_from_files_is_told_apart(tmp_path: Path) -> None:
    weights, this = tmp_path / "weights", psutil.Process()
    weights.write_bytes(bytes(8 * MIB))
    before = held_by(this)

    with weights.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert mapped.find(b"\1") == -1  # all of it was looked at
        after = held_by(this)

    assert after.mapped_bytes - before.mapped_bytes >= 8 * MIB
    assert abs(after.own_bytes - before.own_bytes) < 4 * MIB


def test_errors_a_client_asked_for_are_no_fault_and_ours_are() -> None:
    asked, ours = Tally(), Tally()
    asked.codes.update(["invalid_request", "queue_timeout"])
    ours.codes.update(["internal", "a code of a later version"])

    assert missed(outcome(codes=asked.codes)) == []
    assert missed(outcome(codes=ours.codes)) == ["no error of the model's or the server's making"]


def test_the_report_holds_the_command_the_verdicts_and_what_broke() -> None:
    of = outcome(broken=["item 3 | of 1"])
    facts = {"command": "plait bench soak", "engine": "scripted"}
    tables = [report.ends_table(of), report.rest_table(of)]

    text = markdown(facts, tables, report.targets(of), of.tally.broken)

    assert "- command: plait bench soak" in text
    assert "| **missed** | every stream" in text
    assert "item 3 / of 1" in text
    assert json.dumps(record(of))


def test_the_panels_show_each_process_and_begin_at_nought() -> None:
    shown = panels(outcome().samples[60:])

    assert all(panel.x[0] == 0.0 for panel in shown)
    assert {"gateway", "w (forked)"} <= shown[2].lines.keys()


def test_a_worker_is_named_by_the_log_and_other_lines_are_none() -> None:
    names = Names()
    for line in (
        '{"event": "worker.started", "pid": 7, "model": "m"}',
        "Ctrl-C",
        '"worker.started"',
    ):
        names.read(line)

    assert names.by_pid == {7: "m"}


# --- the command -------------------------------------------------------------------------------


def test_a_model_that_is_not_installed_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAIT_HOME", str(tmp_path))

    assert engines_of("scripted", ["chat"]) == {"chat": "scripted"}
    with pytest.raises(BenchError, match="plait models pull all-minilm-l6-v2"):
        engines_of("llamacpp", ["embed"])


@pytest.mark.waits
def test_a_short_run_leaves_a_whole_report_and_nothing_behind(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    cli.add_arguments(parser.add_subparsers())
    options = shlex.split("--engine scripted --methods chat --minutes 0.04 --clients 3")
    parsed = parser.parse_args(["bench", "soak", *options, "--report", str(tmp_path)])

    assert parsed.run(parsed) == 0

    whole = json.loads((tmp_path / "soak.json").read_text())
    met = {target["what"]: target["met"] for target in whole["targets"]}
    assert met["every stream accepted or rejected, one terminal, dense seqs"] is True
    assert met["slots, KV, streams and connections 0 at rest"] is True
    assert sum(whole["tally"]["ends"].values()) > 0
    assert whole["cold"] == []
    assert (tmp_path / "soak.md").exists()
    assert (tmp_path / "soak.svg").exists()
