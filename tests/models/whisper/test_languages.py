"""Which languages a ggml file's model knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.models import ModelDamaged
from plait.models.whisper.languages import LANGUAGES, languages_of

from .tiny import LARGE_V3, MULTILINGUAL, write_ggml


def test_a_model_for_english_knows_english(english_ggml: Path) -> None:
    assert languages_of(english_ggml) == ("en",)


def test_a_multilingual_model_knows_99_and_large_v3_cantonese_too(tmp_path: Path) -> None:
    multilingual = languages_of(write_ggml(tmp_path / "ggml-m.bin", MULTILINGUAL))
    large_v3 = languages_of(write_ggml(tmp_path / "ggml-l.bin", LARGE_V3))

    assert len(set(multilingual)) == len(multilingual) == 99
    assert {"en", "de", "zh", "haw", "su"} <= set(multilingual)
    assert large_v3 == (*multilingual, "yue") == tuple(LANGUAGES)


def test_every_language_has_a_name_of_its_own() -> None:
    assert len(set(LANGUAGES.values())) == len(LANGUAGES) == 100
    assert (LANGUAGES["de"], LANGUAGES["jw"]) == ("German", "Javanese")


def test_a_missing_file_is_a_typed_error(tmp_path: Path) -> None:
    with pytest.raises(ModelDamaged, match="No such file"):
        languages_of(tmp_path / "ggml-missing.bin")
