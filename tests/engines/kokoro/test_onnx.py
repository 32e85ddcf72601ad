"""Kokoro on onnxruntime: the real graphs against the plain generator, cuts, and broken files."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from plait.bench.kokoro_statistics import WholeUtterance
from plait.engines.kokoro.model import Floats, Interrupted
from plait.engines.kokoro.norms import NormPredictor
from plait.engines.kokoro.onnx_backend import OnnxKokoro
from plait.engines.kokoro.runtimes import OpenVinoGraph, Stop
from plait.engines.kokoro.source import HarmonicSource, samples_of
from plait.engines.kokoro.synthesis import (
    FADE_SAMPLES,
    LEAD_FRAMES,
    Samples,
    Synthesizer,
    Utterance,
)
from plait.engines.kokoro.voices import KokoroVoices
from plait.errors import ModelLoadFailed
from plait.models import InstalledModel, ModelStore
from plait.speech.vocabulary import PADDING, ids

PHONEMES = "ðə wˈɛðəɹ lˈʊks ɹˈiəli lˈʌvli hˈɪɹ ðɪs mˈɔɹnɪŋ."  # noqa: RUF001 - phonemes
SHORT = "jˈɛs, ʃˈʊɹ."  # noqa: RUF001


@pytest.fixture(scope="module")
def installed() -> InstalledModel:
    return ModelStore().ensure("kokoro-82m", "kokoro-onnx")


@pytest.fixture(scope="module")
def form(installed: InstalledModel) -> Path:
    directory = installed.form("kokoro-onnx")
    assert directory is not None
    return directory


@pytest.fixture(scope="module")
def loaded(form: Path) -> Iterator[OnnxKokoro]:
    model = OnnxKokoro.load(form, threads=2)
    yield model
    model.close()


@pytest.fixture
def model(loaded: OnnxKokoro) -> OnnxKokoro:
    loaded.rearm()
    return loaded


@pytest.fixture(scope="module")
def pack(installed: InstalledModel) -> Floats:
    assert installed.voices_dir is not None
    return KokoroVoices(installed.voices_dir).pack("af_heart")


def begin(model: OnnxKokoro, pack: Floats, phonemes: str = SHORT, **options: Any) -> Utterance:
    settings = {"speed": 1.0, "seed": 5} | options
    return Synthesizer(model, NormPredictor.load()).begin(phonemes, pack, **settings)


def spoken(utterance: Utterance) -> Samples:
    windows = []
    while (window := utterance.next_window()) is not None:
        windows.append(window)
    return np.concatenate(windows)


def snr_db(reference: NDArray[np.floating], other: NDArray[np.floating]) -> float:
    return float(10 * np.log10(np.sum(reference**2) / np.sum((reference - other) ** 2)))


class WholePass:
    """The published generator over a whole utterance, and the statistics its norms measured."""

    def __init__(self, model: OnnxKokoro, pack: Floats, source: Path) -> None:
        style = pack[len(PHONEMES) - 1]
        symbols = np.array([PADDING, *ids(PHONEMES), PADDING])
        durations, d, t = model.text(symbols, style)
        units = np.rint(durations).astype(int)
        repeats = np.repeat(np.arange(len(symbols)), units)
        x, f0 = model.acoustic(d[:, repeats], t[:, repeats], style)
        har = HarmonicSource(f0, 5).spectra(0, len(f0))
        spectra, self.mean, self.std = WholeUtterance(source).measure(
            x, har, model.norm_style(style)
        )
        samples = samples_of(spectra, 0, 300 * len(f0))
        self.audio = samples[(2 * units[0] - LEAD_FRAMES) * 300 :]

    def predict(self, *features: Floats) -> tuple[Floats, Floats]:
        return self.mean, self.std


@pytest.mark.model
@pytest.mark.timeout(240)
def test_windows_with_an_utterances_own_statistics_equal_the_published_model(
    model: OnnxKokoro, pack: Floats, installed: InstalledModel
) -> None:
    whole = WholePass(model, pack, installed.directory / "model.onnx")

    windowed = spoken(Synthesizer(model, whole).begin(PHONEMES, pack, 1.0, 5)) / 32767

    inner = slice(FADE_SAMPLES, len(windowed) - FADE_SAMPLES)
    assert snr_db(whole.audio[inner], windowed[inner]) >= 60


@pytest.mark.model
@pytest.mark.timeout(240)
def test_windows_join_to_what_one_window_gives(model: OnnxKokoro, pack: Floats) -> None:
    utterance = begin(model, pack, PHONEMES)
    windowed = spoken(utterance).astype(float)

    assert snr_db(utterance.at_once().astype(float), windowed) >= 60


@pytest.mark.model
@pytest.mark.timeout(240)
def test_the_same_request_gives_the_same_bytes_alone_or_in_turns(
    model: OnnxKokoro, pack: Floats
) -> None:
    alone = spoken(begin(model, pack))
    one, other = begin(model, pack), begin(model, pack, seed=6)
    heard = []

    while (window := one.next_window()) is not None:
        heard.append(window)
        other.next_window()

    assert_array_equal(np.concatenate(heard), alone)


@pytest.mark.model
@pytest.mark.timeout(240)
def test_a_window_that_is_cut_short_is_computed_again_with_the_same_samples(
    model: OnnxKokoro, pack: Floats
) -> None:
    untouched, utterance = spoken(begin(model, pack)), begin(model, pack)
    heard, cuts = [], 0

    while not utterance.done:
        cut = threading.Timer(0.03, model.interrupt)
        if cuts < 4:
            cut.start()
        try:
            window = utterance.next_window()
            heard += [] if window is None else [window]
        except Interrupted:
            cuts += 1
        finally:
            cut.cancel()
            if cut.ident is not None:
                cut.join()
            model.rearm()

    assert cuts == 4
    assert_array_equal(np.concatenate(heard), untouched)


@pytest.mark.model
@pytest.mark.timeout(240)
def test_nothing_runs_between_an_interrupt_and_its_rearm(model: OnnxKokoro, pack: Floats) -> None:
    utterance = begin(model, pack)
    model.interrupt()

    with pytest.raises(Interrupted):
        utterance.next_window()
    with pytest.raises(Interrupted):
        utterance.next_window()
    model.rearm()

    assert len(spoken(utterance)) == utterance.samples


@pytest.mark.model
@pytest.mark.timeout(240)
def test_twice_the_speed_takes_about_half_the_time(model: OnnxKokoro, pack: Floats) -> None:
    lengths = []
    for speed in (0.5, 1.0, 2.0):
        utterance = begin(model, pack, PHONEMES, speed=speed)
        utterance.next_window()
        lengths.append(int(np.ptp(utterance.symbol_samples)))

    assert lengths[0] / lengths[1] == pytest.approx(2, rel=0.1)
    assert lengths[1] / lengths[2] == pytest.approx(2, rel=0.1)


@pytest.mark.model
@pytest.mark.timeout(240)
def test_an_utterance_is_loud_inside_and_quiet_at_its_ends(model: OnnxKokoro, pack: Floats) -> None:
    audio = np.abs(spoken(begin(model, pack, PHONEMES)).astype(float)) / 32767

    assert 0.1 < audio.max() < 1
    assert audio[:240].max() < 0.02
    assert audio[-240:].max() < 0.02


@pytest.mark.model
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("broken", "how"),
    [
        ("text.onnx", "missing"),
        ("text.onnx", "truncated"),
        ("acoustic.onnx", "junk"),
        ("generator.onnx", "truncated"),
        ("norm_style.npz", "junk"),
    ],
)
def test_a_broken_form_is_a_typed_load_error(
    form: Path, tmp_path: Path, broken: str, how: str
) -> None:
    for path in form.iterdir():
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / broken).unlink()
    if how == "truncated":
        (tmp_path / broken).write_bytes((form / broken).read_bytes()[:100_000])
    elif how == "junk":
        (tmp_path / broken).write_bytes(b"junk" * 100)

    with pytest.raises(ModelLoadFailed, match="install it again"):
        OnnxKokoro.load(tmp_path)


def test_an_unknown_runtime_is_a_typed_load_error(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadFailed, match="'tpu'; choose one of auto, onnxruntime, openvino"):
        OnnxKokoro.load(tmp_path, runtime="tpu")


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.timeout(240)
def test_openvino_computes_the_same_window_and_can_be_cut_short(
    model: OnnxKokoro, form: Path
) -> None:
    pytest.importorskip("openvino")
    vino = OpenVinoGraph(form / "generator.onnx", threads=1)
    generator, stop = np.random.default_rng(0), Stop()
    shapes = {"x": (1, 512, 28), "har": (1, 22, 28 * 60 + 1), "affine": (1, 2, 9216)}
    inputs = {n: generator.standard_normal(s, np.float32) * 0.1 for n, s in shapes.items()}

    (spectra,) = stop.run(vino, inputs)

    expected = model.generate(*(value[0] for value in inputs.values()))[:, 478:-478]
    assert snr_db(expected, spectra[0]) > 60
    stop.set()
    with pytest.raises(Interrupted):
        stop.run(vino, inputs)
    stop.clear()
    assert_array_equal(stop.run(vino, inputs)[0], spectra)


@pytest.mark.model
@pytest.mark.timeout(240)
def test_graphs_of_another_version_are_a_typed_load_error(form: Path, tmp_path: Path) -> None:
    for path in form.iterdir():
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / "generator.onnx").unlink()
    (tmp_path / "generator.onnx").symlink_to(form / "text.onnx")

    with pytest.raises(ModelLoadFailed, match="another version"):
        OnnxKokoro.load(tmp_path)
