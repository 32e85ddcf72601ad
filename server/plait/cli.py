"""The command line: argv → a frozen Config, a model on disk, a bound socket → `app.serve`.

Imports little at the top: `plait --help` must not pay for the server, and the server must not pay
for the benchmarks. Errors are one line on stderr that ends in the next step.
Does NOT know: what the server does with its socket, how models are fetched.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from plait import __version__
from plait.config import Config, ConfigError
from plait.config_checks import nearest
from plait.config_sources import load_config
from plait.exits import (
    EXIT_CODES,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_MODEL,
    EXIT_OK,
    EXIT_PORT,
    EXIT_USAGE,
)
from plait.installation import best_speech_engine, engine_missing
from plait.listening import PortUnavailable, bind, listen, playground_url
from plait.terminal import fail, say

if TYPE_CHECKING:
    from plait.engines.base import LoadSpec
    from plait.models import InstalledModel
    from plait.models.forms import Engine

PULLABLE = ("llamacpp", "mlx", "kokoro-onnx", "kokoro-torch", "whisper")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code (see `exits`)."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    parsed = _parser(with_bench=arguments[:1] == ["bench"]).parse_args(arguments)
    run: Callable[[argparse.Namespace], int] = parsed.run
    try:
        return _with_model_errors(run, parsed)
    except ConfigError as error:
        return fail(str(error), EXIT_USAGE)
    except PortUnavailable as error:
        return fail(str(error), EXIT_PORT)
    except KeyboardInterrupt:
        return fail("interrupted; nothing half-made was left behind.", EXIT_INTERRUPTED)
    except BrokenPipeError:  # `plait models list | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK


def _with_model_errors(run: Callable[[argparse.Namespace], int], parsed: argparse.Namespace) -> int:
    from plait.models.errors import StoreError

    try:
        return run(parsed)
    except StoreError as error:
        return fail(str(error), EXIT_MODEL)


# --- arguments -------------------------------------------------------------------------------


def _parser(*, with_bench: bool) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="plait",
        description="One WebSocket, many cancellable streams of local inference.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"plait {__version__}")
    parser.set_defaults(run=partial(_help, parser))
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    _add_serve(commands)
    _add_models(commands)
    if with_bench:
        from plait.bench import cli as bench

        bench.add_arguments(commands)
    else:
        commands.add_parser("bench", help="measure latency, throughput, accuracy and cancels")
    doctor = commands.add_parser("doctor", help="look at machine, engines and models")
    doctor.add_argument("--json", action="store_true", help="print the report as JSON")
    _add_config(doctor)
    doctor.set_defaults(run=_doctor)
    return parser


def _help(parser: argparse.ArgumentParser, parsed: argparse.Namespace) -> int:
    """A command that lacks its sub-command: show what there is to choose from."""
    parser.print_help(sys.stderr)
    return EXIT_USAGE


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="TOML file (default: plait.toml, if any)"
    )


def _add_serve(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    serve = commands.add_parser("serve", help="serve models and the playground")
    serve.add_argument("--host", help="address to listen on (default: 127.0.0.1)")
    serve.add_argument("--port", type=int, help="TCP port (default: 8760; 0 takes a free one)")
    _add_config(serve)
    serve.add_argument(
        "--chat-engine",
        choices=("llamacpp", "mlx", "scripted"),
        help="engine behind chat (default: mlx on Apple Silicon, else llamacpp)",
    )
    serve.add_argument(
        "--chat-model",
        metavar="NAME",
        help="catalogue name, hf:org/name[/file.gguf] or a local path",
    )
    serve.add_argument(
        "--speech-engine",
        choices=("auto", "kokoro-onnx", "kokoro-torch", "scripted", "off"),
        help="engine behind synthesize (default: auto, the best that can run here)",
    )
    serve.add_argument(
        "--transcribe-engine",
        choices=("auto", "whisper", "scripted", "off"),
        help="engine behind transcribe (default: auto, whisper where it can run)",
    )
    serve.add_argument("--no-open", action="store_true", help="do not open the browser")
    serve.set_defaults(run=_serve)


def _add_models(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    models = commands.add_parser("models", help="list, pull, verify and remove models")
    models.set_defaults(run=partial(_help, models))
    actions = models.add_subparsers(title="actions", metavar="ACTION")
    for name, function, about in (
        ("list", "list_models", "show the catalogue and what is installed"),
        ("pull", "pull", "fetch and convert a model (default: the configured one)"),
        ("verify", "verify", "read every byte again (default: all installed models)"),
        ("remove", "remove", "delete a model from the disk"),
    ):
        action = actions.add_parser(name, help=about)
        _add_config(action)
        if name != "list":
            action.add_argument("name", nargs=None if name == "remove" else "?", help="model name")
        if name == "pull":
            action.add_argument("--engine", choices=PULLABLE, help="form to make")
        action.set_defaults(run=partial(_models, function))


# --- the commands ----------------------------------------------------------------------------


def _serve(parsed: argparse.Namespace) -> int:
    config = load_config(
        parsed.config,
        arguments={
            "host": parsed.host,
            "port": parsed.port,
            "chat_engine": parsed.chat_engine,
            "chat_model": parsed.chat_model,
            "speech_engine": parsed.speech_engine,
            "transcribe_engine": parsed.transcribe_engine,
        },
    )
    for engine in (config.chat_engine, config.transcribe_engine, config.speech_engine):
        if missing := engine_missing(engine):
            what = f"the engine {engine} cannot run here: {missing.reason}."
            return fail(f"{what} Run: {missing.next_step}", EXIT_MODEL)
    # Before the download: a taken port is said at once.
    with bind(config.host, config.port) as listening:
        specs = [_chat(config), *_transcribe(config), *_speech(config)]
        listen(listening, config.host, config.port)
        url = playground_url(config.host, listening.getsockname()[1])
        say(f"Plait serves {' and '.join(spec.model for spec in specs)} at {url}")
        say("Ctrl-C stops it.")
        if not parsed.no_open and sys.stdout.isatty():
            import webbrowser

            webbrowser.open(url)  # the socket listens already, so the page only waits a moment
        from plait import app

        return app.serve(config, specs, listening, _say_if_heard)


def _say_if_heard(text: str) -> None:
    """Who reads our stdout may have left long ago; a server does not end for that."""
    with suppress(OSError):
        say(text)


def _chat(config: Config) -> LoadSpec:
    """The chat model, fetched if it is missing."""
    from plait import model_commands
    from plait.specs import chat_spec

    if config.chat_engine == "scripted":
        return chat_spec(config, None)
    model = model_commands.pull_model(config.chat_model, config.chat_engine)
    if config.context_tokens > model.context_limit:
        config = replace(config, context_tokens=model.context_limit)
        say(f"{model.name} has a context of {model.context_limit} tokens; slots get that.")
    return chat_spec(config, model)


def _transcribe(config: Config) -> list[LoadSpec]:
    """The transcription model, fetched if it is missing; none where transcription is off."""
    from plait.specs import transcribe_spec

    if config.transcribe_engine == "off":
        return []
    if config.transcribe_engine == "scripted":
        return [transcribe_spec(config, None)]
    optional = config.transcribe_engine == "auto"
    model = _pull(config.transcribe_model, "whisper", "Transcription" if optional else None)
    return [] if model is None else [transcribe_spec(config, model)]


def _pull(name: str, engine: Engine, optional: str | None) -> InstalledModel | None:
    """Fetch it. What is `optional` must not keep the rest from starting: None, and says why.

    Raises StoreError where it is not.
    """
    from plait import model_commands
    from plait.models.errors import StoreError

    if optional is None:
        return model_commands.pull_model(name, engine)
    if missing := engine_missing(engine):
        say(f"{optional} is off: {missing.reason}. To have it: {missing.next_step}")
        return None
    try:
        return model_commands.pull_model(name, engine)
    except StoreError as error:
        say(f"{optional} is off: {error}")
        return None


def _speech(config: Config) -> list[LoadSpec]:
    """The speech model, fetched if it is missing; none where speech is off."""
    from plait.specs import speech_spec

    if config.speech_engine == "off":
        return []
    if config.speech_engine == "scripted":
        return [speech_spec(config, None)]
    optional = config.speech_engine == "auto"
    engine = best_speech_engine() if config.speech_engine == "auto" else config.speech_engine
    model = _pull(config.speech_model, engine, "Speech" if optional else None)
    if model is None:
        return []
    _check_voice(config, model)
    return [speech_spec(replace(config, speech_engine=engine), model)]


def _check_voice(config: Config, model: InstalledModel) -> None:
    from plait.speech.languages import BY_LETTER, missing

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


def _models(function: str, parsed: argparse.Namespace) -> int:
    from plait import model_commands

    run: Callable[[argparse.Namespace], int] = getattr(model_commands, function)
    return run(parsed)


def _doctor(parsed: argparse.Namespace) -> int:
    from plait import doctor

    report = doctor.examine(parsed.config)
    say(report.as_json() if parsed.json else report.as_text())
    return EXIT_OK if report.healthy else EXIT_FAILED
