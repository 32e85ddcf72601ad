"""`plait models list|pull|verify|remove`: the store's operations as commands.

Results go to stdout, progress and errors to stderr. StoreError passes through to `cli`, which turns
it into an exit code. Does NOT know: how models are fetched or kept, the server.
"""

from __future__ import annotations

import argparse
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from plait.config import load_config
from plait.exits import EXIT_FAILED, EXIT_OK
from plait.installation import program_name
from plait.models import InstalledModel, ModelStore
from plait.models.catalogue import STARTERS
from plait.models.errors import ModelDamaged
from plait.models.store import Engine
from plait.terminal import fail, progress_display, say


def pull_model(name: str, engine: Engine) -> InstalledModel:
    """The model in the engine's form, fetched and converted with progress if it is not there."""
    with _sigterm_interrupts(), progress_display(name) as progress:
        return ModelStore().ensure(name, engine, progress)


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """Let SIGTERM unwind like Ctrl-C, so that a stopped pull cleans up behind itself."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def list_models(parsed: argparse.Namespace) -> int:
    load_config(parsed.config)
    installed = ModelStore().installed()
    for model in installed:
        say(_installed_line(model))
    for name in sorted(STARTERS.keys() - {model.name for model in installed}):
        starter = STARTERS[name]
        say(
            f"{name}  not installed ({starter.quantization}, {_size(starter.file_bytes)};"
            f" {program_name()} models pull {name})"
        )
    return EXIT_OK


def _installed_line(model: InstalledModel) -> str:
    gguf = f"gguf {model.quantization}".strip()
    forms = [text for text, path in ((gguf, model.gguf), ("mlx", model.mlx)) if path is not None]
    return (
        f"{model.name}  {model.method}, {' and '.join(forms)}, {_size(model.size_bytes)},"
        f" context {model.context_limit} tokens, {model.licence}, in {model.directory}"
    )


def pull(parsed: argparse.Namespace) -> int:
    config = load_config(parsed.config)
    name = parsed.name or config.chat_model
    configured: Engine = "mlx" if config.chat_engine == "mlx" else "llamacpp"
    model = pull_model(name, parsed.engine or configured)
    say(f"{model.name} is installed in {model.directory}")
    return EXIT_OK


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
