"""Fixtures: tiny models, and an index and a registry that hold only what carries them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from plait.models import InstalledModel, ModelStore
from plait.models.sources import Starter

from .tiny import write_gguf, write_wheel
from .tiny_embedder import embedding_starter, write_embedder
from .tiny_listener import write_listener
from .tiny_speech import only_index, only_registry, speech_store_of, write_speaker
from .whisper.tiny import ENGLISH, write_ggml, write_model


@pytest.fixture(scope="session")
def tiny_gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place pip looks at."""
    return only_index(tmp_path, monkeypatch)


@pytest.fixture
def tiny_starter(index: Path, tiny_gguf: Path) -> Starter:
    return write_wheel(index, tiny_gguf)


@pytest.fixture
def store(tmp_path: Path, tiny_starter: Starter) -> ModelStore:
    return ModelStore(tmp_path / "home", {"tiny": tiny_starter})


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place npm looks at."""
    return only_registry(tmp_path, monkeypatch)


@pytest.fixture
def speaker(index: Path, registry: Path) -> Starter:
    return write_speaker(index, registry)


@pytest.fixture
def speech_store(tmp_path: Path, speaker: Starter) -> ModelStore:
    return speech_store_of(tmp_path, speaker)


@pytest.fixture(scope="session")
def speaker_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the speaker was installed in its ONNX form, once."""
    root = tmp_path_factory.mktemp("speaker")
    with pytest.MonkeyPatch.context() as patch:
        starter = write_speaker(only_index(root, patch), only_registry(root, patch))
        speech_store_of(root, starter).ensure("speaker", "kokoro-onnx")
    return root / "home"


@pytest.fixture
def installed(speech_store: ModelStore, speaker_home: Path, tmp_path: Path) -> InstalledModel:
    """The speaker in `speech_store`, without the wait for pip."""
    shutil.copytree(speaker_home, tmp_path / "home")
    model = speech_store.find("speaker")
    assert model is not None
    return model


@pytest.fixture
def listener(index: Path, ct2_model: Path) -> Starter:
    return write_listener(index, ct2_model)


@pytest.fixture
def listener_store(tmp_path: Path, listener: Starter) -> ModelStore:
    return ModelStore(tmp_path / "home", {"listener": listener})


@pytest.fixture(scope="session")
def listener_home(tmp_path_factory: pytest.TempPathFactory, ct2_model: Path) -> Path:
    """Where the listener was installed, once."""
    root = tmp_path_factory.mktemp("listener")
    with pytest.MonkeyPatch.context() as patch:
        starter = write_listener(only_index(root, patch), ct2_model)
        ModelStore(root / "home", {"listener": starter}).ensure("listener", "whisper")
    return root / "home"


@pytest.fixture
def installed_listener(
    listener_store: ModelStore, listener_home: Path, tmp_path: Path
) -> InstalledModel:
    """The listener in `listener_store`, without the wait for pip."""
    shutil.copytree(listener_home, tmp_path / "home")
    model = listener_store.find("listener")
    assert model is not None
    return model


@pytest.fixture(scope="session")
def english_ggml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Whisper model as a ggml file that is in order."""
    return write_ggml(tmp_path_factory.mktemp("ggml") / "ggml-english.bin", ENGLISH)


@pytest.fixture(scope="session")
def ct2_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """model.bin of CTranslate2, with its tokenizer.json beside it."""
    return write_model(tmp_path_factory.mktemp("ct2"))


@pytest.fixture
def embedder(tmp_path: Path) -> Path:
    """A sentence-transformers directory that is in order."""
    return write_embedder(tmp_path / "embedder")


@pytest.fixture
def embedder_store(tmp_path: Path, index: Path, embedder: Path) -> ModelStore:
    return ModelStore(tmp_path / "home", {"embedder": embedding_starter(index, embedder)})


@pytest.fixture(scope="session")
def starter_model() -> InstalledModel:
    """The real starter model, in both forms, from the user's own store."""
    return ModelStore().ensure("smollm2-135m-instruct", "mlx")
