"""What every message of a server must hold: PROTOCOL.md §2's tables, read off the document.

Written anew from the document, not taken from the server's own types: a mistake there must not hide
itself. Unknown fields are allowed everywhere (§8). Does NOT know what came before a message.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from plait.conformance.error_table import error_faults

Check = Callable[[Any], bool]
Field = tuple[Check, bool, str]  # what it must be, whether it is required, in words


def _integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _count(value: Any) -> bool:
    return _integer(value) and value >= 0


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _milliseconds(value: Any) -> bool:
    return _number(value) and value >= 0


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _counts(value: Any) -> bool:
    return isinstance(value, dict) and all(_count(number) for number in value.values())


def _or_null(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _one_of(*values: str) -> Check:
    return lambda value: value in values


def _strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _timing(value: Any) -> bool:
    return isinstance(value, dict) and all(
        _milliseconds(value.get(key)) or (key == "first_item_ms" and value.get(key, 0) is None)
        for key in ("queued_ms", "first_item_ms", "total_ms", "paused_ms")
    )


def _limits(value: Any) -> bool:
    names = ("max_streams", "max_queued", "max_text_bytes", "max_binary_bytes", "window")
    return (
        isinstance(value, dict)
        and all(_count(value.get(name)) for name in names)
        and all(_milliseconds(value.get(name)) for name in ("opens_per_second", "ping_seconds"))
    )


def _methods(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(info, dict)
        and _strings(info.get("models"))
        and bool(info["models"])
        and all(_strings(info.get(name, [])) for name in ("voices", "languages"))
        for info in value.values()
    )


ID: Final[Field] = (lambda value: _integer(value) and 1 <= value < 2**32, True, "1 … 4294967295")
SEQ: Final[Field] = (_count, True, "an integer ≥ 0")
USAGE: Final[Field] = (_counts, True, "an object of integers ≥ 0")
TIMING: Final[Field] = (_timing, True, "{queued_ms, first_item_ms, total_ms, paused_ms}")
ERROR: Final[Field] = (lambda value: isinstance(value, dict), True, "an object")
FINISH: Final = ("stop", "length", "tool_calls")
BY: Final = ("client", "deadline", "slow", "disconnect", "shutdown")

FIELDS: Final[Mapping[str, Mapping[str, Field]]] = {
    "welcome": {
        "protocol": (_one_of("plait.v1"), True, "plait.v1"),
        "session": (_text, True, "a string"),
        "server": (_text, True, "a string"),
        "limits": (_limits, True, "an object of all seven limits"),
        "methods": (_methods, True, "{method: {models, voices?, languages?}}"),
        "capabilities": (_strings, True, "an array of strings"),
        "app": (_text, False, "a string"),
    },
    "accepted": {
        "id": ID,
        "phase": (_one_of("loading", "preparing", "queued"), True, "loading, preparing or queued"),
        "position": SEQ,
        "percent": (lambda value: _number(value) and 0 <= value <= 100, False, "0 … 100"),
        "eta_ms": (_milliseconds, False, "milliseconds"),
        "window_bytes": (_count, False, "an integer ≥ 0"),
    },
    "rejected": {"id": ID, "error": ERROR},
    "started": {
        "id": ID,
        "model": (_text, True, "a string"),
        "max_tokens": (lambda value: _integer(value) and value >= 1, False, "an integer ≥ 1"),
        "format": (lambda value: isinstance(value, dict), False, "an object"),
    },
    "item": {
        "id": ID,
        "seq": (lambda value: _integer(value) and value >= 1, True, "an integer ≥ 1"),
        "data": (lambda value: isinstance(value, dict), True, "an object"),
    },
    "input_ack": {"id": ID, "bytes": SEQ, "window_bytes": SEQ},
    "done": {
        "id": ID,
        "seq": SEQ,
        "finish_reason": (_one_of(*FINISH), True, "stop, length or tool_calls"),
        "usage": USAGE,
        "timing": TIMING,
        "truncated": (
            lambda value: isinstance(value, list) and all(_count(each) for each in value),
            False,
            "an array of indexes",
        ),
    },
    "cancelled": {
        "id": ID,
        "seq": SEQ,
        "by": (_one_of(*BY), True, ", ".join(BY)),
        "released": (lambda value: isinstance(value, bool), True, "true or false"),
        "stop_ms": (_or_null(_milliseconds), True, "milliseconds or null"),
        "wasted": (_or_null(_counts), True, "an object of integers, or null"),
        "usage": USAGE,
        "timing": TIMING,
        "heard": (_text, False, "a string"),
    },
    "error": {"id": ID, "seq": SEQ, "error": ERROR, "usage": USAGE, "timing": TIMING},
    "goaway": {"code": (_one_of("shutting_down"), True, "shutting_down"), "drain_ms": SEQ},
    "pong": {"n": (_count, True, "an integer ≥ 0")},
}
TERMINALS: Final = ("done", "cancelled", "error")


def field_faults(message: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """(section, expected, seen) for each field of a message of a known type that is not right."""
    type = message["type"]
    section = "§1" if type == "welcome" else "§2"
    faults = []
    for name, (check, required, words) in FIELDS[type].items():
        if name not in message:
            if required:
                faults.append((section, f"`{type}` has `{name}`", "it is missing"))
        elif not check(message[name]):
            faults.append((section, f"`{name}` of `{type}`: {words}", repr(message[name])[:200]))
    if isinstance(message.get("error"), dict):
        faults += error_faults(message["error"])
    return faults
