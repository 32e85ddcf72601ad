"""What the package pywhispercpp makes of a whole recording: the yardstick for accuracy.

It decodes with the installed model's own weights as its documentation shows, all at once and with
the defaults of its `Model`. That happens in a child (`python -m plait.bench.transcribe_stock`), so
that a library's threads and memory stay apart from what else is measured. Does NOT know Plait's
engines, streams nor reports.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from time import process_time

import msgspec
import numpy as np
from numpy.typing import NDArray

from plait.bench.clips import Clip
from plait.bench.serving import BenchError

SAMPLE_RATE = 16_000


class StockSpec(msgspec.Struct):
    """`weights`: a ggml file. `language` "auto" leaves it to the model. PCM16 follows the line."""

    weights: str
    language: str
    threads: int
    sample_rate: int
    channels: int


class StockText(msgspec.Struct):
    """All that was heard. `error`: why there is nothing (the other fields are empty then)."""

    text: str = ""
    cpu_seconds: float = 0.0
    error: str = ""


async def stock_text(clip: Clip, weights: str, language: str = "auto") -> StockText:
    """Decode the clip on one thread. Raises BenchError when the package or the child fails."""
    spec = StockSpec(weights, language, 1, clip.sample_rate, clip.channels)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "plait.bench.transcribe_stock"),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
    )
    try:
        answer, _ = await process.communicate(msgspec.json.encode(spec) + b"\n" + clip.pcm)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if not answer:
        raise BenchError("the stock package's process ended; run the benchmark again")
    text = msgspec.json.decode(answer, type=StockText)
    if text.error:
        raise BenchError(text.error)
    return text


def transcribe(spec: StockSpec, pcm: bytes) -> StockText:
    """In this process. Raises BenchError when the package is not installed."""
    try:
        from pywhispercpp.model import Model
    except ImportError as error:
        raise BenchError(
            "The package pywhispercpp is not usable here, so there is nothing to compare with."
        ) from error
    model = Model(
        spec.weights,
        n_threads=spec.threads,
        language=spec.language,
        print_progress=False,
        print_realtime=False,
    )
    samples = samples_of(spec, pcm)
    begin = process_time()
    segments = model.transcribe(samples)
    return StockText(" ".join(s.text.strip() for s in segments), process_time() - begin)


def samples_of(spec: StockSpec, pcm: bytes) -> NDArray[np.float32]:
    """Mono at 16 kHz, as the package wants them."""
    frames = np.frombuffer(pcm, "<i2").reshape(-1, spec.channels).astype(np.float32) / 32768
    mono: NDArray[np.float32] = frames.mean(axis=1)
    if spec.sample_rate == SAMPLE_RATE:
        return mono
    import soxr

    resampled: NDArray[np.float32] = soxr.resample(mono, spec.sample_rate, SAMPLE_RATE)
    return resampled


def main() -> None:
    """A line of JSON in, then the samples; a line of JSON out."""
    spec = msgspec.json.decode(sys.stdin.buffer.readline(), type=StockSpec)
    pcm = sys.stdin.buffer.read()
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what the library prints is no answer
    try:
        text = transcribe(spec, pcm)
    except BenchError as error:
        text = StockText(error=str(error))
    answers.write(msgspec.json.encode(text) + b"\n")


if __name__ == "__main__":
    main()
