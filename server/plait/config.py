"""The one frozen `Config`: defaults < `plait.toml` < `PLAIT_*` environment < command line.

A setting is declared once, with its default, bounds and meaning; docs/configuration.md is printed
from it (`python -m plait.config_page`). A `Config` that exists is valid: bounds and the rule "no
binding beyond loopback without a token" are checked when it is built. Inner layers get values,
never this object. Does NOT know: sockets, models, what any setting is used for.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Literal

from plait.config_checks import (
    ConfigError as ConfigError,
    check_bounds,
    check_host,
    check_origins,
    is_loopback as is_loopback,
    nearest,
)
from plait.config_tables import AppTable, ModelTable, read_apps, read_models

ChatEngine = Literal["llamacpp", "mlx", "scripted"]
SpeechEngine = Literal["auto", "kokoro-onnx", "kokoro-torch", "scripted", "off"]
SpeechRuntime = Literal["auto", "onnxruntime", "openvino"]
SpeechDevice = Literal["auto", "cpu", "mps", "cuda"]
TranscribeEngine = Literal["auto", "whisper", "scripted", "off"]
EmbedEngine = Literal["auto", "onnx", "scripted", "off"]
LogLevel = Literal["debug", "info", "warning", "error"]

TABLES = ("models", "apps")  # of plait.toml: neither the environment nor the command line has them
DEFAULT_FILE = "plait.toml"
ENV_PREFIX = "PLAIT_"
# PLAIT_ variables that are no settings: where models live, which file to read, one more token.
OTHER_ENV = ("PLAIT_HOME", "PLAIT_CONFIG", "PLAIT_TOKEN")
# Set by Kubernetes for a service called "plait", and by test suites: never a misspelt setting.
FOREIGN_ENV = ("PLAIT_SERVICE_", "PLAIT_PORT_", "PLAIT_TEST_")

MIB = 1024 * 1024
KIB = 1024


def default_chat_engine() -> ChatEngine:
    """mlx on Apple Silicon, llama.cpp everywhere else."""
    return "mlx" if _apple_silicon() else "llamacpp"


def default_transcribe_model() -> str:
    """Apple Silicon keeps up with the better one."""
    return "whisper-base" if _apple_silicon() else "whisper-tiny.en"


def _apple_silicon() -> bool:
    return sys.platform == "darwin" and platform.machine() == "arm64"


def _setting(
    default: object,
    doc: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
    shown: str | None = None,
) -> Any:
    metadata = {"doc": doc, "low": low, "high": high, "choices": choices, "shown": shown}
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata, repr=shown != "secret")


@dataclass(frozen=True, slots=True)
class Config:
    """All settings. Raises ConfigError when a value is out of bounds."""

    host: str = _setting(
        "127.0.0.1", "Address to listen on. Anything but loopback needs a token, or start fails."
    )
    port: int = _setting(8760, "TCP port; 0 takes a free one.", low=0, high=65535)
    allowed_hosts: tuple[str, ...] = _setting(
        (), "Host header names accepted besides loopback and `host` (guards against DNS rebinding)."
    )
    allowed_origins: tuple[str, ...] = _setting(
        (), "Origins, like `https://app.example`, accepted besides the server's own and loopback."
    )
    tokens: tuple[str, ...] = _setting(
        (),
        "Bearer tokens; empty means none is asked. `PLAIT_TOKEN` adds one. Never on argv.",
        shown="secret",
    )
    chat_engine: ChatEngine = _setting(  # noqa: RUF009 - it returns field()
        default_chat_engine,
        "Engine behind `chat`; `scripted` needs no model and is for tests.",
        choices=("llamacpp", "mlx", "scripted"),
        shown="`mlx` on Apple Silicon, else `llamacpp`",
    )
    chat_model: str = _setting(
        "smollm2-135m-instruct",
        "Catalogue name, `hf:org/name[/file.gguf]`, or a local path (`./x.gguf`, MLX directory).",
    )
    slots: int = _setting(4, "Chats that decode at the same time.", low=1, high=256)
    context_tokens: int = _setting(
        4096, "Context of one slot, prompt and answer, in tokens.", low=64, high=1 << 20
    )
    max_tokens: int = _setting(
        1024, "Server-side cap on the tokens one chat may produce.", low=1, high=1 << 20
    )
    kv_budget_bytes: int = _setting(
        0, "Memory for KV caches; 0 means what slots * context_tokens take.", low=0
    )
    speech_engine: SpeechEngine = _setting(  # noqa: RUF009 - it returns field()
        "auto",
        "Engine behind `synthesize`. `auto`: `kokoro-torch` on Apple Silicon and CUDA where it is"
        " installed, else `kokoro-onnx`, and no speech, said at the start, where neither can run.",
        choices=("auto", "kokoro-onnx", "kokoro-torch", "scripted", "off"),
    )
    speech_model: str = _setting(
        "kokoro-82m", "Catalogue name, or a directory with `model.onnx` and `voices/`."
    )
    speech_voice: str = _setting("af_heart", "Voice of a request that names none.")
    speech_slots: int = _setting(
        4, "Streams that are spoken at the same time, in turns.", low=1, high=256
    )
    speech_threads: int = _setting(
        0, "Threads the speech model computes with; 0 means the cores, at most 4.", low=0, high=64
    )
    speech_runtime: SpeechRuntime = _setting(  # noqa: RUF009 - it returns field()
        "auto",
        "What runs `kokoro-onnx`; `auto` is onnxruntime, OpenVINO is an extra.",
        choices=("auto", "onnxruntime", "openvino"),
    )
    speech_device: SpeechDevice = _setting(  # noqa: RUF009 - it returns field()
        "auto", "Where `kokoro-torch` computes.", choices=("auto", "cpu", "mps", "cuda")
    )
    transcribe_engine: TranscribeEngine = _setting(  # noqa: RUF009 - it returns field()
        "auto",
        "Engine behind `transcribe`. `auto`: `whisper`, and no transcription, said at the start,"
        " where it cannot run.",
        choices=("auto", "whisper", "scripted", "off"),
    )
    transcribe_model: str = _setting(
        default_transcribe_model,
        "Catalogue name (`whisper-tiny.en`, `whisper-base`), `hf:org/name/ggml-….bin`, or a local"
        " ggml file.",
        shown="`whisper-base` on Apple Silicon, else `whisper-tiny.en`",
    )
    transcribe_slots: int = _setting(
        0,
        "Streams that are transcribed at the same time; 0 means what the cores can follow, as"
        " measured when the model loads.",
        low=0,
        high=256,
    )
    transcribe_cores: int = _setting(
        0, "Cores transcription computes on; 0 means all of them.", low=0, high=256
    )
    embed_engine: EmbedEngine = _setting(  # noqa: RUF009 - it returns field()
        "auto",
        "Engine behind `embed`. `auto`: `onnx`, and no embeddings, said at the start, where it"
        " cannot run.",
        choices=("auto", "onnx", "scripted", "off"),
    )
    embed_model: str = _setting(
        "all-minilm-l6-v2",
        "Catalogue name, `hf:org/name`, or a sentence-transformers directory.",
    )
    embed_slots: int = _setting(
        8, "Streams that are embedded at the same time, in turns.", low=1, high=256
    )
    embed_threads: int = _setting(
        0, "Threads the embedding model computes with; 0 means all cores.", low=0, high=256
    )
    preload: bool = _setting(
        True,
        "Load the default models at the start, as far as they fit; else each when it is asked for.",
    )
    load_timeout_seconds: float = _setting(
        600.0, "Longest a model may take to load before `model_load_failed`.", low=1, high=86400
    )
    memory_budget_bytes: int = _setting(
        0,
        "Memory for all models, KV caches and stream buffers; 0 means three quarters of the"
        " machine's (of the container's) memory.",
        low=0,
    )
    prefix_cache_bytes: int = _setting(
        256 * MIB,
        "Most that the kept prompts of finished and cancelled chats may take, per model; 0 keeps"
        " none. They go before any stream is refused.",
        low=0,
    )
    cores: int = _setting(
        0,
        "CPU cores all models together may compute on; 0 means those this process may use.",
        low=0,
        high=4096,
    )
    max_queued: int = _setting(
        64,
        "Streams that may wait for a slot; the next is rejected `queue_full`.",
        low=0,
        high=65536,
    )
    queue_timeout_seconds: float = _setting(
        60.0, "Longest wait in the queue before `queue_timeout`.", low=0.1, high=3600
    )
    max_streams: int = _setting(32, "Live streams per connection.", low=1, high=4096)
    max_connections: int = _setting(1024, "WebSocket connections.", low=1, high=65536)
    max_text_bytes: int = _setting(
        MIB, "Largest text frame from a client; a larger one closes 1009.", low=KIB, high=64 * MIB
    )
    max_binary_bytes: int = _setting(
        256 * KIB, "Largest binary frame from a client.", low=KIB, high=64 * MIB
    )
    max_outbox_bytes: int = _setting(
        256 * KIB,
        "Unsent output per stream; at the bound its job is paused.",
        low=KIB,
        high=64 * MIB,
    )
    opens_per_second: float = _setting(
        100.0,
        "Opens per second and connection, twice that in a burst; more are `rejected rate_limited`."
        " Opens, cancels, pings and faulty messages at 20 times the rate close 4429.",
        low=1,
        high=1e6,
    )
    drain_seconds: float = _setting(
        10.0, "Grace for running streams after SIGTERM.", low=0, high=600
    )
    log_level: LogLevel = _setting(  # noqa: RUF009 - it returns field()
        "info",
        "Least severe log line shown; payloads are never logged.",
        choices=("debug", "info", "warning", "error"),
    )

    models: tuple[ModelTable, ...] = ()
    apps: Mapping[str, AppTable] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for name, spec in SPECS.items():
            check_bounds(spec, getattr(self, name))
        check_host(self.host)
        check_origins(self.allowed_origins)
        if not self.tokens and not self.apps and not is_loopback(self.host):
            raise ConfigError(
                f"host {self.host!r} is reachable from other machines and no token is set. Set"
                " PLAIT_TOKEN (or `tokens` or [apps.NAME] in plait.toml), or keep host ="
                " '127.0.0.1'.",
                key="host",
            )


SPECS: Final[dict[str, Field[Any]]] = {
    spec.name: spec for spec in fields(Config) if spec.name not in TABLES
}


def load_config(
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    arguments: Mapping[str, object] | None = None,
) -> Config:
    """Merge the four sources into a Config.

    `file` None means `$PLAIT_CONFIG`, else `plait.toml` in the working directory where there is
    one. `arguments` maps setting names to command-line values; None values are skipped.
    Raises ConfigError naming the key and the nearest known key.
    """
    environ = os.environ if environ is None else environ
    file = _find_file(file, environ)
    values = _from_file(file)
    sources = dict.fromkeys(values, str(file))
    values |= (from_environment := _from_environment(environ))
    sources |= {name: env_name(name) for name in from_environment}
    for name, value in (arguments or {}).items():
        if value is not None:
            sources[name] = f"--{name.replace('_', '-')}"
            values[name] = _typed(name, value, shown=sources[name])
    extra_token = environ.get("PLAIT_TOKEN", "").strip()
    if extra_token:
        values["tokens"] = (*values.get("tokens", ()), extra_token)
    try:
        return Config(**values)
    except ConfigError as error:
        if error.key not in sources:
            raise
        raise ConfigError(f"{error} ({sources[error.key]} sets it.)", key=error.key) from None


def _find_file(file: Path | None, environ: Mapping[str, str]) -> Path | None:
    if file is None and environ.get("PLAIT_CONFIG"):
        file = Path(environ["PLAIT_CONFIG"])
    if file is None:
        return Path(DEFAULT_FILE) if Path(DEFAULT_FILE).is_file() else None
    if not file.is_file():
        raise ConfigError(
            f"there is no configuration file {file}. Create it or leave --config out."
        )
    return file


def _from_file(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{file} cannot be read as TOML: {error}.") from error
    tables: dict[str, Any] = {}
    if "models" in raw:
        tables["models"] = read_models(raw.pop("models"), str(file))
    if "apps" in raw:
        tables["apps"] = read_apps(raw.pop("apps"), str(file))
    for key in raw:
        if key not in SPECS:
            raise _unknown(key, (*SPECS, *TABLES), where=str(file))
    flat = {key: _typed(key, value, shown=f"{key} in {file}") for key, value in raw.items()}
    return flat | tables


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, text in environ.items():
        if not key.startswith(ENV_PREFIX) or key in OTHER_ENV or key.startswith(FOREIGN_ENV):
            continue
        name = key.removeprefix(ENV_PREFIX).lower()
        if name not in SPECS or key != env_name(name):
            raise _unknown(key, (*map(env_name, SPECS), *OTHER_ENV), where="the environment")
        values[name] = _parse_text(name, text, key)
    return values


def env_name(name: str) -> str:
    return ENV_PREFIX + name.upper()


def _parse_text(name: str, text: str, key: str) -> object:
    kind = type(_default(name))
    if kind is tuple:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if kind is str:
        return text
    try:
        return _boolean(text) if kind is bool else kind(text)
    except ValueError:
        hint = ""
        if name == "port" and text.startswith("tcp://"):
            hint = " Kubernetes sets it for a service called plait: use enableServiceLinks: false."
        raise ConfigError(
            f"{key} must be {_KIND_WORDS[kind]}, not {text!r}.{hint}", key=key
        ) from None


_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def _boolean(text: str) -> bool:
    try:
        return _BOOLEANS[text.lower()]
    except KeyError:
        raise ValueError(text) from None


_KIND_WORDS: dict[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a string",
    tuple: "a list of strings",
}


def _typed(name: str, value: object, shown: str) -> object:
    if name not in SPECS:
        raise _unknown(name, SPECS, where="the command line")
    kind = type(_default(name))
    if kind is tuple and isinstance(value, (list, tuple)):
        if all(isinstance(item, str) and item for item in value):
            return tuple(value)
    elif kind is float and type(value) in (int, float):
        return float(value)  # type: ignore[arg-type]
    elif type(value) is kind:  # not isinstance: true is no port
        return value
    written = "this" if name == "tokens" else repr(value)
    hint = ""
    if kind is tuple and isinstance(value, str):
        quoted = '"…"' if name == "tokens" else json.dumps(value, ensure_ascii=False)
        hint = f" Write {name} = [{quoted}]."
    raise ConfigError(f"{shown} must be {_KIND_WORDS[kind]}, not {written}.{hint}", key=name)


def _default(name: str) -> Any:
    spec = SPECS[name]
    if spec.default_factory is not MISSING:
        return spec.default_factory()
    return spec.default


def _unknown(key: str, known: Iterable[str], where: str) -> ConfigError:
    known = tuple(known)
    # What all names of the environment begin with must not make any two of them alike.
    prefix = ENV_PREFIX if key.startswith(ENV_PREFIX) else ""
    hint = nearest(key.removeprefix(prefix), (name.removeprefix(prefix) for name in known))
    hint = hint.replace("'", f"'{prefix}", 1) or " docs/configuration.md lists them all."
    return ConfigError(f"unknown setting {key!r} in {where}.{hint}", key=key)
