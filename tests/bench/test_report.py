"""The verdicts follow the targets, and late or unmeasured stops do not pass for good ones."""

from __future__ import annotations

from plait.bench import report
from plait.bench.cancelling import PhaseResult, Stop
from plait.bench.chatting import LevelResult, Side
from plait.bench.direct import BatchTimes


def phase(
    *stops: Stop, gaps_ms: list[float], release: tuple[float, float] = (0.01, 0.02)
) -> PhaseResult:
    return PhaseResult(
        "decode",
        stops=list(stops),
        gaps_ms=gaps_ms,
        loop_lag_p99=(0.001, 0.002),
        release_p99=release,
    )


def verdicts(result: PhaseResult) -> list[bool | None]:
    return [target.met for target in report.cancel_targets([result])]


def side(tokens: int, seconds: float) -> Side:
    items = [[seconds / 2, seconds]]
    return Side(BatchTimes(0.0, seconds, cpu_seconds=0.5, units=tokens, items=items))


def level(*rates: tuple[int, int]) -> LevelResult:
    pairs = [(side(wire, 1.0), side(direct, 1.0)) for wire, direct in rates]
    return LevelResult(4, pairs, loop_lag_p99=(0.001, 0.002))


def test_stops_within_a_step_that_waste_at_most_a_token_meet_the_targets() -> None:
    assert verdicts(phase(Stop(25.0, 20.0, 1), gaps_ms=[15.0])) == [True, True, True]


def test_a_slow_a_late_and_a_wasteful_stop_each_miss_theirs() -> None:
    slow = phase(Stop(40.0, 30.0, 0), gaps_ms=[15.0])
    late = phase(Stop(25.0, 20.0, 0), Stop(102.0, None, None), gaps_ms=[15.0], release=(0.1, 0.15))
    wasteful = phase(Stop(25.0, 20.0, 2), gaps_ms=[15.0])

    assert [verdicts(result) for result in (slow, late, wasteful)] == [
        [False, True, True],
        [False, True, True],
        [True, False, True],
    ]


def test_a_late_stop_within_a_longer_step_is_in_time_and_an_undecidable_one_is_open() -> None:
    stops = (Stop(25.0, 20.0, 0), Stop(102.0, None, None))
    longer = phase(*stops, gaps_ms=[145.0], release=(0.1, 0.15))
    open_ = phase(*stops, gaps_ms=[120.0], release=(0.1, 0.15))

    assert [verdicts(result)[0] for result in (longer, open_)] == [True, None]


def test_without_a_running_neighbour_the_step_is_not_judged() -> None:
    assert verdicts(phase(Stop(25.0, 20.0, 0), gaps_ms=[])) == [None, True, True]


def test_the_ratio_is_the_median_of_the_pairs_so_one_disturbed_pair_does_not_count() -> None:
    assert level((97, 100), (20, 100), (98, 100)).ratio == 0.97


def test_less_than_95_percent_over_the_wire_is_a_miss() -> None:
    targets = report.chat_targets([level((94, 100)), level((96, 100))])

    assert [target.met for target in targets] == [False, True, True, True]


def test_every_row_of_a_table_has_a_cell_for_every_column() -> None:
    table = report.cancel_table([phase(gaps_ms=[]), phase(Stop(1, 1, 0), gaps_ms=[1])], "x")
    chat = report.chat_table([level((1, 1)), level((1, 1))], "x")

    assert {len(cells) for _, cells in table.rows} == {len(table.columns)}
    assert {len(cells) for _, cells in chat.rows} == {len(chat.columns)}


def test_the_libraries_of_every_engine_that_ran_are_named() -> None:
    engine = report.machine("llamacpp, onnx, somebody's")["engine"]

    assert engine.startswith("llamacpp, onnx, somebody's, xllamacpp ")
    assert ", onnxruntime " in engine
