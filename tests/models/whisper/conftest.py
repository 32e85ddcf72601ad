"""Fixtures: tiny Whisper files, written once."""

from __future__ import annotations

from pathlib import Path

import pytest

from .tiny import ENGLISH, write_ggml, write_model


@pytest.fixture(scope="session")
def english_ggml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ggml file that is in order."""
    return write_ggml(tmp_path_factory.mktemp("ggml") / "ggml-english.bin", ENGLISH)


@pytest.fixture(scope="session")
def ct2_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """model.bin of CTranslate2, with its tokenizer.json beside it."""
    return write_model(tmp_path_factory.mktemp("ct2"))
