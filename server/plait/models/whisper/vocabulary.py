"""Whisper's words in the order of their ids, as bytes, out of a tokenizer.json.

Only what is text: whisper.cpp knows the special tokens from `<|endoftext|>` on by number. A byte
that is no printable letter is written as one in tokenizer.json, as GPT-2 began to.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from plait.models.errors import ModelDamaged

_END = "<|endoftext|>"
_PRINTABLE: Final = (*range(ord("!"), 127), *range(161, 173), *range(174, 256))
_OTHERS: Final = tuple(byte for byte in range(256) if byte not in _PRINTABLE)
_BYTE_OF: Final = {chr(byte): byte for byte in _PRINTABLE} | {
    chr(256 + index): byte for index, byte in enumerate(_OTHERS)
}


def read_vocabulary(tokenizer: Path) -> list[bytes]:
    """Raises ModelDamaged when the file is not a Whisper model's."""
    try:
        content = json.loads(tokenizer.read_text(encoding="utf-8"))
        special = {token["content"]: token["id"] for token in content["added_tokens"]}
        words = [b""] * special[_END]
        for text, number in content["model"]["vocab"].items():
            if text not in special and 0 <= number < len(words):
                words[number] = bytes(_BYTE_OF[letter] for letter in text)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelDamaged(
            f"{tokenizer.name} is not a usable vocabulary ({error!r}).",
            "Fetch it again, or set transcribe_model = 'whisper-tiny.en'.",
        ) from error
    return words
