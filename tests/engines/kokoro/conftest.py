"""The real speech model, loaded once for all tests of this folder that need nothing of their own.

It is closed when the folder's tests are over. Tests that interrupt it rearm it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from plait.bench.kokoro_statistics import WholeUtterance
from plait.engines.kokoro.onnx_backend import OnnxKokoro
from plait.engines.kokoro.voices import KokoroVoices
from plait.models import InstalledModel, ModelStore


@pytest.fixture(scope="package")
def installed() -> InstalledModel:
    return ModelStore().ensure("kokoro-82m", "kokoro-onnx")


@pytest.fixture(scope="package")
def form(installed: InstalledModel) -> Path:
    directory = installed.form("kokoro-onnx")
    assert directory is not None
    return directory


@pytest.fixture(scope="package")
def voices(installed: InstalledModel) -> KokoroVoices:
    assert installed.voices_dir is not None
    return KokoroVoices(installed.voices_dir)


@pytest.fixture(scope="package")
def loaded(form: Path) -> Iterator[OnnxKokoro]:
    model = OnnxKokoro.load(form, threads=2)
    yield model
    model.close()


@pytest.fixture(scope="package")
def published(installed: InstalledModel) -> WholeUtterance:
    """The generator as it was published."""
    return WholeUtterance(installed.directory / "model.onnx", threads=2)
