"""Voice names: what a client may write for `voice`, and the language a voice speaks.

`af_heart`, or a blend of up to eight, `af_heart:0.6,bf_emma:0.4`. Only the grammar is known here:
a name is two letters, `_` and a word in lower case, so nothing that reaches a file system can be
anything but a plain file name. Does NOT know which voices are installed.
"""

from __future__ import annotations

import math
import re

from plait.errors import VoiceNotFound
from plait.speech.languages import BY_LETTER

MAX_PARTS = 8
MAX_CHARACTERS = 512

_NAME = re.compile(r"[a-z][fm]_[a-z0-9]{1,32}", re.ASCII)
_WEIGHT = re.compile(r"[0-9]{0,6}\.?[0-9]{0,12}", re.ASCII)
_SHOWN = 60


def parse_voice(text: str) -> tuple[tuple[str, float], ...]:
    """-> (name, weight) of every part, in the order written; the weights' sum is 1.

    Raises VoiceNotFound (param `voice`) for anything but well-formed names and weights above 0.
    """
    if len(text) > MAX_CHARACTERS:
        raise _not_a_voice(text, f"{len(text)} characters, at most {MAX_CHARACTERS} are read")
    parts = text.split(",")
    if len(parts) > MAX_PARTS:
        raise _not_a_voice(text, f"{len(parts)} voices, a blend has at most {MAX_PARTS}")
    weights: dict[str, float] = {}
    for part in parts:
        name, weight = _parse_part(text, part.strip())
        if name in weights:
            raise _not_a_voice(text, f"{name} is there twice")
        weights[name] = weight
    total = sum(weights.values())
    return tuple((name, weight / total) for name, weight in weights.items())


def voice_language(name: str) -> str:
    """The language a voice was made for, told by its first letter. Raises VoiceNotFound."""
    language = BY_LETTER.get(name[:1])
    if language is None or not _NAME.fullmatch(name):
        raise _not_a_voice(name, "no such name")
    return language


def _parse_part(text: str, part: str) -> tuple[str, float]:
    name, colon, written = part.partition(":")
    name, written = name.strip(), written.strip()
    if not _NAME.fullmatch(name) or name[0] not in BY_LETTER:
        raise _not_a_voice(text, "no such name" if part else "a name is missing")
    if not colon:
        return name, 1.0
    if not _WEIGHT.fullmatch(written) or not any(char.isdigit() for char in written):
        raise _not_a_voice(text, f"the weight of {name} is not a number above 0")
    weight = float(written)
    if weight <= 0 or not math.isfinite(weight):
        raise _not_a_voice(text, f"the weight of {name} is not above 0")
    return name, weight


def _not_a_voice(text: str, why: str) -> VoiceNotFound:
    # Python's own escapes keep control characters and lone surrogates out of the message.
    shown = ascii(text[:_SHOWN] + ("..." if len(text) > _SHOWN else ""))
    return VoiceNotFound(
        f"voice {shown}: {why}. Take one of the server's voices, or a blend of up to "
        f"{MAX_PARTS} like af_heart:0.6,bf_emma:0.4.",
        param="voice",
    )
