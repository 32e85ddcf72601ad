"""The command line: argv → a frozen Config, a model on disk, a bound socket → `app.serve`.

Imports little at the top: `plait --help` must not pay for the server, and the server must not pay
for the benchmarks. Errors are one line on stderr that ends in the next step.
Does NOT know: what the server does with its socket, how models are fetched.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from plait import __version__
from plait.config_checks import ConfigError
from plait.conformance import cli as conformance
from plait.exits import (
    EXIT_CODES,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_MODEL,
    EXIT_OK,
    EXIT_PORT,
    EXIT_USAGE,
)
from plait.listening import PortUnavailable, bind, listen, playground_url
from plait.terminal import fail, say

if TYPE_CHECKING:
    pass

PULLABLE = ("llamacpp", "mlx", "kokoro-onnx", "kokoro-torch", "whisper", "onnx")


class Terminated(KeyboardInterrupt):
    """SIGTERM, where no server takes it: it ends a command in the order that Ctrl-C does."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code (see `exits`)."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    try:
        with _ended_in_order_by_sigterm():
            parsed = _parser(with_bench=arguments[:1] == ["bench"]).parse_args(arguments)
            return _with_model_errors(parsed.run, parsed)
    except ConfigError as error:
        return fail(str(error), EXIT_USAGE)
    except PortUnavailable as error:
        return fail(str(error), EXIT_PORT)
    except KeyboardInterrupt as interruption:
        if arguments[:1] == ["serve"] and isinstance(interruption, Terminated):
            _say_if_heard("Stopped.")  # as later, when it serves
            return EXIT_OK
        return fail("interrupted; nothing half-made was left behind.", EXIT_INTERRUPTED)
    except BrokenPipeError:  # `plait models list | head`: the reader has seen enough
        _discard_output()
        return EXIT_OK


@contextmanager
def _ended_in_order_by_sigterm() -> Iterator[None]:
    """Until a server's event loop takes the signal, and in every command that has none."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are not ours to handle here
        return

    def end(number: int, frame: object) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


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
    _add_tokens(commands)
    if with_bench:
        from plait.bench import cli as bench

        bench.add_arguments(commands)
    else:
        commands.add_parser("bench", help="measure latency, throughput, accuracy and cancels")
    conformance.add_arguments(commands)
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
    serve.add_argument(
        "--embed-engine",
        choices=("auto", "onnx", "scripted", "off"),
        help="engine behind embed (default: auto, onnx where it can run)",
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


def _add_tokens(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    tokens = commands.add_parser("token", help="make, list and revoke the tokens of apps")
    tokens.set_defaults(run=partial(_help, tokens))
    actions = tokens.add_subparsers(title="actions", metavar="ACTION")
    create = actions.add_parser("create", help="make a token and print it, this once")
    create.add_argument("app", metavar="APP", help="an app that plait.toml declares")
    create.add_argument("--expires", metavar="TIME", help="like 30d or 12h (default: never)")
    create.add_argument("--note", default="", help="what it is for, shown by `list`")
    _add_config(create)
    create.set_defaults(run=partial(_tokens, "create"))
    listing = actions.add_parser("list", help="show all tokens, without their secrets")
    listing.set_defaults(run=partial(_tokens, "list_tokens"))
    revoke = actions.add_parser("revoke", help="end a token and its connections, at once")
    revoke.add_argument("id", metavar="ID", help="as `list` shows it")
    revoke.set_defaults(run=partial(_tokens, "revoke"))


# --- the commands ----------------------------------------------------------------------------


def _serve(parsed: argparse.Namespace) -> int:
    from plait import model_commands
    from plait.config_sources import load_config
    from plait.provision import provide, unavailable_engine

    config = load_config(
        parsed.config,
        arguments={
            "host": parsed.host,
            "port": parsed.port,
            "chat_engine": parsed.chat_engine,
            "chat_model": parsed.chat_model,
            "speech_engine": parsed.speech_engine,
            "transcribe_engine": parsed.transcribe_engine,
            "embed_engine": parsed.embed_engine,
        },
    )
    if unavailable := unavailable_engine(config):  # before the download, as a taken port is said
        return fail(unavailable, EXIT_MODEL)
    with bind(config.host, config.port) as listening:
        provided = provide(config, model_commands.pull_model)
        specs = [one.spec for one in provided]
        listen(listening, config.host, config.port)
        url = playground_url(config.host, listening.getsockname()[1])
        *others, last = [spec.model for spec in specs]
        names = f"{', '.join(others)} and {last}" if others else last
        _say_if_heard(f"Plait serves {names} at {url}")
        _say_if_heard("Ctrl-C stops it.")
        if not parsed.no_open and sys.stdout.isatty():
            import webbrowser

            webbrowser.open(url)  # the socket listens already, so the page only waits a moment
        from plait import app

        preload = [one.spec.model for one in provided if one.preload]
        return app.serve(config, specs, preload, listening, _say_if_heard)


def _say_if_heard(text: str) -> None:
    """Who reads our stdout may have left long ago; a server does not end for that."""
    try:
        say(text)
    except OSError:
        _discard_output()


def _discard_output() -> None:
    """From now on; what is still in the buffer, too, or the end of Python would fail on it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _models(function: str, parsed: argparse.Namespace) -> int:
    from plait import model_commands

    run: Callable[[argparse.Namespace], int] = getattr(model_commands, function)
    return run(parsed)


def _tokens(function: str, parsed: argparse.Namespace) -> int:
    from plait import token_commands

    run: Callable[[argparse.Namespace], int] = getattr(token_commands, function)
    return run(parsed)


def _doctor(parsed: argparse.Namespace) -> int:
    from plait import doctor

    report = doctor.examine(parsed.config)
    say(report.as_json() if parsed.json else report.as_text())
    return EXIT_OK if report.healthy else EXIT_FAILED
