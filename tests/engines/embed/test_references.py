"""Vectors against what sentence-transformers and transformers computed (remake_references.py)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from plait.engines.base import Finished, Item, LoadSpec, Prepare
from plait.models import ModelStore
from plait.models.embedding.families import Shape, Weights
from plait.models.embedding.settings import EmbeddingSettings
from plait.models.embedding.transformer import draw
from tests.engines.embed.remake_references import DATA, FAMILIES, IDS
from tests.engines.flags import Flags
from tests.proofs.sizes import FULL

pytest.importorskip("onnxruntime")
from plait.engines.embed.engine import EmbedEngine
from plait.engines.embed.loading import load
from plait.engines.embed.model import Interrupted, OnnxModel

TEXTS: list[str] = json.loads((DATA / "texts.json").read_text(encoding="utf-8"))
REFERENCE: NDArray[np.float32] = np.load(DATA / "all-minilm-l6-v2.npy")
# How many texts in a batch, and after how many the same ones come again.
BATCH, PERIOD = (1000, 37 * 7) if FULL else (160, 37 * 3)
SENTENCES = 300 if FULL else 60
LEAST = {"all-minilm-l6-v2": 1 - 1e-3, "all-minilm-l6-v2-int8": 0.99}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_drawn_graph_computes_what_the_family_does(family: str, tmp_path: Path) -> None:
    config = json.loads((DATA / family / "config.json").read_text())
    shape = Shape.of(config)
    draw(shape, Weights(DATA / family / "model.safetensors", family), 24, tmp_path, _silent)
    expected = np.load(DATA / family / "expected.npy")

    settings = EmbeddingSettings(16, 24, pooling=("cls", "last"), pad_id=1)
    found = OnnxModel(tmp_path, settings, threads=1).embed(IDS)

    ends = [row[len(ids) - 1] for row, ids in zip(expected, IDS, strict=True)]
    assert found == pytest.approx(np.concatenate([expected[:, 0], ends], axis=1), abs=1e-5)


def test_an_interrupted_model_computes_again_once_it_is_rearmed(tmp_path: Path) -> None:
    weights = Weights(DATA / "bert" / "model.safetensors", "bert")
    shape = Shape.of(json.loads((DATA / "bert" / "config.json").read_text()))
    draw(shape, weights, 24, tmp_path, _silent)
    model = OnnxModel(tmp_path, EmbeddingSettings(16, 24), threads=1)

    model.interrupt()
    with pytest.raises(Interrupted):
        model.embed(IDS)
    model.rearm()

    assert model.embed(IDS).shape == (2, 16)


# --- the starters --------------------------------------------------------------------------------


def engine_of(name: str) -> EmbedEngine:
    form = ModelStore().ensure(name, "onnx").form("onnx")
    spec = LoadSpec("onnx", name, 8, 0, 0, method="embed", weights=str(form), threads=1)
    return load(spec, Flags(), _silent_report)


@pytest.fixture(scope="module")
def minilm() -> EmbedEngine:
    return engine_of("all-minilm-l6-v2")


def embed(engine: EmbedEngine, texts: list[str]) -> NDArray[np.float32]:
    engine.prepare(Prepare(1, "embed", {"texts": texts, "truncate": True}, "test"))
    engine.start(1)
    events = []
    while not engine.idle:
        events += engine.step()
    assert any(isinstance(event, Finished) for event in events)
    rows = [np.frombuffer(event.data, "<f4") for event in events if isinstance(event, Item)]
    return np.concatenate(rows).reshape(len(texts), -1)


@pytest.mark.model
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", LEAST)
def test_the_starters_give_the_references_vectors(name: str) -> None:
    engine = engine_of(name)

    found = embed(engine, TEXTS)

    engine.close()
    assert np.isfinite(found).all()
    assert (found * REFERENCE).sum(axis=1).min() >= LEAST[name]


@pytest.mark.model
@pytest.mark.timeout(300)
def test_in_a_batch_a_text_has_the_vector_it_has_alone(minilm: EmbedEngine) -> None:
    texts = [f"{TEXTS[n % 37]} {n % (PERIOD // 37)}" for n in range(BATCH)]

    batch = embed(minilm, texts)
    single = np.concatenate([embed(minilm, [text]) for text in texts[:: BATCH // 25]])

    assert (batch[:: BATCH // 25] * single).sum(axis=1).min() > 0.9999
    again = min(100, BATCH - PERIOD)
    assert (batch[:again] * batch[PERIOD : PERIOD + again]).sum(axis=1).min() > 0.9999


@pytest.mark.model
@pytest.mark.timeout(300)
def test_sentences_code_and_log_lines_have_finite_vectors_of_unit_length(
    minilm: EmbedEngine,
) -> None:
    kinds = ("It rained on day {}.", "x{0} = f({0})", "2026-11-30 12:{:02} ERROR [w] refused")
    found = embed(minilm, [kinds[n % 3].format(n) for n in range(SENTENCES)])

    assert np.isfinite(found).all()
    assert np.linalg.norm(found, axis=1) == pytest.approx(np.ones(SENTENCES), abs=1e-5)


def _silent(percent: float) -> None:
    """Nobody looks."""


def _silent_report(phase: str, percent: int | None) -> None:
    """Nobody looks."""
