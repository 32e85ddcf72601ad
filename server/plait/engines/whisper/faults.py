"""What can be wrong with one transcription, as the typed error its peer is told.

Does NOT know how a job is ended.
"""

from __future__ import annotations

import signal

import msgspec

from plait.engines.base import Prepare
from plait.errors import (
    EngineCrashed,
    GenerationFailed,
    InvalidRequest,
    OutOfMemory,
    PlaitError,
    UnsupportedMethod,
)
from plait.wire.params import TranscribeParams

SHOWN_LANGUAGES = 12


def read_params(command: Prepare, languages: list[str]) -> TranscribeParams:
    """Raises InvalidRequest; the gateway has checked all of it, so this is for other drivers.

    `languages`: those the model knows; none: not known, so the model will see.
    """
    if command.method != "transcribe":
        raise UnsupportedMethod(f"This model does transcribe, not '{command.method}'.")
    try:
        params = msgspec.convert(command.params, TranscribeParams)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"{error}. Correct it and send it again.") from None
    if params.language is not None and languages and params.language not in languages:
        known = ", ".join(languages[:SHOWN_LANGUAGES])
        more = ", …" if len(languages) > SHOWN_LANGUAGES else ""
        raise InvalidRequest(
            f"language: this model does not know '{params.language}'; it knows {known}{more}.",
            param="language",
        )
    return params


def death_of(status: int | None) -> PlaitError:
    """Of a stream's process that ended by itself; `status` as in `Gone`.

    Who is killed from outside, as the kernel does when memory runs out, may be tried again at
    once; what broke by itself would most likely break again.
    """
    if status is None:
        return OutOfMemory(
            "The machine has no memory or process to spare for this stream; try again later.",
            retry_after_ms=1000,
        )
    if status == -signal.SIGKILL:
        return EngineCrashed(
            "The process of this stream was killed, perhaps because memory ran out; open the "
            "stream again.",
            retry_after_ms=0,
        )
    how = f"signal {-status}" if status < 0 else f"exit status {status}"
    return GenerationFailed(
        f"The process of this stream ended in the midst of it ({how}); send other audio, or verify "
        "the model."
    )
