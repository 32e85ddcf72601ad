"""`python -m plait.bench.kokoro_calibration`: makes the data file of `plait.engines.kokoro.norms`.

Speaks a seeded plan of utterances with every installed voice (see `kokoro_utterances`), measures
the statistics of the generator's norms, and fits the predictor to them (see `kokoro_fit`). One
thread, some two seconds of computing per utterance: a quarter of an hour for the 324 of four
cycles. Interrupted, it goes on where it stopped: what was measured lies in `--work`. With
`--evaluate N`, N held-out utterances are first predicted by a fit that has not seen them, and their
log-spectral distance to the truth is printed; the written file is fitted to all. It names the
model's hash, the seed and the number of utterances, and comes out the same on the same machine.
Does NOT run in the server.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import onnx

from plait.bench.figures import Spread
from plait.bench.kokoro_fit import Arrays, Known, fit
from plait.bench.kokoro_statistics import WholeUtterance
from plait.bench.kokoro_utterances import Booth, Measured, path_of, plan, read, save
from plait.bench.spectral import gain_db, lsd
from plait.engines.kokoro.norms import DATA, NormPredictor
from plait.engines.kokoro.onnx_backend import OnnxKokoro
from plait.engines.kokoro.voices import KokoroVoices
from plait.models import ModelStore
from plait.models.kokoro.dequantize import dequantize
from plait.models.kokoro.generator_weights import GeneratorWeights
from plait.terminal import progress_display, say

MODEL = "kokoro-82m"
ENGINE: Final = "kokoro-onnx"
CYCLES = 4
WORST = 5


def main(arguments: Sequence[str] | None = None) -> int:
    parsed = _arguments(arguments)
    installed = ModelStore().ensure(MODEL, ENGINE)
    assert installed.voices_dir is not None, "it speaks"
    source = installed.directory / "model.onnx"
    booth = Booth(
        OnnxKokoro.load(installed.forms[ENGINE]),
        KokoroVoices(installed.voices_dir),
        WholeUtterance(source),
    )
    parsed.work.mkdir(parents=True, exist_ok=True)
    measured = list(_measure(booth, installed.voice_names, parsed))
    weights = _weights(source)
    if parsed.evaluate:
        _evaluate(booth, measured, weights, parsed.evaluate)
    arrays = fit(_known(booth, measured), weights)
    about = {
        "model": MODEL,
        "model_sha256": hashlib.sha256(source.read_bytes()).hexdigest(),
        "seed": parsed.seed,
        "cycles": parsed.cycles,
        "utterances": len(measured),
    }
    parsed.output.write_bytes(_packed(arrays | {"about": np.array(json.dumps(about))}))
    say(f"{parsed.output}: {len(measured)} utterances, {parsed.output.stat().st_size} bytes")
    return 0


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m plait.bench.kokoro_calibration",
        description="Measure the statistics of Kokoro's norms and fit their predictor.",
    )
    parser.add_argument("--work", type=Path, default=Path("kokoro-calibration"), metavar="DIR")
    parser.add_argument("--output", type=Path, default=Path(DATA), metavar="FILE")
    parser.add_argument("--cycles", type=int, default=CYCLES, help="utterances per voice")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--evaluate", type=int, default=0, metavar="N", help="held-out ones; 54: one of each voice"
    )
    return parser.parse_args(arguments)


def _measure(booth: Booth, voices: Sequence[str], parsed: argparse.Namespace) -> Iterator[Measured]:
    planned = list(plan(sorted(voices), parsed.cycles, parsed.seed))
    with progress_display("utterances") as progress:
        for done, one in enumerate(planned, start=1):
            path = path_of(parsed.work, one)
            if not path.exists():
                measured = booth.measure(one)
                if measured is not None:
                    save(parsed.work, measured)
            progress("Measuring", 100 * done / len(planned))
            if path.exists():
                yield read(path)


def _known(booth: Booth, measured: Sequence[Measured]) -> Known:
    return Known.of(measured, [booth.norm_style(one.style) for one in measured])


def _weights(source: Path) -> GeneratorWeights:
    model = onnx.load(source)
    dequantize(model)
    return GeneratorWeights(model)


def _evaluate(
    booth: Booth, measured: Sequence[Measured], weights: GeneratorWeights, count: int
) -> None:
    seen = [one for one in measured if not one.planned.evaluated]
    unseen = [one for one in measured if one.planned.evaluated][:count]
    file = io.BytesIO(_packed(fit(_known(booth, seen), weights)))
    predictor = NormPredictor.load(file)
    rows = []
    with progress_display("held-out utterances") as progress:
        for done, one in enumerate(unseen, start=1):
            given = predictor.predict(one.x, one.f0, one.style, booth.norm_style(one.style))
            audio = booth.again(one, *given)
            rows.append((lsd(one.audio, audio), gain_db(one.audio, audio), one.planned))
            progress("Evaluating", 100 * done / len(unseen))
    rows.sort(key=lambda row: row[0], reverse=True)
    say(f"{len(seen)} utterances seen, {len(unseen)} of others predicted")
    _say_spread("Log-spectral distance", Spread.of(row[0] for row in rows))
    _say_spread("Gain, without sign", Spread.of(abs(row[1]) for row in rows))
    for distance, gain, worst in rows[:WORST]:
        say(f"{distance:.2f} dB, gain {gain:+.2f}: {worst.blend} x{worst.speed} {worst.phonemes}")


def _say_spread(what: str, spread: Spread | None) -> None:
    if spread is not None:
        say(f"{what}: median {spread.p50:.2f} dB, p95 {spread.p95:.2f}, worst {spread.max:.2f}")


def _packed(arrays: Arrays) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return file.getvalue()


if __name__ == "__main__":
    sys.exit(main())
