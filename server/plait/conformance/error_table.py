"""The closed list of errors, PROTOCOL.md §6, and whether one that a server sent is on it.

Does NOT know when which error is due: that is for the cases.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

CLIENT, CAPACITY, MODEL, INTERNAL = "client", "capacity", "model", "internal"

ERRORS: Final[Mapping[str, tuple[str, bool]]] = {
    "invalid_message": (CLIENT, False),
    "invalid_request": (CLIENT, False),
    "unsupported_method": (CLIENT, False),
    "model_not_found": (CLIENT, False),
    "voice_not_found": (CLIENT, False),
    "context_overflow": (CLIENT, False),
    "input_too_long": (CLIENT, False),
    "session_limit": (CLIENT, False),
    "template_error": (CLIENT, False),
    "empty_text": (CLIENT, False),
    "invalid_audio": (CLIENT, False),
    "input_overflow": (CLIENT, False),
    "id_reused": (CLIENT, False),
    "too_many_streams": (CLIENT, True),
    "unauthorized": (CLIENT, False),
    "capability_denied": (CLIENT, False),
    "resource_not_available": (CAPACITY, True),
    "queue_full": (CAPACITY, True),
    "queue_timeout": (CAPACITY, True),
    "rate_limited": (CAPACITY, True),
    "out_of_memory": (CAPACITY, True),
    "shutting_down": (CAPACITY, True),
    "model_load_failed": (MODEL, False),
    "generation_failed": (MODEL, False),
    "engine_crashed": (INTERNAL, True),
    "resume_gone": (INTERNAL, False),
    "internal": (INTERNAL, True),
}
"""Code: (class, retryable)."""

DATA: Final[Mapping[str, tuple[str, ...]]] = {
    "voice_not_found": ("voices",),
    "context_overflow": ("prompt_tokens", "limit"),
    "input_too_long": ("index", "tokens", "limit"),
    "input_overflow": ("received_bytes", "credit_bytes"),
    "id_reused": ("highest_id",),
    "too_many_streams": ("limit",),
    "capability_denied": ("capability",),
    "resource_not_available": ("model", "required_bytes", "available_bytes"),
}
"""What `data` of a code holds."""


def error_faults(error: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """(section, expected, seen) for what is not right in an `error` object."""
    code = str(error.get("code"))
    if code not in ERRORS:
        return [("§6", "an error code of the closed list", repr(code))]
    error_class, retryable = ERRORS[code]
    data = error.get("data") or {}
    checks = (
        (error.get("class") == error_class, f"class of {code}: {error_class}", error.get("class")),
        (error.get("retryable") is retryable, f"retryable of {code}: {retryable}", error),
        (bool(error.get("message")), f"a message with {code}", error.get("message")),
        (
            isinstance(error.get("retry_after_ms", 0), int),
            f"retry_after_ms of {code} an integer",
            error.get("retry_after_ms"),
        ),
        (isinstance(error.get("param", ""), str), f"param of {code} a string", error.get("param")),
        (
            isinstance(data, dict) and all(name in data for name in DATA.get(code, ())),
            f"data of {code}: {', '.join(DATA.get(code, ())) or 'an object'}",
            data,
        ),
    )
    return [("§6", expected, repr(seen)[:200]) for holds, expected, seen in checks if not holds]
