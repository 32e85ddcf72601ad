"""What each worker loads: from the configuration and the installed models to a `LoadSpec`.

No engine plans more threads than the core budget has CPUs, and all of them load within it.
Does NOT know: how models get onto the disk, what a worker does with its spec.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from plait.config import Config
from plait.configured import Wanted
from plait.engines.base import LoadSpec
from plait.footprint import footprint_bytes
from plait.machine_cores import core_ids
from plait.models.whisper.languages import languages_of

if TYPE_CHECKING:
    from plait.models.store import InstalledModel


def spec_for(wanted: Wanted, model: InstalledModel | None) -> LoadSpec:
    """What the worker of a configured model loads; `model` is None for the scripted engine."""
    build = {
        "chat": chat_spec,
        "transcribe": transcribe_spec,
        "synthesize": speech_spec,
        "embed": embed_spec,
    }[wanted.method]
    spec = build(wanted.settings, model)
    return msgspec.structs.replace(spec, memory_bytes=footprint_bytes(spec))


def chat_spec(config: Config, model: InstalledModel | None) -> LoadSpec:
    """What the chat worker loads; `model` is None only for the scripted engine."""
    cpus = core_ids(config.cores)
    weights = tokenizer = ""
    if model is not None:
        source = model.mlx if config.chat_engine == "mlx" else model.gguf
        weights, tokenizer = str(source), str(model.tokenizer)
    return LoadSpec(
        engine=config.chat_engine,
        method="chat",
        model=model.name if model is not None else "scripted",
        slots=config.slots,
        context_tokens=config.context_tokens,
        max_tokens=config.max_tokens,
        kv_budget_bytes=config.kv_budget_bytes,
        weights=weights,
        tokenizer=tokenizer,
        threads=chat_threads(len(cpus)),
        cpus=cpus,
        prefix_cache_bytes=config.prefix_cache_bytes,
    )


def speech_spec(config: Config, model: InstalledModel | None) -> LoadSpec:
    """What the speech worker loads; `model` is None only for the scripted engine.

    `config.speech_engine` names an engine: neither "auto" nor "off" comes here.
    """
    cpus = core_ids(config.cores)
    weights, options = "", {}
    if model is not None:
        weights = str(model.form(config.speech_engine))
        options = {
            "voices": str(model.voices_dir),
            "runtime": config.speech_runtime,
            "device": config.speech_device,
        }
    return LoadSpec(
        engine=config.speech_engine,
        method="synthesize",
        model=model.name if model is not None else "scripted-speech",
        slots=config.speech_slots,
        context_tokens=0,
        max_tokens=0,
        weights=weights,
        threads=min(config.speech_threads or speech_threads(len(cpus)), len(cpus)),
        cpus=cpus,
        options=options,
    )


def transcribe_spec(config: Config, model: InstalledModel | None) -> LoadSpec:
    """What the transcription worker loads; `model` is None only for the scripted engine.

    Slots 0 leave it to the worker how many streams its cores can follow.
    """
    cpus = core_ids(config.cores)
    weights, options = "", {}
    if model is not None:
        path = model.form("whisper")
        assert path is not None, "the model was installed for this engine"
        weights, options = str(path), {"languages": list(languages_of(path))}
    return LoadSpec(
        engine="scripted" if model is None else "whisper",
        method="transcribe",
        model=model.name if model is not None else "scripted-transcribe",
        slots=config.transcribe_slots,
        context_tokens=0,
        max_tokens=0,
        weights=weights,
        threads=min(config.transcribe_cores or len(cpus), len(cpus)),
        cpus=cpus,
        options=options,
    )


def embed_spec(config: Config, model: InstalledModel | None) -> LoadSpec:
    """What the embedding worker loads; `model` is None only for the scripted engine."""
    cpus = core_ids(config.cores)
    path = None if model is None else model.form("onnx")
    return LoadSpec(
        engine="scripted" if model is None else "onnx",
        method="embed",
        model=model.name if model is not None else "scripted-embed",
        slots=config.embed_slots,
        context_tokens=0,
        max_tokens=0,
        weights="" if path is None else str(path),
        threads=min(config.embed_threads or len(cpus), len(cpus)),
        cpus=cpus,
    )


def chat_threads(cores: int) -> int:
    """Half the cores, at most 8: more only waits when something else wants the machine."""
    return max(1, min(8, cores // 2))


def speech_threads(cores: int) -> int:
    """All cores, at most 4: speech computes in short bursts, and its threads do not spin."""
    return min(4, cores)
