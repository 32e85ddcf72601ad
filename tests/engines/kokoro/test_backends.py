"""The contract of `KokoroModel` on the real weights, for both backends, and that they agree.

Each backend computes a short sentence; the other one's numbers are the yardstick.
"""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from plait.engines.kokoro.model import NORM_CHANNELS, Floats, Interrupted, KokoroModel
from plait.engines.kokoro.norms import affine
from plait.engines.kokoro.onnx_backend import OnnxKokoro
from plait.engines.kokoro.source import HarmonicSource
from plait.engines.kokoro.torch_backend import TorchKokoro
from plait.engines.kokoro.voices import KokoroVoices
from plait.engines.kokoro.windows import CONTEXT
from plait.models import ModelStore
from plait.speech.vocabulary import PADDING, ids

pytestmark = [pytest.mark.model, pytest.mark.timeout(240)]

WITHOUT_TORCH = importlib.util.find_spec("torch") is None or not importlib.util.find_spec("kokoro")
TORCH = pytest.param("torch", marks=pytest.mark.skipif(WITHOUT_TORCH, reason="torch is an extra"))
BACKENDS = ["onnx", TORCH]
PHONEMES = "ðə kwˈɪk bɹˈWn fˈɑks ʤˈʌmps."  # noqa: RUF001 - the alphabet of phonetics
SYMBOLS = np.array([PADDING, *ids(PHONEMES), PADDING], np.int64)
WINDOW = slice(20, 52)  # frames, with CONTEXT on both sides


@dataclass
class Spoken:
    """All that one model computed for the sentence."""

    model: KokoroModel
    style: Floats
    durations: Floats
    d: Floats
    t: Floats
    x: Floats
    f0: Floats

    @property
    def affine(self) -> Floats:
        """With statistics of no speech: both backends get the same, and any will do."""
        flat = np.zeros(NORM_CHANNELS, np.float32), np.ones(NORM_CHANNELS, np.float32)
        return affine(*flat, self.model.norm_style(self.style))

    def window(self, shift: int = 0) -> Floats:
        """The spectra of WINDOW but for the context; computed `shift` frames wider to the left."""
        har = HarmonicSource(self.f0, seed=1).spectra(WINDOW.start - shift, WINDOW.stop)
        x = np.ascontiguousarray(self.x[:, WINDOW.start - shift : WINDOW.stop])
        spectra = self.model.generate(x, har, self.affine)
        margin = 60 * CONTEXT
        return spectra[:, margin + 60 * shift : -margin]


def speak(model: KokoroModel, style: Floats) -> Spoken:
    durations, d, t = model.text(SYMBOLS, style)
    units = np.maximum(np.rint(durations), 1).astype(int)
    x, f0 = model.acoustic(np.repeat(d, units, axis=1), np.repeat(t, units, axis=1), style)
    return Spoken(model, style, durations, d, t, x, f0)


@pytest.fixture(scope="module")
def style(voices: KokoroVoices) -> Floats:
    one: Floats = voices.pack("af_heart")[len(PHONEMES) - 1]
    return one


@pytest.fixture(scope="module")
def onnx(loaded: OnnxKokoro, style: Floats) -> Spoken:
    loaded.rearm()
    return speak(loaded, style)


@pytest.fixture(scope="module", params=BACKENDS)
def spoken(request: pytest.FixtureRequest, onnx: Spoken, style: Floats) -> Iterator[Spoken]:
    if request.param == "onnx":
        yield onnx
        return
    weights = ModelStore().ensure("kokoro-82m", "kokoro-torch").form("kokoro-torch")
    assert weights is not None
    model = TorchKokoro.load(weights, threads=1)
    yield speak(model, style)
    model.close()


def correlation(a: Floats, b: Floats) -> float:
    return float(np.corrcoef(a.ravel(), b.ravel())[0, 1])


def snr_db(signal: Floats, other: Floats) -> float:
    noise = ((signal - other) ** 2).sum() or 1e-20
    return float(10 * np.log10(((signal - signal.mean()) ** 2).sum() / noise))


def test_shapes_and_types_are_the_contracts(spoken: Spoken) -> None:
    symbols, frames = len(SYMBOLS), spoken.f0.shape[0]
    shapes = [spoken.durations.shape, spoken.d.shape, spoken.t.shape, spoken.x.shape]
    har = HarmonicSource(spoken.f0, seed=1).spectra(0, 40)
    spectra = spoken.model.generate(spoken.x[:, :40], har, spoken.affine)

    assert shapes == [(symbols,), (640, symbols), (512, symbols), (512, frames)]
    assert spectra.shape == (22, 60 * 40 + 1)
    assert spoken.model.norm_style(spoken.style).shape == (2, NORM_CHANNELS)
    assert {array.dtype for array in (spoken.d, spoken.t, spoken.x, spoken.f0, spectra)} == {
        np.dtype(np.float32)
    }


def test_the_same_call_gives_the_same_bits(spoken: Spoken) -> None:
    again = speak(spoken.model, spoken.style)

    for one, other in ((spoken.durations, again.durations), (spoken.x, again.x)):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(spoken.window(), again.window())


def test_a_window_joins_its_neighbour(spoken: Spoken) -> None:
    """Computed with other frames around it, a window has the same spectra."""
    assert snr_db(spoken.window(), spoken.window(shift=12)) > 60


def test_nothing_runs_between_an_interrupt_and_rearm(spoken: Spoken) -> None:
    before = spoken.window()

    spoken.model.interrupt()
    with pytest.raises(Interrupted):
        spoken.model.text(SYMBOLS, spoken.style)
    with pytest.raises(Interrupted):
        spoken.window()
    spoken.model.rearm()

    np.testing.assert_array_equal(spoken.window(), before)


def test_a_running_call_is_cut_short_and_its_repetition_is_whole(spoken: Spoken) -> None:
    long = np.tile(spoken.x, 6)
    har = np.zeros((22, 60 * long.shape[1] + 1), np.float32)
    timer = threading.Timer(0.05, spoken.model.interrupt)
    before = spoken.window()

    timer.start()
    with pytest.raises(Interrupted):
        spoken.model.generate(long, har, spoken.affine)
    timer.join()
    spoken.model.rearm()

    np.testing.assert_array_equal(spoken.window(), before)


@pytest.mark.parametrize("spoken", [TORCH], indirect=True)
def test_backends_agree(spoken: Spoken, onnx: Spoken) -> None:
    """So a voice sounds the same, and a stream is as long, whatever computes it."""
    np.testing.assert_allclose(spoken.durations, onnx.durations, atol=0.01)
    assert correlation(spoken.x, onnx.x) > 0.999
    assert correlation(spoken.f0, onnx.f0) > 0.999
    np.testing.assert_allclose(
        spoken.model.norm_style(spoken.style), onnx.model.norm_style(onnx.style), atol=1e-4
    )


@pytest.mark.parametrize("spoken", [TORCH], indirect=True)
def test_generators_agree_on_one_input(spoken: Spoken, onnx: Spoken) -> None:
    spoken_here = Spoken(**{**vars(onnx), "model": spoken.model})

    assert snr_db(onnx.window(), spoken_here.window()) > 60
