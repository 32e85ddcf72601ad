"""Which input a stream takes: audio frames, text, texts, or none (PROTOCOL.md §3).

Decided by its params at open; `end` closes the port for good. This module does NOT know streams'
lives nor how much input may come (see `window.InputCredit`).
"""

from __future__ import annotations

import enum

from plait.errors import InvalidRequest
from plait.wire.params import EmbedParams, Params, SynthesizeParams, TranscribeParams


class InputPort(enum.Enum):
    """It only ever changes to ENDED."""

    NONE = "none"
    AUDIO = "audio"
    TEXT = "text"
    TEXTS = "texts"
    ENDED = "ended"


def port_for(params: Params) -> InputPort:
    if isinstance(params, TranscribeParams):
        return InputPort.AUDIO
    if isinstance(params, SynthesizeParams) and params.text is None:
        return InputPort.TEXT
    if isinstance(params, EmbedParams) and params.texts is None:
        return InputPort.TEXTS
    return InputPort.NONE


def input_mistake(method: str, port: InputPort, came: InputPort) -> InvalidRequest | None:
    """What is wrong about input of kind `came` at `port`; None if nothing is."""
    if port is came:
        return None
    if port is InputPort.ENDED:
        return InvalidRequest("input after end. Open a new stream for more input.", param="type")
    if port is InputPort.NONE:
        return InvalidRequest(f"this {method} stream takes no input.", param="type")
    return InvalidRequest(
        f"this {method} stream takes {port.value} as input, not {came.value}.",
        param="type" if came is InputPort.AUDIO else came.value,
    )


def one_input_needed(port: InputPort, *, given: bool) -> InvalidRequest:
    """An `input` with both text and texts (`given`), or with neither; names the wrong one."""
    wrong = "texts" if (port is InputPort.TEXTS) != given else "text"
    return InvalidRequest(
        f"{wrong}: input takes exactly one of text (for synthesize) and texts (for embed).",
        param=wrong,
    )
