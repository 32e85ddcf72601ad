"""`plait models list|pull|verify|remove`: the store's operations as commands.

Results go to stdout, progress and errors to stderr. StoreError passes through to `cli`, which turns
it into an exit code. Does NOT know: how models are fetched or kept, the server.
"""

from __future__ import annotations

import argparse
from typing import cast

from plait.config import Config
from plait.config_sources import load_config
from plait.config_tables import METHODS
from plait.configured import ENGINES, default_model, engine_of, wanted_models
from plait.exits import EXIT_FAILED, EXIT_OK
from plait.installation import program_name
from plait.models import InstalledModel, ModelStore
from plait.models.catalogue import STARTERS, SUGGESTIONS
from plait.models.errors import ModelDamaged, StoreError
from plait.models.forms import METHOD_OF, Engine
from plait.models.sources import Method, Starter, is_ggml
from plait.models.whisper.languages import languages_of
from plait.terminal import fail, progress_display, say


def pull_model(name: str, engine: Engine) -> InstalledModel:
    """The model in the engine's form, fetched and converted with progress if it is not there.
    Raises StoreError."""
    with progress_display(name) as progress:
        return ModelStore().ensure(name, engine, progress)


def list_models(parsed: argparse.Namespace) -> int:
    load_config(parsed.config)
    store = ModelStore()
    installed = store.installed()
    for model in installed:
        say(_installed_line(model))
    for name in sorted(STARTERS.keys() - {model.name for model in installed}):
        say(
            f"{name}  not installed ({_content(STARTERS[name])};"
            f" {program_name()} models pull {name})"
        )
    for suggestion in SUGGESTIONS:
        if store.find(suggestion.configured) is None:
            say(
                f"{suggestion.configured}  not installed ({suggestion.method},"
                f" {_size(suggestion.bytes)}, {suggestion.note})"
            )
    return EXIT_OK


def _content(starter: Starter) -> str:
    size = _size(starter.unpacked_bytes)
    if starter.method == "chat":
        return f"{starter.quantization}, {size}"
    voices = f", {starter.voices.count} voices" if starter.voices else ""
    return f"{starter.method}{voices}, {size}"


def _installed_line(model: InstalledModel) -> str:
    return (
        f"{model.name}  {model.method}, {' and '.join(model.form_labels) or 'not converted'},"
        f" {_size(model.size_bytes)}, {_ability(model)}, {model.licence}, in {model.directory}"
    )


def _ability(model: InstalledModel) -> str:
    if model.method == "chat":
        return f"context {model.context_limit} tokens"
    if model.method == "synthesize":
        return f"{len(model.voice_names)} voices"
    if model.method == "embed":
        return f"texts of {model.context_limit} tokens"
    ggml = model.form("whisper")
    try:
        languages = () if ggml is None else languages_of(ggml)
    except StoreError:  # what is wrong with it is for `verify` to say
        languages = ()
    if not languages:
        return "unreadable"
    return "English" if languages == ("en",) else f"{len(languages)} languages"


def pull(parsed: argparse.Namespace) -> int:
    for name, engine in _wanted(load_config(parsed.config), parsed.name, parsed.engine):
        model = pull_model(name, engine)
        say(f"{model.name} is installed in {model.directory}")
    return EXIT_OK


def _wanted(config: Config, name: str | None, engine: Engine | None) -> list[tuple[str, Engine]]:
    """The models to pull, each with its engine: the named one, else those configured for the
    engine's method, else all that the configuration needs."""
    if name is not None:
        return [(name, engine or _engine_for(_method_of(name, config), config))]
    if engine is not None:
        return [(default_model(config, METHOD_OF[engine]), engine)]
    return [(w.model, _engine_for(w.method, w.settings)) for w in wanted_models(config)]


def _engine_for(method: Method, config: Config) -> Engine:
    """The configured one; also where the server would use no model, or none of that method."""
    engine = engine_of(config, method)
    return cast("Engine", ENGINES[method][0] if engine in ("scripted", "off") else engine)


def _method_of(name: str, config: Config) -> Method:
    """A ggml file is Whisper's; of other models that are no starters those are for chat that are
    not configured for something else."""
    if name in STARTERS:
        return STARTERS[name].method
    if is_ggml(name):
        return "transcribe"
    methods = {default_model(config, method): method for method in METHODS}
    methods |= {table.model: table.method for table in config.models}
    return methods.get(name, "chat")


def verify(parsed: argparse.Namespace) -> int:
    load_config(parsed.config)
    store = ModelStore()
    names = [parsed.name] if parsed.name else [model.name for model in store.installed()]
    if not names:
        say(f"No model is installed. Run {program_name()} models pull.")
    code = EXIT_OK
    for name in names:
        try:
            with progress_display(name) as progress:
                store.verify(name, progress)
            say(f"{name} is intact")
        except ModelDamaged as error:
            code = fail(str(error), EXIT_FAILED)
    return code


def remove(parsed: argparse.Namespace) -> int:
    load_config(parsed.config)
    freed = ModelStore().remove(parsed.name)
    say(f"{parsed.name} is removed; {_size(freed)} are free again")
    return EXIT_OK


def _size(size_bytes: int) -> str:
    """Megabytes, with a digit behind the point only where there is little before it."""
    megabytes = size_bytes / 1e6
    return f"{megabytes:.0f} MB" if megabytes >= 10 else f"{megabytes:.1f} MB"
