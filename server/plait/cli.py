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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from plait import __version__
from plait.config import Config, ConfigError, load_config
from plait.listening import PortUnavailable, bind, listen, playground_url

if TYPE_CHECKING:
    from plait.models import InstalledModel, ModelStore
    from plait.models.store import Engine

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2  # argparse's own
EXIT_MODEL = 3
EXIT_PORT = 4
EXIT_INTERRUPTED = 130

EXIT_CODES = """exit codes:
  0    done, or the server was stopped in order
  1    a check failed (doctor, verify, bench), or the server failed
  2    wrong usage or configuration
  3    the model is not available
  4    the address cannot be listened on
  130  interrupted
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code (see EXIT_CODES)."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    parsed = _parser(with_bench=arguments[:1] == ["bench"]).parse_args(arguments)
    run: Callable[[argparse.Namespace], int] = parsed.run
    try:
        return _with_model_errors(run, parsed)
    except ConfigError as error:
        return _fail(str(error), EXIT_USAGE)
    except PortUnavailable as error:
        return _fail(str(error), EXIT_PORT)
    except KeyboardInterrupt:
        return _fail("interrupted; nothing half-made was left behind.", EXIT_INTERRUPTED)
    except BrokenPipeError:  # `plait models list | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK


def _with_model_errors(run: Callable[[argparse.Namespace], int], parsed: argparse.Namespace) -> int:
    from plait.models.errors import StoreError

    try:
        return run(parsed)
    except StoreError as error:
        return _fail(str(error), EXIT_MODEL)


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"plait: {message}\n")
    return code


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


# --- arguments -------------------------------------------------------------------------------


def _parser(*, with_bench: bool) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="plait",
        description="One WebSocket, many cancellable streams of local inference.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"plait {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_serve(commands)
    _add_models(commands)
    if with_bench:
        from plait.bench import cli as bench

        bench.add_arguments(commands)
    else:
        commands.add_parser("bench", help="measure cancel latency and throughput")
    doctor = commands.add_parser("doctor", help="look at machine, engines and models")
    doctor.add_argument("--json", action="store_true", help="print the report as JSON")
    _add_config(doctor)
    doctor.set_defaults(run=_doctor)
    return parser


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
    serve.add_argument("--no-open", action="store_true", help="do not open the browser")
    serve.set_defaults(run=_serve)


def _add_models(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    models = commands.add_parser("models", help="list, pull, verify and remove models")
    actions = models.add_subparsers(title="actions", metavar="ACTION", required=True)
    for name, run, about in (
        ("list", _models_list, "show the catalogue and what is installed"),
        ("pull", _models_pull, "fetch and convert a model (default: the configured one)"),
        ("verify", _models_verify, "read every byte again (default: all installed models)"),
        ("remove", _models_remove, "delete a model from the disk"),
    ):
        action = actions.add_parser(name, help=about)
        _add_config(action)
        if name != "list":
            action.add_argument("name", nargs=None if name == "remove" else "?", help="model name")
        if name == "pull":
            action.add_argument("--engine", choices=("llamacpp", "mlx"), help="form to make")
        action.set_defaults(run=run)


# --- serve -----------------------------------------------------------------------------------


def _serve(parsed: argparse.Namespace) -> int:
    config = load_config(
        parsed.config,
        arguments={
            "host": parsed.host,
            "port": parsed.port,
            "chat_engine": parsed.chat_engine,
        },
    )
    with bind(
        config.host, config.port
    ) as listening:  # before the download: a taken port is said at once
        model = _ensure_model(config)
        if model is not None and config.context_tokens > model.context_limit:
            config = replace(config, context_tokens=model.context_limit)
            _say(f"{model.name} has a context of {model.context_limit} tokens; slots get that.")
        listen(listening, config.host, config.port)
        url = playground_url(config.host, listening.getsockname()[1])
        _say(f"Plait serves {model.name if model else 'the scripted engine'} at {url}")
        if not parsed.no_open and sys.stdout.isatty():
            import webbrowser

            webbrowser.open(url)  # the socket listens already, so the page only waits a moment
        from plait import app

        return app.serve(config, model, listening)


def _ensure_model(config: Config) -> InstalledModel | None:
    if config.chat_engine == "scripted":
        return None
    return _pull(_store(), config.chat_model, config.chat_engine)


# --- models ----------------------------------------------------------------------------------


def _store() -> ModelStore:
    from plait.models import ModelStore

    return ModelStore()


def _pull(store: ModelStore, name: str, engine: Engine) -> InstalledModel:
    from plait.terminal import progress_display

    with _sigterm_interrupts(), progress_display(name) as progress:
        return store.ensure(name, engine, progress)


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


def _models_list(parsed: argparse.Namespace) -> int:
    from plait.models.catalogue import STARTERS

    load_config(parsed.config)
    installed = {model.name: model for model in _store().installed()}
    for name in sorted({*STARTERS, *installed}):
        model = installed.get(name)
        if model is None:
            megabytes = STARTERS[name].file_bytes / 1e6
            _say(f"{name}  not installed ({megabytes:.0f} MB; plait models pull {name})")
            continue
        forms = " and ".join(
            form for form, path in (("gguf", model.gguf), ("mlx", model.mlx)) if path is not None
        )
        _say(
            f"{name}  {model.method}, {forms}, context {model.context_limit} tokens,"
            f" {model.licence}, in {model.directory}"
        )
    return EXIT_OK


def _models_pull(parsed: argparse.Namespace) -> int:
    config = load_config(parsed.config)
    name = parsed.name or config.chat_model
    configured: Engine = "mlx" if config.chat_engine == "mlx" else "llamacpp"
    model = _pull(_store(), name, parsed.engine or configured)
    _say(f"{model.name} is installed in {model.directory}")
    return EXIT_OK


def _models_verify(parsed: argparse.Namespace) -> int:
    from plait.models.errors import ModelDamaged
    from plait.terminal import progress_display

    load_config(parsed.config)
    store = _store()
    names = [parsed.name] if parsed.name else [model.name for model in store.installed()]
    if not names:
        _say("No model is installed. Run plait models pull.")
    code = EXIT_OK
    for name in names:
        try:
            with progress_display(name) as progress:
                store.verify(name, progress)
            _say(f"{name} is intact")
        except ModelDamaged as error:
            code = _fail(str(error), EXIT_FAILED)
    return code


def _models_remove(parsed: argparse.Namespace) -> int:
    load_config(parsed.config)
    freed = _store().remove(parsed.name)
    _say(f"{parsed.name} is removed; {freed / 1e6:.0f} MB are free again")
    return EXIT_OK


def _doctor(parsed: argparse.Namespace) -> int:
    from plait import doctor

    report = doctor.examine(parsed.config)
    _say(report.as_json() if parsed.json else report.as_text())
    return EXIT_OK if report.healthy else EXIT_FAILED
