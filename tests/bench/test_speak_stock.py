"""The yardsticks of `plait bench speak`: the packages as they are, on the installed weights."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from plait.bench.serving import BenchError
from plait.bench.speak_stock import Samples, StockSpec, load_stock, say, stock_speaker, stock_spec
from plait.models import InstalledModel, ModelStore

MISSING = [
    package
    for package, module in (("kokoro", "kokoro"), ("kokoro-onnx", "kokoro_onnx"))
    if importlib.util.find_spec(module) is None
]


def model(directory: Path) -> InstalledModel:
    return InstalledModel(
        name="kokoro-82m",
        method="synthesize",
        directory=directory,
        forms={"kokoro-onnx": directory / "onnx-1"},
        context_limit=0,
        licence="Apache-2.0",
        size_bytes=1,
        quantization="",
        tokenizer_file=None,
        voices_dir=directory / "voices",
        voice_names=("af_heart",),
    )


def test_first_audio_is_the_first_chunk_and_the_samples_are_all() -> None:
    def speak(text: str) -> Iterator[Samples]:
        yield np.zeros(2400, np.float32)
        yield np.ones(2400, np.float32)

    speech, samples = say(speak, "Hello.")

    assert 0 < speech.first_audio_seconds <= speech.total_seconds
    assert speech.audio_seconds == 0.2
    assert samples.sum() == 2400


def test_kokoro_onnx_reads_the_joined_file_and_kokoro_a_form_of_its_own(tmp_path: Path) -> None:
    installed = model(tmp_path)
    with_torch = replace(installed, forms={"kokoro-torch": tmp_path / "torch-1"})

    onnx = stock_spec("kokoro-onnx", installed, "af_heart", threads=2)
    torch = stock_spec("kokoro", with_torch, "af_heart", threads=2)

    assert onnx.weights == str(tmp_path / "model.onnx")
    assert torch.weights == str(tmp_path / "torch-1")
    assert torch.voice == str(tmp_path / "voices" / "af_heart.bin")


def test_weights_that_are_not_installed_are_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="pull them"):
        stock_spec("kokoro", model(tmp_path), "af_heart", threads=1)


@pytest.mark.parametrize("package", MISSING)
def test_a_package_that_is_missing_is_named(package: str) -> None:
    with pytest.raises(BenchError, match=f"install .*{package}"):
        load_stock(StockSpec(package, "", "", 1))  # type: ignore[arg-type]


@pytest.fixture
def installed() -> InstalledModel:
    return ModelStore().ensure("kokoro-82m", "kokoro-torch")


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.skipif("kokoro" in MISSING, reason="torch is an extra")
async def test_the_stock_package_speaks_with_our_weights_offline(installed: InstalledModel) -> None:
    async with stock_speaker(stock_spec("kokoro", installed, "af_heart", threads=1)) as speaker:
        speech = await speaker.say("Yes, that works.")

    assert 1 < speech.audio_seconds < 3
    assert 0 < speech.first_audio_seconds <= speech.total_seconds
