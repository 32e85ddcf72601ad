"""The yardstick of `plait bench transcribe`: the package as it is, on the installed weights."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path

import numpy as np
import pytest

from plait.bench.accuracy import WordErrors
from plait.bench.clips import shipped_clip
from plait.bench.serving import BenchError
from plait.bench.transcribe_stock import StockSpec, samples_of, stock_text, transcribe
from plait.models import ModelStore

MISSING = importlib.util.find_spec("pywhispercpp") is None


def spec(sample_rate: int, channels: int) -> StockSpec:
    return StockSpec("", "en", 1, sample_rate, channels)


def test_channels_are_mixed_and_scaled_to_one() -> None:
    pcm = np.array([[16384, -16384], [16384, 16384]], "<i2").tobytes()

    assert samples_of(spec(16_000, 2), pcm).tolist() == [0.0, 0.5]


def test_another_rate_is_resampled() -> None:
    pytest.importorskip("soxr")

    assert len(samples_of(spec(48_000, 1), bytes(2 * 48_000))) == 16_000


@pytest.mark.skipif(not MISSING, reason="pywhispercpp is installed")
def test_a_package_that_is_missing_is_named() -> None:
    with pytest.raises(BenchError, match="pywhispercpp"):
        transcribe(spec(16_000, 1), b"")


@pytest.fixture
def weights() -> Path:
    path = ModelStore().ensure("whisper-tiny.en", "whisper").form("whisper")
    assert path is not None
    return path


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.skipif(MISSING, reason="pywhispercpp brings no package for this machine")
async def test_the_stock_package_hears_the_address_with_our_weights(weights: Path) -> None:
    clip = await asyncio.to_thread(shipped_clip, "jfk")

    heard = await stock_text(clip, str(weights), "en")

    assert WordErrors.of(clip.text, heard.text).rate <= 0.1
    assert heard.cpu_seconds > 0
