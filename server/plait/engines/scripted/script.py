"""The little language in which a prompt tells the scripted engine what to do.

The last user message, the text to speak, a transcription's prompt or the first text to embed is the
script: words of the form `key=value`, in any order; every other word is plain text. A chat that
begins with a system message has its words as well, where the user's, perhaps spoken ones, say
nothing else. So any prompt works, and `tokens=3 step_ms=5 Hello` answers "w0 w1 w2 ". Spoken are
all words, the script's too; "tokens" below are words there, the words heard in a transcription,
whose length its audio decides, and the texts of an embedding.

Output
    tokens=N        natural length of the answer (default: option `tokens`); finish_reason `stop`,
                    or `length` when max_tokens is less
    say=WORD        token i is the text "WORDi " (default "w"), so streams can be told apart
    size=N          each token's text is filled up with spaces to so many characters
    clock=1         token i is the engine's monotonic time in nanoseconds instead ("say" stays out)
    apart=1         each token's item holds one thing more, so that no gateway joins them
    call=NAME       the answer ends with a call of that tool, where tools are given; so it does
                    where `tool_choice` asks for one, without this
    args=JSON       its arguments, without spaces (default {})
    calls=N         so many of it (default 1)
    burst=N         tokens per step of this job (default 1)
    step_ms=F       the least a step takes while this job is in it (default: option)
    prefill_steps=N steps before the first token
    prompt_tokens=N pretend that the prompt is that long (default: words of all messages)
    word_ms=F       how long each word lasts in speech (default 100)
Failure
    refuse=CODE     `prepare` refuses with this error code; refuse_start=CODE: `start` does
    memory=WHERE    MemoryError in `prepare`, `start` or `step` (the last is a crash)
    prepare_ms=F    how long `prepare` takes
    fail_at=N       generation_failed after N tokens (here and below 0: before the first)
    raise_at=N      `step` raises after N tokens: a crash with a traceback
    crash_at=N      the process dies of SIGKILL after N tokens: a crash without a word
    hang_at=N       `step` never returns after N tokens, whatever happens
Cancel
    cancel_ms=F     a cancelled job computes no more but is released that much later
    ignore_cancel=1 cancels do nothing: it goes on to its natural end
    deaf=1          a step with this job cannot be cut short by `interrupt`
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from plait.errors import InvalidRequest

Count = Annotated[int, Meta(ge=0)]
Millis = Annotated[float, Meta(ge=0, le=3_600_000)]


class Script(msgspec.Struct, frozen=True):
    """The parsed prompt; see the module's docstring. -1 means never."""

    tokens: Count
    step_ms: Millis
    say: str = "w"
    size: Annotated[int, Meta(ge=0, le=4096)] = 0
    clock: bool = False
    apart: bool = False
    call: str = ""
    args: str = "{}"
    calls: Count = 1
    burst: Annotated[int, Meta(ge=1)] = 1
    prefill_steps: Count = 0
    prompt_tokens: int = -1
    word_ms: Annotated[float, Meta(ge=1, le=60_000)] = 100.0
    refuse: str = ""
    refuse_start: str = ""
    memory: Literal["", "prepare", "start", "step"] = ""
    prepare_ms: Millis = 0.0
    fail_at: int = -1
    raise_at: int = -1
    crash_at: int = -1
    hang_at: int = -1
    cancel_ms: Millis = 0.0
    ignore_cancel: bool = False
    deaf: bool = False


def chat_script(messages: Sequence[Mapping[str, Any]]) -> str:
    """The words of a chat that are its script; the later ones win."""
    told = [message for message in messages[:1] if message.get("role") == "system"]
    return " ".join(message.get("content") or "" for message in (*told, messages[-1]))


def parse_script(text: str, *, tokens: int, step_ms: float) -> Script:
    """Unknown keys are plain text; a bad value of a known one raises InvalidRequest."""
    words = [word.partition("=") for word in text.split()]
    values: dict[str, Any] = {"tokens": tokens, "step_ms": step_ms}
    values |= {key: value for key, equals, value in words if equals}
    try:
        return msgspec.convert(values, Script, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"The script is not valid: {error}", param="messages") from error
