"""Kokoro on onnxruntime: the real graphs against the plain generator, cuts, and broken files."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from plait.bench.kokoro_statistics import WholeUtterance
from plait.engines.kokoro.model import NORM_CHANNELS, Floats, Interrupted
from plait.engines.kokoro.norms import NormPredictor
from plait.engines.kokoro.onnx_backend import PORTS, STYLE, OnnxKokoro
from plait.engines.kokoro.runtimes import OnnxRuntimeGraph, OpenVinoGraph, Stop
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
from plait.speech.vocabulary import PADDING, ids
from tests.proofs.sizes import FULL

LONG = "ðə wˈɛðəɹ lˈʊks ɹˈiəli lˈʌvli hˈɪɹ ðɪs mˈɔɹnɪŋ."  # noqa: RUF001 - phonemes
SHORT = "ðə wˈɛðəɹ lˈʊks."  # noqa: RUF001 - spoken in four windows
PHONEMES = LONG if FULL else SHORT


@pytest.fixture
def model(loaded: OnnxKokoro) -> OnnxKokoro:
    loaded.rearm()
    return loaded


@pytest.fixture(scope="module")
def pack(voices: KokoroVoices) -> Floats:
    return voices.pack("af_heart")


@pytest.fixture(scope="module")
def alone(loaded: OnnxKokoro, pack: Floats) -> Samples:
    """What SHORT sounds like when nothing else is computed."""
    loaded.rearm()
    return spoken(begin(loaded, pack))


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

    def __init__(self, model: OnnxKokoro, pack: Floats, published: WholeUtterance) -> None:
        style = pack[len(PHONEMES) - 1]
        symbols = np.array([PADDING, *ids(PHONEMES), PADDING])
        durations, d, t = model.text(symbols, style)
        units = np.rint(durations).astype(int)
        repeats = np.repeat(np.arange(len(symbols)), units)
        x, f0 = model.acoustic(d[:, repeats], t[:, repeats], style)
        har = HarmonicSource(f0, 5).spectra(0, len(f0))
        spectra, self.mean, self.std = published.measure(x, har, model.norm_style(style))
        samples = samples_of(spectra, 0, 300 * len(f0))
        self.audio = samples[(2 * units[0] - LEAD_FRAMES) * 300 :]

    def predict(self, *features: Floats) -> tuple[Floats, Floats]:
        return self.mean, self.std


@pytest.mark.model
@pytest.mark.timeout(240)
def test_windows_with_an_utterances_own_statistics_equal_the_published_model(
    model: OnnxKokoro, pack: Floats, published: WholeUtterance
) -> None:
    whole = WholePass(model, pack, published)

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
    model: OnnxKokoro, pack: Floats, alone: Samples
) -> None:
    one, other = begin(model, pack), begin(model, pack, seed=6)
    heard = []

    while (window := one.next_window()) is not None:
        heard.append(window)
        other.next_window()

    assert_array_equal(np.concatenate(heard), alone)


@pytest.mark.model
@pytest.mark.timeout(240)
def test_a_window_that_is_cut_short_is_computed_again_with_the_same_samples(
    model: OnnxKokoro, pack: Floats, alone: Samples
) -> None:
    utterance = begin(model, pack)
    heard: list[Samples] = []
    cuts = 0

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
    assert_array_equal(np.concatenate(heard), alone)


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
        utterance = begin(model, pack, LONG, speed=speed)
        utterance.next_window()
        lengths.append(int(np.ptp(utterance.symbol_samples)))

    assert lengths[0] / lengths[1] == pytest.approx(2, rel=0.1)
    assert lengths[1] / lengths[2] == pytest.approx(2, rel=0.1)


@pytest.mark.model
@pytest.mark.timeout(240)
def test_an_utterance_is_loud_inside_and_quiet_at_its_ends(alone: Samples) -> None:
    audio = np.abs(alone.astype(float)) / 32767

    assert 0.1 < audio.max() < 1
    assert audio[:240].max() < 0.02
    assert audio[-240:].max() < 0.02


def graph(name: str) -> onnx.ModelProto:
    """A few bytes with the ports of the graph of that name."""
    of = onnx.helper.make_node
    nodes = {
        "text": [
            of("Cast", ["tokens"], ["durations"], to=onnx.TensorProto.FLOAT),
            of("Unsqueeze", ["durations", "axis"], ["lines"]),
            of("Expand", ["lines", "wide"], ["d"]),
            of("Expand", ["lines", "narrow"], ["t"]),
        ],
        "acoustic": [
            of("Identity", ["t"], ["x"]),
            of("ReduceMean", ["t"], ["f0"], axes=[1]),
        ],
        "generator": [of("Identity", ["har"], ["spectra"])],
    }[name]
    dims: dict[str, list[int | str]] = {
        **{"tokens": [1, "n"], "style": [1, 256], "durations": [1, "n"], "d": [1, 640, "n"]},
        **{"t": [1, 512, "n"], "x": [1, 512, "m"], "f0": [1, 1, "m"], "har": [1, 22, "h"]},
        **{"affine": [1, 2, 9216], "spectra": [1, 22, "h"]},
    }
    ports = [
        onnx.helper.make_tensor_value_info(
            port, onnx.TensorProto.INT64 if port == "tokens" else onnx.TensorProto.FLOAT, dims[port]
        )
        for port in PORTS[name]
    ]
    made = {output for node in nodes for output in node.output}
    shapes = {"axis": [1], "wide": [1, 640, 1], "narrow": [1, 512, 1]} if name == "text" else {}
    drawn = onnx.helper.make_graph(
        nodes,
        name,
        [port for port in ports if port.name not in made],
        [port for port in ports if port.name in made],
        [onnx.numpy_helper.from_array(np.array(v, np.int64), k) for k, v in shapes.items()],
    )
    opset = onnx.helper.make_opsetid("", 13)
    return onnx.helper.make_model(drawn, ir_version=8, opset_imports=[opset])


@pytest.fixture
def small_form(tmp_path: Path) -> Path:
    """A form whose files are whole, and hardly compute: loading looks at nothing else."""
    for name in PORTS:
        onnx.save(graph(name), tmp_path / f"{name}.onnx")
    weight = np.zeros((STYLE, 2, NORM_CHANNELS), np.float32)
    np.savez(tmp_path / "norm_style.npz", weight=weight, bias=weight[0])
    OnnxKokoro.load(tmp_path).close()
    return tmp_path


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
def test_a_broken_form_is_a_typed_load_error(small_form: Path, broken: str, how: str) -> None:
    path = small_form / broken
    if how == "missing":
        path.unlink()
    elif how == "truncated":
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    else:
        path.write_bytes(b"junk" * 100)

    with pytest.raises(ModelLoadFailed, match="install it again"):
        OnnxKokoro.load(small_form)


def test_graphs_of_another_version_are_a_typed_load_error(small_form: Path) -> None:
    onnx.save(graph("text"), small_form / "generator.onnx")

    with pytest.raises(ModelLoadFailed, match="another version"):
        OnnxKokoro.load(small_form)


def test_an_unknown_runtime_is_a_typed_load_error(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadFailed, match="'tpu'; choose one of auto, onnxruntime, openvino"):
        OnnxKokoro.load(tmp_path, runtime="tpu")


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.timeout(240)
def test_openvino_computes_the_same_and_can_be_cut_short(form: Path) -> None:
    """The generator, which takes longest to compile, in full size only."""
    pytest.importorskip("openvino")
    random, stop = np.random.default_rng(0), Stop()
    inputs: dict[str, NDArray[Any]] = {
        "tokens": np.array([[PADDING, *ids(SHORT), PADDING]]),
        "style": random.standard_normal((1, 256), np.float32) * 0.1,
    }
    name = "text"
    if FULL:
        name = "generator"
        shapes = {"x": (1, 512, 28), "har": (1, 22, 28 * 60 + 1), "affine": (1, 2, 9216)}
        inputs = {n: random.standard_normal(s, np.float32) * 0.1 for n, s in shapes.items()}
    vino = OpenVinoGraph(form / f"{name}.onnx", threads=1)

    outputs = stop.run(vino, inputs)

    expected = stop.run(OnnxRuntimeGraph(form / f"{name}.onnx", threads=1), inputs)
    for one, other in zip(expected, outputs, strict=True):
        assert snr_db(one, other) > 60
    stop.set()
    with pytest.raises(Interrupted):
        stop.run(vino, inputs)
    stop.clear()
    for one, other in zip(outputs, stop.run(vino, inputs), strict=True):
        assert_array_equal(one, other)
