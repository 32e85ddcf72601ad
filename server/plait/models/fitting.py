"""Which sources can become a model for which engine, known before anything is fetched.

What only the files themselves tell shows later, when they are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from plait.models.catalogue import STARTERS
from plait.models.embedding.source_directory import not_embedding
from plait.models.errors import UnsupportedModel
from plait.models.forms import METHOD_OF, Engine
from plait.models.install_whisper import not_whisper
from plait.models.sources import HubModel, LocalModel, Method, Source, Starter

_SETTING: Final[Mapping[Method, str]] = {
    "chat": "chat_model",
    "synthesize": "speech_model",
    "transcribe": "transcribe_model",
    "embed": "embed_model",
}


def require_possible(source: Source, engine: Engine) -> None:
    """Raise UnsupportedModel for a model of another method, and for MLX weights under llama.cpp;
    all else can be made to fit."""
    method = METHOD_OF[engine]
    known = _method_of(source)
    if known not in (None, method):
        fitting = [name for name, starter in STARTERS.items() if starter.method == method]
        raise UnsupportedModel(
            f"{source.name} is a model for {known}; the engine {engine} needs one for {method}.",
            f"Set {_SETTING[method]} = {' or '.join(map(repr, fitting))}.",
        )
    if method == "transcribe" and isinstance(source, HubModel) and known is None:
        raise not_whisper(source)
    if method == "embed" and _is_file(source):
        raise not_embedding("it is a single file")
    if engine == "llamacpp" and _is_mlx(source):
        raise UnsupportedModel(
            f"{source.description} holds MLX weights, which llama.cpp cannot load.",
            "Use --chat-engine mlx, or name a GGUF file (hf:org/name/file.gguf).",
        )


def _method_of(source: Source) -> Method | None:
    """As far as its name tells."""
    if isinstance(source, Starter):
        return source.method
    return "transcribe" if source.listens else None


def _is_file(source: Source) -> bool:
    if isinstance(source, HubModel):
        return source.file is not None
    return isinstance(source, LocalModel) and source.path.is_file()


def _is_mlx(source: Source) -> bool:
    if isinstance(source, HubModel):
        return source.file is None
    return isinstance(source, LocalModel) and source.path.is_dir()
