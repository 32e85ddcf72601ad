"""Text as it is to be said: the rules of a language, applied."""

from __future__ import annotations

from plait.speech.rewriting import Script, rewrite


def script_of(text: str, language: str) -> Script:
    """What is said for `text`, character by character."""
    return rewrite(text, ())
