"""The one frozen `Config`: every setting, with its default, bounds and meaning, declared once.

docs/configuration.md is printed from it (`python -m plait.config_page`). A `Config` that exists is
valid: bounds and the rule "no binding beyond loopback without a token" are checked when it is
built. Inner layers get values, never this object. Does NOT know: where values come from (see
`config_sources`), sockets, models, what any setting is used for.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, Final, Literal

from plait.config_checks import (
    ConfigError as ConfigError,
    check_bounds,
    check_host,
    check_origins,
    is_loopback as is_loopback,
)
from plait.config_tables import AppTable, ModelTable

ChatEngine = Literal["llamacpp", "mlx", "scripted"]
SpeechEngine = Literal["auto", "kokoro-onnx", "kokoro-torch", "scripted", "off"]
SpeechRuntime = Literal["auto", "onnxruntime", "openvino"]
SpeechDevice = Literal["auto", "cpu", "mps", "cuda"]
TranscribeEngine = Literal["auto", "whisper", "scripted", "off"]
EmbedEngine = Literal["auto", "onnx", "scripted", "off"]
LogLevel = Literal["debug", "info", "warning", "error"]

TABLES = ("models", "apps")  # of plait.toml: neither the environment nor the command line has them

LLAMACPP_MAX_SLOTS = 256  # sequences of one context, a constant of the library
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
        (), "Origins, like `https://app.example`, accepted besides the server's own address."
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
    slots: int = _setting(
        4, "Chats that decode at the same time; llama.cpp: at most 256.", low=1, high=1024
    )
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
    request_timeout_seconds: float = _setting(
        10.0,
        "Longest a client may take to send a whole HTTP request, the opening of a WebSocket among"
        " them; then it is answered 408 or just closed.",
        low=0.1,
        high=3600,
    )
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
        if self.chat_engine == "llamacpp" and self.slots > LLAMACPP_MAX_SLOTS:
            raise ConfigError(
                f"slots must be at most {LLAMACPP_MAX_SLOTS} on llama.cpp, not {self.slots}. Set it"
                " lower, or another chat_engine.",
                key="slots",
            )
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
