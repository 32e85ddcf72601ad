"""From the configuration to what is served: every model it asks for fetched, checked, as a spec.

What is left to us (engine "auto") must not keep the rest from starting: where it cannot run, or
cannot be fetched, the server starts without it and says why. Does NOT know sockets or workers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import msgspec

from plait.config import Config
from plait.config_checks import ConfigError, nearest
from plait.configured import Wanted, wanted_models
from plait.installation import engine_missing
from plait.speech.languages import BY_LETTER, missing
from plait.terminal import say

if TYPE_CHECKING:
    from plait.engines.base import LoadSpec
    from plait.models import InstalledModel
    from plait.models.forms import Engine

NAMES = {
    "chat": "Chat",
    "transcribe": "Transcription",
    "synthesize": "Speech",
    "embed": "Embedding",
}

Pull = Callable[[str, "Engine"], "InstalledModel"]


@dataclass(frozen=True, slots=True)
class Provided:
    """A model that can be served; `preload`: at the start, not when it is first asked for."""

    spec: LoadSpec
    preload: bool


def unavailable_engine(config: Config) -> str | None:
    """What to tell the operator when an engine that was asked for by name cannot run here."""
    for wanted in wanted_models(config):
        if not wanted.optional and (gone := engine_missing(wanted.engine)):
            what = f"the engine {wanted.engine} cannot run here: {gone.reason}."
            return f"{what} Run: {gone.next_step}"
    return None


def provide(config: Config, pull: Pull) -> list[Provided]:
    """By method, its default first. `pull` fetches what is not installed.

    Raises StoreError, and ConfigError for a voice or a name that cannot be.
    """
    provided: list[Provided] = []
    for wanted in wanted_models(config):
        model = _installed(wanted, pull)
        if model is not None or wanted.engine == "scripted":
            provided.append(Provided(_spec(wanted, model), wanted.preload))
    names = [p.spec.model for p in provided]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(
                f"two models are called {name!r}, and a client could name only one of them: leave"
                " one out of [[models]].",
                key="models",
            )
    return provided


def _installed(wanted: Wanted, pull: Pull) -> InstalledModel | None:
    from plait.models.errors import StoreError

    if wanted.engine == "scripted":
        return None
    engine = cast("Engine", wanted.engine)
    if not wanted.optional:
        return pull(wanted.model, engine)
    if gone := engine_missing(wanted.engine):
        say(f"{NAMES[wanted.method]} is off: {gone.reason}. To have it: {gone.next_step}")
        return None
    try:
        return pull(wanted.model, engine)
    except StoreError as error:
        say(f"{NAMES[wanted.method]} is off: {error}")
        return None


def _spec(wanted: Wanted, model: InstalledModel | None) -> LoadSpec:
    from plait.specs import spec_for

    if model is not None and wanted.method == "chat":
        wanted = _within_context(wanted, model)
    if model is not None and wanted.method == "synthesize":
        _check_voice(wanted.settings, model)
    spec = spec_for(wanted, model)
    if model is None and wanted.listed:  # several scripted ones go by the names they are given
        return msgspec.structs.replace(spec, model=wanted.model)
    return spec


def _within_context(wanted: Wanted, model: InstalledModel) -> Wanted:
    limit = model.context_limit
    if wanted.settings.context_tokens <= limit:
        return wanted
    say(f"{model.name} has a context of {limit} tokens; slots get that.")
    return replace(wanted, settings=replace(wanted.settings, context_tokens=limit))


def _check_voice(config: Config, model: InstalledModel) -> None:
    if config.speech_voice not in model.voice_names:
        hint = nearest(config.speech_voice, model.voice_names)
        hint = hint or f" Use one of: {', '.join(model.voice_names)} (blends are for requests)."
        raise ConfigError(
            f"speech_voice: {model.name} has no voice {config.speech_voice!r}.{hint}",
            key="speech_voice",
        )
    language = BY_LETTER.get(config.speech_voice[:1])
    if language is not None and (needed := missing(language)):
        raise ConfigError(
            f"speech_voice: {config.speech_voice!r} speaks {language}, which cannot be pronounced"
            f" here. Run pip install {needed}, or take another voice.",
            key="speech_voice",
        )
