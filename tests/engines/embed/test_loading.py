"""A form becomes an engine, and every way in which it can be wrong is said as such."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from plait.engines.base import Finished, Item, LoadSpec, Prepare
from plait.errors import ModelLoadFailed
from plait.models.embedding.convert import convert
from tests.engines.flags import Flags
from tests.models.tiny_embedder import write_embedder

pytest.importorskip("onnxruntime")
from plait.engines.embed.engine import EmbedEngine
from plait.engines.embed.loading import load


@pytest.fixture
def form(tmp_path: Path) -> Path:
    """Of a tiny model: 16 dimensions, 16 tokens."""
    made = tmp_path / "form"
    made.mkdir()
    convert(write_embedder(tmp_path / "source") / "model.safetensors", made, lambda percent: None)
    return made


def load_form(form: Path, reports: list[str] | None = None) -> EmbedEngine:
    spec = LoadSpec("onnx", "tiny", 4, 0, 0, method="embed", weights=str(form))
    told = [] if reports is None else reports
    return load(spec, Flags(), lambda phase, percent: told.append(phase))


def test_a_loaded_model_embeds(form: Path) -> None:
    reports: list[str] = []
    engine = load_form(form, reports)

    engine.prepare(Prepare(1, "embed", {"texts": ["w1 w2", "", "w3 " * 16]}, "test"))
    engine.start(1)
    events = []
    while not engine.idle:
        events += engine.step()
    engine.close()

    (finished,) = [event for event in events if isinstance(event, Finished)]
    assert finished.usage == {"texts": 3, "tokens": 4 + 2, "failed": 1}
    assert list(dict.fromkeys(reports)) == ["libraries", "weights", "warm-up"]


def _write_dims(form: Path) -> None:
    settings = json.loads((form / "embedding.json").read_text())
    (form / "embedding.json").write_text(json.dumps({**settings, "dims": 17}))


@pytest.mark.parametrize(
    "damage",
    [
        lambda form: (form / "embedding.json").unlink(),
        lambda form: (form / "embedding.json").write_text("{}"),
        lambda form: (form / "tokenizer.json").write_text("{"),
        lambda form: (form / "model.onnx").write_bytes(b"no graph"),
        lambda form: (form / "weights.bin").unlink(),
        _write_dims,
    ],
)
def test_what_is_wrong_with_a_form_is_a_load_that_failed(
    form: Path, damage: Callable[[Path], object]
) -> None:
    damage(form)

    with pytest.raises(ModelLoadFailed, match="verify") as failure:
        load_form(form)

    assert str(form) not in failure.value.message


def test_vectors_of_a_model_that_does_not_normalise_are_its_own(form: Path) -> None:
    settings = json.loads((form / "embedding.json").read_text())
    (form / "embedding.json").write_text(json.dumps({**settings, "normalize": False}))
    engine = load_form(form)

    rows = []
    for job, normalize in ((1, True), (2, False)):
        params = {"texts": ["w1 w2 w3"], "normalize": normalize}
        engine.prepare(Prepare(job, "embed", params, "test"))
        engine.start(job)
        while not engine.idle:
            rows += [e.data for e in engine.step() if isinstance(e, Item)]
    engine.close()

    lengths = [float(np.linalg.norm(np.frombuffer(row, "<f4"))) for row in rows]
    assert lengths[0] == pytest.approx(1)
    assert lengths[1] != pytest.approx(1, abs=0.01)
