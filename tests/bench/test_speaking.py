"""Playback as the bench simulates it, and the verdicts on speech."""

from __future__ import annotations

import pytest

from plait.bench import speak_report
from plait.bench.sentences import WORDS, sentence
from plait.bench.speak_stock import StockSpeech
from plait.bench.speaking import Beside, Level, Spoken, starvation


def spoken(first_ms: float, starved_seconds: float = 0.0, words: int = 20) -> Spoken:
    return Spoken(words, first_ms, first_ms + 1, 1.0, 4.0, starved_seconds)


def level(*firsts_ms: float, factor: float = 0.3, starved: float = 0.0) -> Level:
    spokens = [spoken(ms, starved) for ms in firsts_ms]
    return Level(1, 20, spokens, [(factor * 4.0, 4.0)])


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("number", range(5))
def test_sentences_have_about_the_words_they_promise(words: int, number: int) -> None:
    assert abs(len(sentence(words, number).split()) - words) <= 1


def test_frames_that_come_as_fast_as_they_play_starve_nobody() -> None:
    assert starvation([(0.0, 0.2), (0.3, 0.3), (0.6, 1.0), (0.7, 1.0)]) == 0


def test_a_late_frame_stalls_once_and_shifts_what_follows() -> None:
    # 0.15 s of buffer and 0.2 s of audio last until 0.35; the next comes at 0.45, then in time.
    assert starvation([(0.0, 0.2), (0.45, 0.3), (0.74, 0.3)]) == pytest.approx(0.1)


def test_early_fast_and_gapless_speech_meets_its_targets() -> None:
    targets = speak_report.level_targets([level(150, 180, 190)])

    assert [target.met for target in targets] == [True] * 4


def test_late_slow_and_starving_speech_misses_each_of_them() -> None:
    targets = speak_report.level_targets([level(150, 250, 400, factor=0.6, starved=0.05)])

    assert [target.met for target in targets] == [False] * 4


def test_a_stock_package_four_times_later_meets_the_target_and_a_quicker_one_does_not() -> None:
    ours = [spoken(99), spoken(199)]  # 100 and 200 ms at the client
    beside = Beside(20, ours, {"slow": [stock(0.5), stock(0.9)], "quick": [stock(0.1)] * 2})

    assert [target.met for target in speak_report.beside_targets([beside])] == [True, False]
    (first, *_), titles = beside_rows(beside)
    assert first == ["150"]
    assert "package quick / plait" in titles


def stock(first_seconds: float) -> StockSpeech:
    return StockSpeech(first_seconds, 2.0, 4.0, 3.0)


def beside_rows(beside: Beside) -> tuple[list[list[str]], list[str]]:
    table = speak_report.beside_table([beside], "kokoro-onnx")
    return [cells for _, cells in table.rows], [what for what, _ in table.rows]
