"""The abandonment bench's verdicts, and that every figure has its place."""

from __future__ import annotations

from plait.bench.abandon import report
from plait.bench.abandon.outcome import Outcome
from plait.bench.abandon.running import Record, Run
from plait.bench.abandon.target import Account, HangUp, Span


def outcome(
    percent: float = 20.0,
    *,
    rate: float = 10.0,
    wasted: int = 1,
    chunks: int = 1,
    dead: float = 0.0,
    wait: float = 1.0,
    target: str = "plait, x",
    control: bool = False,
) -> Outcome:
    """Request 0 is answered, 1 is left in decode and 2 in prefill; 10 s, all of them busy."""
    leave = HangUp("decode", "cancel", 1)
    records = [Record(0, None, 0.0, first_at=0.5, read=round(10 * rate), ended_at=10.0, gaps=[0.1])]
    account = Account("its log", {}, {}, dead_seconds=dead, busy_seconds=10.0, cpu_seconds=1.0)
    account.queue_waits = {0: wait}
    if percent and not control:
        records.append(Record(1, leave, 0.0, first_at=0.5, read=0, left_at=1.0))
        records[-1].read, records[0].read = 1, records[0].read - 1
        records.append(Record(2, leave, 0.0, left_at=1.0))
        account.decoded_after, account.prefilled_after = {1: wasted, 2: 0}, {1: 0, 2: 4 * chunks}
        account.spans = {2: Span(1.0, 1.1, 0, 9, (4,) * chunks)}
    return Outcome(target, percent, control, runs=[Run(records, account, 10.0)])


def verdicts(*outcomes: Outcome, tokens: int = 600) -> list[bool | None]:
    return [target.met for target in report.targets(outcomes, tokens)]


def test_abandonment_that_costs_nothing_meets_every_target() -> None:
    assert verdicts(outcome(0.0), outcome()) == [True] * 5


def test_each_kind_of_waste_misses_its_own_target() -> None:
    base = outcome(0.0)
    worse = [
        outcome(wasted=2),
        outcome(chunks=2),
        outcome(dead=0.03),
        outcome(wait=1.2),
        outcome(rate=9.8),
    ]

    found = [verdicts(base, one) for one in worse]

    assert [verdict.index(False) for verdict in found] == list(range(5))
    assert all(verdict.count(True) == 4 for verdict in found)


def test_the_share_of_dead_work_is_judged_by_long_answers_only() -> None:
    assert len(verdicts(outcome(0.0), outcome(dead=5.0), tokens=120)) == 4


def test_with_a_control_throughput_is_judged_by_the_same_work() -> None:
    base, control = outcome(0.0, rate=20.0), outcome(rate=10.0, control=True)

    assert verdicts(base, outcome(rate=10.0)) == [True, True, True, True, False]
    assert verdicts(base, outcome(rate=10.0), control) == [True] * 5


def test_without_the_run_to_compare_with_there_is_no_verdict_on_it() -> None:
    assert verdicts(outcome()) == [True, True, True, None, None]


def test_where_clients_are_not_always_busy_throughput_is_not_judged() -> None:
    slower = report.targets([outcome(0.0), outcome(rate=5.0)], 600, saturated=False)

    assert [target.met for target in slower] == [True] * 4


def test_other_servers_and_other_shares_are_not_judged_and_why_is_said() -> None:
    [only] = report.targets([outcome(0.0), outcome(40.0), outcome(target="llama-server")], 600)

    assert only.met is None
    assert only.what == "targets are judged at 20 %, beside a 0 % run"
    assert report.targets([outcome(target="llama-server")], 600) == []


def test_a_run_in_which_nothing_is_cancelled_is_not_judged() -> None:
    dead = outcome()
    dead.no_cancel = True

    assert verdicts(outcome(0.0), dead) == []


def test_there_is_a_table_for_each_target_and_a_cell_for_every_column() -> None:
    tables = report.tables([outcome(0.0), outcome(), outcome(target="other")], "x")

    assert [(table.title, len(table.columns)) for table in tables] == [
        ("plait, x: x; accounted by its log", 2),
        ("other: x; accounted by its log", 1),
    ]
    for table in tables:
        assert {len(cells) for _, cells in table.rows} == {len(table.columns)}


def test_where_only_a_mean_is_known_the_table_says_so() -> None:
    told = outcome()
    told.runs[0].account.decoded_after = None
    told.runs[0].account.mean_after = 3.25

    (table,) = report.tables([told], "x")

    assert dict(table.rows)["tokens decoded after it, p50"] == ["mean 3.2"]


def test_the_chart_shows_each_share_of_hang_ups_and_what_is_unknown_as_unknown() -> None:
    unknown = outcome(target="other")
    unknown.runs[0].account.dead_seconds = None
    known = [outcome(0.0), outcome(dead=0.0), outcome(40.0, dead=1.0), outcome(control=True)]

    names, series = report.bars([*known, unknown])

    assert names == ["plait, x", "other"]
    assert series == {"20 % hang up": [0.0, None], "40 % hang up": [10.0, None]}


def test_beside_a_server_with_the_same_engine_5_percent_may_be_lost_and_no_more_wasted() -> None:
    name, peer = "plait, llama.cpp", outcome(target="llama-server", rate=10.0, dead=0.01)

    good = verdicts(outcome(0.0, target=name), outcome(rate=9.6, target=name), peer)
    slow = verdicts(outcome(0.0, target=name), outcome(rate=9.4, dead=0.02, target=name), peer)

    assert good[5:] == [True] * 4
    assert slow[5:] == [False, True, True, False]


def test_a_server_of_the_same_engine_is_compared_with_whatever_its_batches_are() -> None:
    own, stock = outcome(target="plait, llama.cpp"), outcome(target="llama-server")
    small = outcome(target="llama-server, batches of 4")

    alone, beside = (len(verdicts(own, *peers)) for peers in ([], [stock]))

    assert beside > alone
    assert len(verdicts(own, small)) == beside
