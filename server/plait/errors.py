"""The one error tree. Its leaves are the closed code list of PROTOCOL.md §6.

    PlaitError
    ├── ClientError      the peer can mend it: invalid_message, invalid_request, unsupported_method,
    │                    model_not_found, voice_not_found, context_overflow, input_too_long,
    │                    session_limit, template_error, empty_text, invalid_audio, input_overflow,
    │                    id_reused, too_many_streams, unauthorized, capability_denied
    ├── CapacityError    try later: resource_not_available, queue_full, queue_timeout, rate_limited,
    │                    out_of_memory, shutting_down
    ├── ModelError       the model could not: model_load_failed, generation_failed
    └── InternalError    our fault: engine_crashed, resume_gone, internal

A message says what was wrong, with the numbers, and what to do next. It is sent to peers, so it
never holds a path, a traceback or another peer's data. This module imports nothing of ours.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

ErrorClass = Literal["client", "capacity", "model", "internal"]


class PlaitError(Exception):
    """Base of all errors a peer may see; raise a leaf, never this.

    `param` names the offending field (dotted path), `data` carries the facts as JSON values,
    `retry_after_ms` is a hint for retryable errors.
    """

    code: ClassVar[str]
    error_class: ClassVar[ErrorClass]
    retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        data: dict[str, Any] | None = None,
        retry_after_ms: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.data = data
        self.retry_after_ms = retry_after_ms


class ClientError(PlaitError):
    error_class = "client"


class CapacityError(PlaitError):
    error_class = "capacity"
    retryable = True


class ModelError(PlaitError):
    error_class = "model"


class InternalError(PlaitError):
    error_class = "internal"
    retryable = True


class InvalidMessage(ClientError):
    code = "invalid_message"


class InvalidRequest(ClientError):
    code = "invalid_request"


class UnsupportedMethod(ClientError):
    code = "unsupported_method"


class ModelNotFound(ClientError):
    code = "model_not_found"


class VoiceNotFound(ClientError):
    code = "voice_not_found"


class ContextOverflow(ClientError):
    """`data`: prompt_tokens, limit."""

    code = "context_overflow"


class InputTooLong(ClientError):
    """`data`: index, tokens, limit."""

    code = "input_too_long"


class SessionLimit(ClientError):
    code = "session_limit"


class TemplateError(ClientError):
    code = "template_error"


class EmptyText(ClientError):
    code = "empty_text"


class InvalidAudio(ClientError):
    code = "invalid_audio"


class InputOverflow(ClientError):
    code = "input_overflow"


class IdReused(ClientError):
    code = "id_reused"


class TooManyStreams(ClientError):
    code = "too_many_streams"
    retryable = True


class Unauthorized(ClientError):
    code = "unauthorized"


class CapabilityDenied(ClientError):
    """`data`: capability."""

    code = "capability_denied"


class ResourceNotAvailable(CapacityError):
    """`data`: model, required_bytes, available_bytes."""

    code = "resource_not_available"


class QueueFull(CapacityError):
    code = "queue_full"


class QueueTimeout(CapacityError):
    code = "queue_timeout"


class RateLimited(CapacityError):
    code = "rate_limited"


class OutOfMemory(CapacityError):
    code = "out_of_memory"


class ShuttingDown(CapacityError):
    code = "shutting_down"


class ModelLoadFailed(ModelError):
    code = "model_load_failed"


class GenerationFailed(ModelError):
    code = "generation_failed"


class EngineCrashed(InternalError):
    code = "engine_crashed"


class ResumeGone(InternalError):
    code = "resume_gone"
    retryable = False


class Internal(InternalError):
    code = "internal"


def _leaves(cls: type[PlaitError]) -> list[type[PlaitError]]:
    subclasses = cls.__subclasses__()
    return [cls] if not subclasses else [leaf for sub in subclasses for leaf in _leaves(sub)]


BY_CODE: dict[str, type[PlaitError]] = {leaf.code: leaf for leaf in _leaves(PlaitError)}
