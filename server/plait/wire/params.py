"""The params of each method's `open` (PROTOCOL.md §3), with their defaults and bounds.

A struct's constraints are the protocol's, so decoding is validating and an error names the field.
Unknown fields are ignored, as §8 asks. This module does NOT know the rest of the message, nor
which models and voices exist.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Name = Annotated[str, Meta(max_length=256)]
ModelName = Annotated[str, Meta(max_length=1024)]
Language = Annotated[str, Meta(max_length=16)]


class ChatMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    role: Annotated[str, Meta(min_length=1, max_length=64)]
    content: str | None = None
    name: Name | None = None
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: Name | None = None


class ChatParams(msgspec.Struct, frozen=True, omit_defaults=True):
    messages: Annotated[list[ChatMessage], Meta(min_length=1, max_length=4096)]
    model: ModelName | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    temperature: Annotated[float, Meta(ge=0, le=10)] = 0.7
    top_p: Annotated[float, Meta(gt=0, le=1)] = 0.95
    top_k: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    min_p: Annotated[float, Meta(ge=0, le=1)] = 0.0
    repetition_penalty: Annotated[float, Meta(gt=0, le=10)] = 1.0
    seed: Annotated[int, Meta(ge=0, le=2**32 - 1)] | None = None
    stop: (
        Annotated[list[Annotated[str, Meta(min_length=1, max_length=4096)]], Meta(max_length=16)]
        | None
    ) = None
    tools: Annotated[list[dict[str, Any]], Meta(max_length=128)] | None = None
    tool_choice: str | dict[str, Any] = "auto"
    parallel_tool_calls: bool = True
    response_format: dict[str, Any] | None = None
    logprobs: Annotated[int, Meta(ge=0, le=20)] | bool = False


class TranscribeParams(msgspec.Struct, frozen=True, omit_defaults=True):
    sample_rate: Annotated[int, Meta(ge=8000, le=48000)]
    model: ModelName | None = None
    language: Language | None = None
    channels: Annotated[int, Meta(ge=1, le=2)] = 1
    encoding: Literal["pcm_s16le", "pcm_f32le"] = "pcm_s16le"
    interim: bool = True
    words: bool = False
    events: bool = False
    prompt: Annotated[str, Meta(max_length=1024)] | None = None
    silence_ms: Annotated[int, Meta(ge=200, le=3000)] = 500
    max_segment_seconds: Annotated[float, Meta(ge=4, le=28)] = 12.0
    speech_threshold: Annotated[float, Meta(ge=0.1, le=0.9)] = 0.5

    @property
    def frame_bytes(self) -> int:
        """Of one moment in all channels of the audio these params declare."""
        return self.channels * (4 if self.encoding == "pcm_f32le" else 2)

    @property
    def bytes_per_second(self) -> int:
        return self.sample_rate * self.frame_bytes


class SynthesizeParams(msgspec.Struct, frozen=True, omit_defaults=True):
    text: str | None = None
    model: ModelName | None = None
    voice: Name | None = None
    speed: Annotated[float, Meta(ge=0.5, le=2)] = 1.0
    language: Language | None = None
    format: Literal["pcm_s16le"] = "pcm_s16le"
    marks: bool = False


class EmbedParams(msgspec.Struct, frozen=True, omit_defaults=True):
    texts: list[str] | None = None
    model: ModelName | None = None
    encoding: Literal["f32", "json"] = "f32"
    normalize: bool = True
    truncate: bool = False


Params = ChatParams | TranscribeParams | SynthesizeParams | EmbedParams

PARAMS: dict[str, type[Params]] = {
    "chat": ChatParams,
    "transcribe": TranscribeParams,
    "synthesize": SynthesizeParams,
    "embed": EmbedParams,
}
