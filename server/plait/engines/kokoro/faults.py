"""What can be wrong with one speech job, as the typed error its peer is told.

Does NOT know how the job is ended.
"""

from __future__ import annotations

import sys
import traceback

import msgspec

from plait.engines.base import Prepare
from plait.errors import EmptyText, GenerationFailed, InvalidRequest, OutOfMemory, PlaitError
from plait.wire.params import SynthesizeParams


def read_params(command: Prepare) -> SynthesizeParams:
    """Raises InvalidRequest; the gateway has checked all of it, so this is for other drivers."""
    try:
        return msgspec.convert(command.params, SynthesizeParams)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"{error}. Correct it and send it again.") from None


def nothing_to_speak() -> EmptyText:
    return EmptyText(
        "The text has nothing that can be spoken in this language; send words, or take a voice of"
        " the text's own language.",
        param="text",
    )


def failure_of(job: int, error: Exception) -> PlaitError:
    """What the peer is told; what is not ours is logged, without its message: it may quote text.

    Inference libraries report exhausted memory in words only.
    """
    if isinstance(error, PlaitError):
        return error
    sys.stderr.write(f"kokoro: job {job} broke: {type(error).__name__}\n")
    traceback.print_tb(error.__traceback__)
    words = str(error).lower()
    if isinstance(error, MemoryError) or "allocat" in words or "out of memory" in words:
        return OutOfMemory(
            "The engine ran out of memory for this speech; send less or try again later.",
            retry_after_ms=1000,
        )
    return GenerationFailed("The model could not speak this text; change the text or the voice.")
