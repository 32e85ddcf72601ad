"""An embedding model in the store: from its packages, from a directory, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from plait.models import ModelDamaged, ModelStore, UnsupportedModel
from plait.models.embedding.convert import convert
from plait.models.embedding.settings import EmbeddingSettings, read_settings

from .tiny_embedder import MODULES, POOLING, embedding_starter, write_json, write_modules

FORM = {"model.onnx", "weights.bin", "tokenizer.json", "embedding.json"}
Change = Callable[[Path], None]


def form_of(directory: Path, tmp_path: Path, weights: str = "model.safetensors") -> Path:
    """The form made of a directory, without a process of its own."""
    form = tmp_path / "form"
    form.mkdir()
    convert(directory / weights, form, lambda percent: None)
    return form


# --- from packages and directories ---------------------------------------------------------------


def test_a_starter_comes_from_several_packages_and_its_graph_is_drawn(
    embedder_store: ModelStore,
) -> None:
    model = embedder_store.ensure("embedder", "onnx")

    assert (model.method, model.licence, model.form_labels) == ("embed", "MIT", ("onnx",))
    form = model.form("onnx")
    assert form is not None
    assert {path.name for path in form.iterdir()} == FORM
    assert embedder_store.verify("embedder") == model
    assert embedder_store.remove("embedder") > 50_000


def test_another_file_beside_the_weights_than_the_catalogues_is_refused(
    tmp_path: Path, index: Path, embedder: Path
) -> None:
    starter = embedding_starter(index, embedder)
    files = (replace(starter.beside[0], sha256="0" * 64), *starter.beside[1:])
    store = ModelStore(tmp_path / "home", {"embedder": replace(starter, beside=files)})

    with pytest.raises(ModelDamaged, match=r"SHA-256 of plait_test_beside/tokenizer\.json"):
        store.ensure("embedder", "onnx")


def test_a_directory_of_the_operators_own_stays_where_it_is(
    embedder_store: ModelStore, embedder: Path
) -> None:
    before = sorted(embedder.rglob("*"))

    model = embedder_store.ensure(str(embedder), "onnx")

    assert sorted(embedder.rglob("*")) == before
    assert model.context_limit == 16
    assert embedder_store.ensure(str(embedder), "onnx") == model


def test_a_directory_that_changed_is_installed_anew(
    embedder_store: ModelStore, embedder: Path
) -> None:
    embedder_store.ensure(str(embedder), "onnx")

    write_json(embedder / "sentence_bert_config.json", {"max_seq_length": 8})

    assert embedder_store.ensure(str(embedder), "onnx").context_limit == 8


# --- what a directory says -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda _: None, {}),
        (lambda d: write_modules(d, *MODULES[:2]), {"normalize": False}),
        (lambda d: (d / "modules.json").unlink(), {"normalize": False}),
        (lambda d: (d / "sentence_bert_config.json").unlink(), {"max_tokens": 32}),
        (
            lambda d: write_json(d / "1_Pooling/config.json", {"pooling_mode": "cls"}),
            {"pooling": ("cls",)},
        ),
        (
            lambda d: write_json(
                d / "1_Pooling/config.json", {**POOLING, "pooling_mode_cls_token": True}
            ),
            {"pooling": ("cls", "mean"), "dims": 32},
        ),
        (
            lambda d: write_json(
                d / "config_sentence_transformers.json",
                {"prompts": {"query": "ask: ", "other": "x"}, "default_prompt_name": "query"},
            ),
            {"prefix": "ask: "},
        ),
        (
            lambda d: write_json(
                d / "sentence_bert_config.json", {"max_seq_length": 12, "do_lower_case": True}
            ),
            {"max_tokens": 12, "lower_case": True},
        ),
    ],
)
def test_settings_are_read_from_the_directory(
    embedder: Path, tmp_path: Path, change: Change, expected: dict[str, object]
) -> None:
    change(embedder)

    found = read_settings(form_of(embedder, tmp_path))

    plain = EmbeddingSettings(16, 16, pooling=("mean",), normalize=True, pad_id=1)
    for name in EmbeddingSettings.__struct_fields__:
        assert getattr(found, name) == expected.get(name, getattr(plain, name)), name


def test_dense_layers_are_taken_along(embedder: Path, tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy")
    write_modules(embedder, "Transformer", "Pooling", "Dense")
    (embedder / "2_Dense").mkdir()
    layer = {"out_features": 4, "activation_function": "torch.nn.modules.activation.Tanh"}
    write_json(embedder / "2_Dense" / "config.json", layer)
    weight = np.arange(64, dtype=np.float32).reshape(4, 16)
    safetensors.save_file({"linear.weight": weight}, embedder / "2_Dense" / "model.safetensors")

    form = form_of(embedder, tmp_path)

    assert (read_settings(form).dims, read_settings(form).dense) == (4, ("tanh",))
    with np.load(form / "dense.npz") as arrays:
        assert arrays["weight0"].tolist() == weight.tolist()
        assert arrays["bias0"].tolist() == [0] * 4


def test_a_family_that_cannot_be_drawn_is_taken_as_onnx(embedder: Path, tmp_path: Path) -> None:
    config = json.loads((embedder / "config.json").read_text())
    write_json(embedder / "config.json", {**config, "model_type": "deberta"})
    (embedder / "onnx").mkdir()
    (embedder / "onnx" / "model.onnx").write_bytes(b"graph")
    (embedder / "onnx" / "model.onnx_data").write_bytes(b"weights")

    form = form_of(embedder, tmp_path, "onnx/model.onnx")

    assert (form / "model.onnx").read_bytes() == b"graph"
    assert (form / "model.onnx_data").read_bytes() == b"weights"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda d: (d / "tokenizer.json").unlink(), r"no tokenizer\.json"),
        (lambda d: (d / "model.safetensors").unlink(), r"no onnx/model\.onnx"),
        (lambda d: write_modules(d, "Transformer", "LSTM"), "'LSTM' is not known"),
        (lambda d: write_modules(d, "Router", "Pooling"), "first module is no transformer"),
        (lambda d: write_modules(d, "Transformer"), "how the tokens' vectors become one"),
        (
            lambda d: write_json(d / "1_Pooling/config.json", {"pooling_mode": "attention"}),
            "pooling .'attention'. is not known",
        ),
    ],
)
def test_what_cannot_be_done_is_refused(
    embedder_store: ModelStore, embedder: Path, change: Change, why: str
) -> None:
    change(embedder)

    with pytest.raises(UnsupportedModel, match=why):
        embedder_store.ensure(str(embedder), "onnx")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda d: (d / "modules.json").write_text("{"), r"modules\.json cannot be read"),
        (lambda d: write_json(d / "modules.json", {}), "no list of modules"),
        (lambda d: write_json(d / "modules.json", [{"path": "../up"}]), "a folder outside"),
        (lambda d: write_json(d / "modules.json", [{"path": "/etc"}]), "a folder outside"),
        (lambda d: write_json(d / "modules.json", [{"path": 1}]), "a folder outside"),
        (lambda d: write_json(d / "sentence_bert_config.json", {"max_seq_length": 1}), "1 tokens"),
        (lambda d: (d / "model.safetensors").write_bytes(b"no"), "no safetensors file"),
        (lambda d: write_json(d / "config.json", {"model_type": "bert"}), "cannot be read"),
    ],
)
def test_what_is_damaged_is_said(
    embedder_store: ModelStore, embedder: Path, change: Change, why: str
) -> None:
    change(embedder)

    with pytest.raises(ModelDamaged, match=why):
        embedder_store.ensure(str(embedder), "onnx")


def test_a_single_file_is_no_embedding_model(embedder_store: ModelStore, embedder: Path) -> None:
    (embedder / "model.gguf").write_bytes(b"")

    with pytest.raises(UnsupportedModel, match="single file"):
        embedder_store.ensure(str(embedder / "model.gguf"), "onnx")
