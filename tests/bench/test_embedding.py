"""Rates are of pairs, streams follow each other, and both sides embed the same texts."""

from __future__ import annotations

from plait.bench import embed_report
from plait.bench.direct import BatchTimes
from plait.bench.embedding import Load, LoadResult, Side, loads, texts_of

TWO = Load("x", 2, 5)


def side(texts: int, seconds: float, gateway_cpu_seconds: float = 0.0) -> Side:
    items = [[0.25 * seconds], [0.5 * seconds, seconds]]
    return Side(BatchTimes(0.0, seconds, 0.5, texts, items), gateway_cpu_seconds)


def result(*rates: tuple[int, int], load: Load = TWO, seconds: float = 1.0) -> LoadResult:
    """`seconds`: of the wire's side."""
    pairs = [(side(wire, seconds, 0.1), side(direct, 1.0)) for wire, direct in rates]
    return LoadResult(load, pairs, loop_lag_p99=(0.001, 0.002))


def test_the_ratio_is_the_median_of_the_pairs_so_one_disturbed_pair_does_not_count() -> None:
    assert result((97, 100), (20, 100), (98, 100)).ratio == 0.97


def test_a_stream_lasts_from_the_end_of_the_one_before_to_its_last_vector() -> None:
    spread = result((10, 10)).stream_ms(0)
    assert spread is not None
    assert (spread.count, spread.p50, spread.max) == (2, 250.0, 750.0)


def test_cpu_is_told_per_text_for_worker_and_gateway() -> None:
    measured = result((10, 10), (30, 10))
    assert (measured.cpu_ms_per_text(0), measured.gateway_cpu_ms_per_text) == (25.0, 5.0)


def test_less_than_95_percent_over_the_wire_is_a_miss() -> None:
    targets = embed_report.load_targets([result((94, 100)), result((96, 100))])
    assert [target.met for target in targets] == [False, True]


def test_one_text_at_a_time_is_judged_by_what_the_wire_adds() -> None:
    one = Load("1 text", 2, 1)
    results = [result((10, 10), load=one, seconds=seconds) for seconds in (1.01, 1.1)]
    assert [target.met for target in embed_report.load_targets(results)] == [True, False]


def test_every_row_of_the_table_has_a_cell_for_every_column() -> None:
    table = embed_report.load_table([result((1, 1)), result((1, 1))], "x")
    assert {len(cells) for _, cells in table.rows} == {2}


def test_no_text_comes_twice_and_every_run_has_the_same() -> None:
    rounds = [texts_of(Load("x", 3, 7), number) for number in range(4)]
    texts = [text for streams in rounds for stream in streams for text in stream]
    assert len(set(texts)) == len(texts) == 84
    assert [texts_of(Load("x", 3, 7), number) for number in range(4)] == rounds


def test_only_the_bulk_goes_up_by_input() -> None:
    assert [load.uploaded for load in loads(500)] == [False, False, True]
    assert loads(500)[-1].all_texts == 500
