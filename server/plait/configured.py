"""Which models a configuration asks for: the default one of each method, then its `[[models]]`.

The one place that knows what "auto" means for an engine, which methods are off, and how a table
overrides the flat settings. Does NOT know: what is installed, how a model is fetched or loaded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from plait.config import Config
from plait.config_checks import ConfigError
from plait.config_tables import METHODS, MethodName, ModelTable
from plait.installation import best_speech_engine

# The names of a method's flat settings: engine, model, slots.
SETTINGS: Final[dict[MethodName, tuple[str, str, str]]] = {
    "chat": ("chat_engine", "chat_model", "slots"),
    "transcribe": ("transcribe_engine", "transcribe_model", "transcribe_slots"),
    "synthesize": ("speech_engine", "speech_model", "speech_slots"),
    "embed": ("embed_engine", "embed_model", "embed_slots"),
}
ENGINES: Final[dict[MethodName, tuple[str, ...]]] = {
    "chat": ("llamacpp", "mlx", "scripted"),
    "transcribe": ("whisper", "scripted"),
    "synthesize": ("kokoro-onnx", "kokoro-torch", "scripted"),
    "embed": ("onnx", "scripted"),
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """`settings`: the configuration as it holds for this model, its engine named, never "auto".

    `optional`: its engine was left to us, so the rest starts without it where it cannot run.
    `listed`: it is one of `[[models]]`.
    """

    method: MethodName
    settings: Config
    optional: bool
    preload: bool
    listed: bool = False

    @property
    def engine(self) -> str:
        engine: str = getattr(self.settings, SETTINGS[self.method][0])
        return engine

    @property
    def model(self) -> str:
        """As it is configured: a catalogue name, hf:… or a path."""
        model: str = getattr(self.settings, SETTINGS[self.method][1])
        return model


def wanted_models(config: Config) -> list[Wanted]:
    """By method, its default first. Raises ConfigError for an engine its method does not have."""
    wanted = []
    for method in METHODS:
        engine = engine_of(config, method)
        if engine != "off":
            asked = getattr(config, SETTINGS[method][0])
            named: dict[str, Any] = {SETTINGS[method][0]: engine}
            settings = replace(config, **named)
            wanted.append(Wanted(method, settings, asked == "auto", config.preload))
        tables = [table for table in config.models if table.method == method]
        wanted += [_of_table(config, table) for table in tables]
    return wanted


def engine_of(config: Config, method: MethodName) -> str:
    """Of the method's default model: "auto" resolved, "off" where the method is off."""
    asked: str = getattr(config, SETTINGS[method][0])
    return _automatic(method) if asked == "auto" else asked


def default_model(config: Config, method: MethodName) -> str:
    """As it is configured, also where the method is off."""
    model: str = getattr(config, SETTINGS[method][1])
    return model


def _automatic(method: MethodName) -> str:
    return best_speech_engine() if method == "synthesize" else ENGINES[method][0]


def _of_table(config: Config, table: ModelTable) -> Wanted:
    engine_key, model_key, slots_key = SETTINGS[table.method]
    engine = table.engine
    if engine == "auto":
        default = engine_of(config, table.method)
        engine = _automatic(table.method) if default == "off" else default
    if engine not in ENGINES[table.method]:
        raise ConfigError(
            f"[[models]] {table.model}: there is no engine {engine!r} for {table.method}; write one"
            f" of {', '.join(ENGINES[table.method])}, or leave it out.",
            key="models",
        )
    given: dict[str, Any] = {engine_key: engine, model_key: table.model}
    if table.slots:
        given[slots_key] = table.slots
    for name in ("context_tokens", "max_tokens", "kv_budget_bytes"):
        if value := getattr(table, name):
            given[name] = value
    settings = replace(config, **given)
    return Wanted(table.method, settings, optional=False, preload=table.preload, listed=True)
