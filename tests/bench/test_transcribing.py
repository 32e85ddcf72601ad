"""Transcription as the bench measures it: played clips, and a run against the scripted engine."""

from __future__ import annotations

import json
import wave
from dataclasses import replace
from pathlib import Path
from time import monotonic

import pytest

from plait.bench import transcribe_report
from plait.bench.accuracy import WordErrors
from plait.bench.clips import Clip, Utterance
from plait.bench.figures import Spread
from plait.bench.transcribe_figures import Onset, Shown
from plait.bench.transcribe_report import Offline
from plait.bench.transcribe_stock import StockText
from plait.bench.transcribing import Level, Listening, played
from plait.cli import main
from plait.client import Segment
from plait.engines.scripted.hearing import recite
from tests.live.server import live_server

SAID = (Utterance(1.0, 2.0, "one two"), Utterance(3.0, 4.0, "three four"))
CLIP = Clip("made-up", bytes(2 * 8000 * 5), 8000, 1, "one two three four", SAID)


def shown(at: float, index: int, text: str, *, final: bool = True) -> Shown:
    start, end = SAID[index].start, SAID[index].end
    return Shown(at, Segment(index, 1, text, start, end, final, lag_ms=100.0 * (index + 1)))


def level(*texts: str, delay: float = 0.5, streams: int = 1) -> Level:
    """Streams that showed and finished both utterances `delay` seconds after them."""
    listenings = [
        Listening(
            (
                shown(1.0 + delay, 0, "one", final=False),
                shown(2.0 + delay, 0, "one two"),
                shown(4.0 + delay, 1, text),
            ),
            "m",
            (Onset(1.0 + delay / 2, 1.0), Onset(3.0 + delay, 3.0)),
        )
        for text in texts
    ]
    return Level(streams, CLIP, listenings, cpu_seconds=2.0)


def offline(text: str) -> Offline:
    return Offline.of(StockText(text, 1.0), CLIP.text, CLIP.seconds)


def test_a_level_tells_errors_delays_and_cost_of_all_its_streams() -> None:
    both = level("three four", "three for")

    assert both.errors == WordErrors(1, 8)
    assert both.worst_rate == 0.25
    assert both.speech_told_ms == Spread(4, 250.0, 500.0, 500.0, 500.0)
    assert both.final_after_speech_ms == Spread(4, 500.0, 500.0, 500.0, 500.0)
    assert both.lag_ms == Spread(6, 100.0, 200.0, 200.0, 200.0)
    assert both.revisions == [2, 1, 2, 1]
    assert both.cpu_per_second == 0.2


def test_accurate_and_early_text_meets_its_targets() -> None:
    targets = transcribe_report.level_targets([level("three four")], offline(CLIP.text))

    assert [target.met for target in targets] == [True] * 5


def test_wrong_and_late_text_misses_each_of_them() -> None:
    targets = transcribe_report.level_targets([level("free for", delay=1.5)], offline(CLIP.text))

    assert [target.met for target in targets] == [False] * 5


def test_what_the_model_cannot_hear_offline_either_is_not_held_against_the_stream() -> None:
    targets = transcribe_report.level_targets([level("three for")], offline("one two three for"))

    assert [target.met for target in targets[:2]] == [False, True]


def test_latencies_of_streams_that_share_the_machine_are_not_judged() -> None:
    many = level("three four", "three four", delay=3.0, streams=2)

    assert [target.met for target in transcribe_report.level_targets([many], None)] == [True]


def test_every_row_of_the_table_has_a_cell_for_every_column() -> None:
    nothing = Level(4, replace(CLIP, utterances=()), [Listening((), "m")])
    table = transcribe_report.level_table([level("three four"), nothing], offline(""), "x")

    assert {len(cells) for _, cells in table.rows} == {2}
    assert json.dumps(transcribe_report.level_record(nothing))


async def test_a_clip_is_played_whole_and_no_faster_than_it_was_spoken() -> None:
    clip = replace(CLIP, pcm=bytes(range(256)) * 10)  # 0.16 s
    seconds: list[int] = []
    begin = monotonic()

    frames = [frame async for frame in played(clip, begin, seconds.append)]

    assert b"".join(frames) == clip.pcm
    # A frame comes when all of it would have been recorded; timers may be a moment early.
    assert monotonic() - begin >= 0.19


async def test_a_clip_that_is_late_catches_up_at_once() -> None:
    seconds: list[int] = []
    long_ago = monotonic() - 3600

    frames = [frame async for frame in played(CLIP, long_ago, seconds.append)]

    assert len(frames) == 50
    assert sum(seconds) == 5


# --- the command -------------------------------------------------------------------------------


@pytest.fixture
def recited(tmp_path: Path) -> list[str]:
    """The arguments for a clip in which the scripted engine hears words."""
    with wave.open(str(tmp_path / "said.wav"), "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", ""))
        file.writeframes(recite("one two ."))
    said = [[0.0, 0.35, "one two"]]
    (tmp_path / "said.json").write_text(json.dumps(said))
    return [f"--wav={tmp_path / 'said.wav'}", f"--reference={tmp_path / 'said.json'}"]


def test_transcribe_prints_its_tables_and_writes_every_item_as_json(
    tmp_path: Path, recited: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "figures.json"
    command = ["bench", "transcribe", "--engine=scripted", "--cancels=2", f"--json={file}"]

    assert main([*command, *recited, "--streams", "1", "2"]) == 0

    record = json.loads(file.read_text())
    assert [one["streams"] for one in record["levels"]] == [1, 2]
    assert [one["word_errors"] for one in record["levels"]] == [
        {"errors": 0, "words": 2},
        {"errors": 0, "words": 4},
    ]
    texts = {one["text"] for one in record["levels"][1]["listenings"]}
    assert texts == {"one two"}
    assert record["levels"][0]["cpu_per_second"] >= 0
    assert len(record["cancels"]["outside_ms"]) == 2
    out = capsys.readouterr().out
    assert "speech_started after speech begins, ms max" in out
    assert "first text after speech begins, ms p50" in out
    assert "stop_ms (server) p95" in out


def test_transcribe_measures_a_running_server(
    recited: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with live_server(transcribe="scripted") as server:
        command = ["bench", "transcribe", "--engine=scripted", "--cancels=0"]
        assert main([*command, *recited, f"--url={server.url}"]) == 0
        server.wait_idle()
    out = capsys.readouterr().out
    assert "word error rate" in out
    assert "cancelled" not in out


def test_a_clip_without_its_reference_is_one_line_and_exit_code_1(
    recited: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "transcribe", "--engine=scripted", recited[0]]) == 1

    assert capsys.readouterr().err.count("\n") == 1
