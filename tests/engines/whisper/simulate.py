"""Live transcription on a virtual clock: what a listener would see on a core of its own.

Audio arrives in real time in frames, one decode runs at a time and takes what `cost` says: its own
CPU seconds, or a formula, with which a run is the same on every machine. Run as a program it prints
the figures of a model: `python -m tests.engines.whisper.simulate MODEL.bin CLIP.wav CLIP.json`.
"""

from __future__ import annotations

import json
import math
import sys
import time
import wave
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from plait.bench.accuracy import WordErrors, common_words, words_of
from plait.engines.whisper.hearing import Decoded, Hearing, Window

Decode = Callable[[Window], Decoded]
Cost = Callable[[Window, Decoded], float]
Segment = dict[str, Any]

RATE = 16_000


@dataclass
class Run:
    items: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    """When it left, and the item."""
    decodes: list[tuple[float, Window, float]] = field(default_factory=list)
    """When it began, what, and seconds it took."""
    audio_seconds: float = 0.0

    @property
    def segments(self) -> list[tuple[float, Segment]]:
        return [(at, item["segment"]) for at, item in self.items if "segment" in item]

    @property
    def finals(self) -> list[tuple[float, Segment]]:
        return [(at, segment) for at, segment in self.segments if segment["is_final"]]

    @property
    def text(self) -> str:
        return " ".join(segment["text"] for _, segment in self.finals)


def read_clip(path: Path) -> bytes:
    """PCM16 of a 16 kHz mono WAV."""
    with wave.open(str(path)) as clip:
        assert (clip.getframerate(), clip.getnchannels(), clip.getsampwidth()) == (RATE, 1, 2)
        return bytes(clip.readframes(clip.getnframes()))


def formula(window: Window, decoded: Decoded) -> float:
    """Roughly what tiny.en takes on one core of a small server."""
    context = max(192, len(window.samples) / RATE * 50 + 64)
    return 0.03 + 0.0008 * context + 0.006 * len(decoded.words)


def simulate(
    hearing: Hearing, decode: Decode, pcm: bytes, cost: Cost | None = None, frame: float = 0.1
) -> Run:
    """`frame`: seconds of audio in one; `cost` None: the decode's own CPU seconds."""
    run = Run(audio_seconds=len(pcm) / 2 / RATE)
    size = int(frame * RATE) * 2
    frames = [pcm[i : i + size] for i in range(0, len(pcm), size)]
    sent, now, finished = 0, 0.0, False
    running: tuple[float, Window, Decoded] | None = None
    while not hearing.over:
        arrival = min((sent + 1) * frame, run.audio_seconds) if sent < len(frames) else math.inf
        if running is not None and running[0] <= arrival:
            now, window, decoded = running
            running = None
            heard = hearing.take(window, decoded, now)
        elif sent < len(frames):
            now = arrival
            heard = hearing.hear(frames[sent], now) + hearing.follow(now)
            sent += 1
        else:
            assert not finished, "finished, and neither over nor decoding"
            finished = True
            heard = hearing.finish()
        run.items += [(now, json.loads(item.data)) for item in heard]
        if running is None and (due := hearing.due()) is not None:
            began = time.process_time()
            decoded = decode(due)
            took = time.process_time() - began if cost is None else cost(due, decoded)
            run.decodes.append((now, due, took))
            running = (now + took, due, decoded)
    return run


def word_error_rate(expected: str, got: str) -> float:
    return WordErrors.of(expected, got).rate


def first_interims(run: Run, spoken: Sequence[tuple[float, float, str]]) -> list[float]:
    """For each utterance: seconds from its beginning to the first text about it."""
    firsts = []
    for start, _, _ in spoken:
        times = [
            at for at, s in run.segments if at >= start and s["end"] > start - 0.2 and s["text"]
        ]
        firsts += [times[0] - start] if times else []
    return firsts


def final_delays(run: Run) -> list[float]:
    """Seconds from the end of the voice to the final, of segments that a pause ended."""
    following = [segment["start"] for _, segment in run.finals[1:]] + [math.inf]
    return [
        at - segment["end"]
        for (at, segment), next_start in zip(run.finals, following, strict=True)
        if segment["text"] and next_start > segment["end"]
    ]


def rewritten(run: Run) -> tuple[int, int]:
    """Words of interims that were shown, and how many a later revision changed."""
    shown = changed = 0
    for (_, one), (_, other) in zip(run.segments, run.segments[1:], strict=False):
        if one["index"] == other["index"]:
            before = words_of(one["text"])
            same = common_words(before, words_of(other["text"]))
            shown, changed = shown + len(before), changed + len(before) - same
    return shown, changed


def figures(run: Run, spoken: Sequence[tuple[float, float, str]]) -> dict[str, Any]:
    def percentiles(values: Sequence[float]) -> list[float]:
        return [round(float(np.percentile(values, p)), 2) for p in (50, 95)] if values else []

    shown, changed = rewritten(run)
    decoding = sum(took for _, _, took in run.decodes)
    return {
        "wer": round(word_error_rate(" ".join(text for _, _, text in spoken), run.text), 3),
        "first_interim": percentiles(first_interims(run, spoken)),
        "final": percentiles(final_delays(run)),
        "segments": len(run.finals),
        "revisions": round(len(run.segments) / max(1, len(run.finals)), 1),
        "rewritten": [changed, shown],
        "decodes": len(run.decodes),
        "cpu_per_second": round(decoding / run.audio_seconds, 3),
    }


def main(model: str, clip: str, spoken: str) -> None:
    from plait.engines.whisper.decoder import Decoder
    from plait.engines.whisper.detector import SileroDetector

    decoder = Decoder(model)
    hearing = Hearing({"sample_rate": RATE}, SileroDetector(), multilingual=decoder.multilingual)
    run = simulate(hearing, decoder.decode, read_clip(Path(clip)))
    for at, segment in run.segments:
        sys.stdout.write(f"{at:6.2f} {json.dumps(segment)}\n")
    sys.stdout.write(json.dumps(figures(run, json.loads(Path(spoken).read_text()))) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
