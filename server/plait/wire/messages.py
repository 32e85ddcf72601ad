"""Every message of plait.v1 as a frozen struct, client's and server's (`params`: per method).

A struct's tag is the message's `type`; field constraints are the protocol's (PROTOCOL.md §2, §3),
so decoding is validating and an error names the field. Unknown fields are ignored, as §8 asks.
This module knows no bytes (see `codec`) and no order of messages (see `stream`, `connection`).
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Raw

from plait.errors import BY_CODE, ErrorClass, PlaitError
from plait.wire.params import (
    PARAMS as PARAMS,
    ChatMessage as ChatMessage,
    ChatParams as ChatParams,
    EmbedParams as EmbedParams,
    Params as Params,
    SynthesizeParams as SynthesizeParams,
    TranscribeParams as TranscribeParams,
)

UNIT: Final = {
    "chat": "tokens",
    "transcribe": "audio_ms",
    "synthesize": "audio_ms",
    "embed": "texts",
}
"""What the work of each method is counted in, and the key of its `wasted`."""

MAX_ID = 2**32 - 1
MAX_WINDOW = 256
DEFAULT_WINDOW = 64

StreamId = Annotated[int, Meta(ge=1, le=MAX_ID)]
Count = Annotated[int, Meta(ge=0)]
Method = Literal["chat", "transcribe", "synthesize", "embed"]
Priority = Literal["interactive", "batch"]
Phase = Literal["loading", "preparing", "queued"]
CancelledBy = Literal["client", "deadline", "slow", "disconnect", "shutdown"]
FinishReason = Literal["stop", "length", "tool_calls"]
Usage = dict[str, int]


class Message(msgspec.Struct, frozen=True, tag_field="type", omit_defaults=True):
    """Base of all messages; optional fields that hold their default stay off the wire."""


# --- client -> server --------------------------------------------------------------------------


class Open(Message, frozen=True, tag="open"):
    """`method` is any string: an unknown one is `unsupported_method`, not a bad message."""

    id: StreamId
    method: str
    params: Raw = Raw(b"{}")
    window: Annotated[int, Meta(ge=0, le=MAX_WINDOW)] = DEFAULT_WINDOW
    priority: Priority = "interactive"
    deadline_ms: Annotated[int, Meta(ge=1, le=86_400_000)] | None = None
    resume_seconds: Annotated[float, Meta(ge=0)] = 0


class Ack(Message, frozen=True, tag="ack"):
    id: StreamId
    seq: Annotated[int, Meta(ge=0, le=MAX_ID)]
    window: Annotated[int, Meta(ge=1, le=MAX_WINDOW)] | None = None


class Input(Message, frozen=True, tag="input"):
    """Exactly one of `text` (synthesize) and `texts` (embed)."""

    id: StreamId
    text: str | None = None
    texts: list[str] | None = None


class End(Message, frozen=True, tag="end"):
    id: StreamId


class Cancel(Message, frozen=True, tag="cancel"):
    id: StreamId
    heard_ms: Annotated[float, Meta(ge=0)] | None = None


class Ping(Message, frozen=True, tag="ping"):
    n: Annotated[int, Meta(ge=0, le=2**53 - 1)]


ClientMessage = Open | Ack | Input | End | Cancel | Ping


# --- server -> client --------------------------------------------------------------------------


class ErrorBody(msgspec.Struct, frozen=True, omit_defaults=True, rename={"error_class": "class"}):
    code: str
    error_class: ErrorClass
    message: str
    retryable: bool = msgspec.field()  # always present: a client branches on it
    retry_after_ms: int | None = None
    param: str | None = None
    data: dict[str, Any] | None = None

    @classmethod
    def of(cls, error: PlaitError) -> ErrorBody:
        return cls(
            code=error.code,
            error_class=error.error_class,
            message=error.message,
            retryable=error.retryable,
            retry_after_ms=error.retry_after_ms,
            param=error.param,
            data=error.data,
        )

    def to_error(self) -> PlaitError:
        """The exception this describes (for clients); an unknown code becomes `internal`."""
        leaf = BY_CODE.get(self.code, BY_CODE["internal"])
        return leaf(
            self.message, param=self.param, data=self.data, retry_after_ms=self.retry_after_ms
        )


class Limits(msgspec.Struct, frozen=True):
    max_streams: int
    max_queued: int
    max_text_bytes: int
    max_binary_bytes: int
    window: int
    opens_per_second: float
    ping_seconds: int


class MethodInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """`languages`: what `language` of its params may be."""

    models: list[str]
    voices: list[str] | None = None
    languages: list[str] | None = None


class Welcome(Message, frozen=True, tag="welcome"):
    protocol: str
    session: str
    server: str
    limits: Limits
    methods: dict[str, MethodInfo]
    capabilities: list[str] = msgspec.field()
    app: str | None = None


class Accepted(Message, frozen=True, tag="accepted"):
    id: int
    phase: Phase
    position: int
    percent: int | None = None
    eta_ms: int | None = None
    window_bytes: int | None = None


class Rejected(Message, frozen=True, tag="rejected"):
    id: int
    error: ErrorBody


class Format(msgspec.Struct, frozen=True, omit_defaults=True):
    encoding: str
    sample_rate: int | None = None
    channels: int | None = None
    dims: int | None = None


class Started(Message, frozen=True, tag="started"):
    id: int
    model: str
    max_tokens: int | None = None
    format: Format | None = None


class ItemMessage(Message, frozen=True, tag="item"):
    """`data` per method: see PROTOCOL.md §3. Media items are binary frames instead."""

    id: int
    seq: int
    data: Raw


class InputAck(Message, frozen=True, tag="input_ack"):
    id: int
    bytes: int
    window_bytes: int


class Timing(msgspec.Struct, frozen=True):
    queued_ms: float
    first_item_ms: float | None
    total_ms: float
    paused_ms: float


class Done(Message, frozen=True, tag="done"):
    id: int
    seq: int
    finish_reason: FinishReason
    usage: Usage
    timing: Timing
    truncated: list[int] | None = None


class Cancelled(Message, frozen=True, tag="cancelled"):
    """`stop_ms` is null exactly when `released` is false; `wasted` too when the worker died."""

    id: int
    seq: int
    by: CancelledBy
    released: bool
    stop_ms: float | None
    wasted: Usage | None
    usage: Usage
    timing: Timing
    heard: str | None = None


class StreamFailed(Message, frozen=True, tag="error"):
    id: int
    seq: int
    error: ErrorBody
    usage: Usage
    timing: Timing


class GoAway(Message, frozen=True, tag="goaway"):
    code: str
    drain_ms: int


class Pong(Message, frozen=True, tag="pong"):
    n: int


ServerMessage = (
    Welcome
    | Accepted
    | Rejected
    | Started
    | ItemMessage
    | InputAck
    | Done
    | Cancelled
    | StreamFailed
    | GoAway
    | Pong
)
Terminal = Done | Cancelled | StreamFailed
