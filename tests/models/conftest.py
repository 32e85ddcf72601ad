"""Fixtures: one tiny GGUF per session, and an index that holds only its wheel."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.models import InstalledModel, ModelStore
from plait.models.catalogue import Starter

from .tiny import write_gguf, write_wheel


@pytest.fixture(scope="session")
def tiny_gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place pip looks at."""
    directory = tmp_path / "index"
    directory.mkdir()
    for name, value in {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(directory),
        "PIP_CONFIG_FILE": "/dev/null",
    }.items():
        monkeypatch.setenv(name, value)
    return directory


@pytest.fixture
def tiny_starter(index: Path, tiny_gguf: Path) -> Starter:
    return write_wheel(index, tiny_gguf)


@pytest.fixture
def store(tmp_path: Path, tiny_starter: Starter) -> ModelStore:
    return ModelStore(tmp_path / "home", {"tiny": tiny_starter})


@pytest.fixture(scope="session")
def starter_model() -> InstalledModel:
    """The real starter model, in both forms, from the user's own store."""
    return ModelStore().ensure("smollm2-135m-instruct", "mlx")
