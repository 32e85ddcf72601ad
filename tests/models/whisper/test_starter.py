"""What whisper.cpp itself makes of our files: the real starters, and files of structure only.

It runs in a child process, which a file that is not as it should be would end.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import plait
from plait.models import InstalledModel, ModelStore
from plait.models.whisper.ggml_file import GgmlHeader, check
from plait.models.whisper.languages import LANGUAGES, languages_of

from .tiny import ENGLISH, LARGE_V3, MULTILINGUAL, write_ggml

pytestmark = pytest.mark.model

JFK = Path(plait.__file__).parent / "bench" / "audio" / "jfk.wav"
SAID = (
    "and so my fellow americans ask not what your country can do for you ask what you can do for"
    " your country"
)

SCRIPT = """
import json, sys, wave
import numpy as np
import _pywhispercpp as pw

pw.whisper_log_set(lambda *said: None)
context = pw.whisper_init_from_file_with_params(sys.argv[1], pw.whisper_context_default_params())
params = pw.whisper_full_default_params(pw.whisper_sampling_strategy.WHISPER_SAMPLING_GREEDY)
params.n_threads, params.language, params.temperature_inc = 1, "en", 0
params.print_progress = params.print_realtime = params.print_timestamps = False
params.suppress_nst = True
samples = np.zeros(16000, np.float32)
if len(sys.argv) > 2:
    with wave.open(sys.argv[2]) as file:
        pcm = file.readframes(file.getnframes())
    samples = np.frombuffer(pcm, np.int16).astype(np.float32) / 32768
params.audio_ctx = 640
code = pw.whisper_full(context, params, samples, len(samples))
count = pw.whisper_full_n_segments(context)
text = b" ".join(pw.whisper_full_get_segment_text(context, number) for number in range(count))
print(json.dumps({
    "code": code,
    "text": text.decode(errors="replace"),
    "multilingual": bool(pw.whisper_is_multilingual(context)),
    "languages": [pw.whisper_lang_str(n) for n in range(pw.whisper_lang_max_id() + 1)],
}))
pw.whisper_log_set(None)
"""


def whisper_cpp(ggml: Path, *arguments: str) -> dict[str, Any]:
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(ggml), *arguments],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    said: dict[str, Any] = json.loads(result.stdout)
    return said


@pytest.fixture(scope="module")
def tiny_en() -> InstalledModel:
    return ModelStore().ensure("whisper-tiny.en", "whisper")


def test_the_english_starter_transcribes(tiny_en: InstalledModel) -> None:
    ggml = tiny_en.form("whisper")
    assert ggml is not None

    said = whisper_cpp(ggml, str(JFK))

    words = re.sub(r"[^a-z ]", "", said["text"].lower()).split()
    assert " ".join(words).replace("asked not", "ask not") == SAID
    assert (said["code"], said["multilingual"]) == (0, False)
    assert languages_of(ggml) == ("en",)


def test_our_languages_are_whispers_in_its_order(tiny_en: InstalledModel) -> None:
    ggml = tiny_en.form("whisper")
    assert ggml is not None

    assert whisper_cpp(ggml)["languages"] == list(LANGUAGES)


def test_the_english_starter_is_verified_and_kept_at_16_bit(tiny_en: InstalledModel) -> None:
    ggml = tiny_en.form("whisper")
    assert ggml is not None

    assert check(ggml).kind.name == "F16"
    assert ModelStore().verify("whisper-tiny.en") == tiny_en


@pytest.mark.parametrize(
    "header",
    [ENGLISH, MULTILINGUAL, LARGE_V3, replace(LARGE_V3, file_type=2008)],
    ids=["english", "multilingual", "large-v3", "Q5_0"],
)
def test_what_passes_the_check_whisper_cpp_can_run(tmp_path: Path, header: GgmlHeader) -> None:
    path = write_ggml(tmp_path / "ggml.bin", header)
    assert check(path) == header

    said = whisper_cpp(path)

    assert (said["code"], said["multilingual"]) == (0, header.multilingual)
