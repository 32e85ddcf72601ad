"""How one language is read aloud: its rules and its pronouncer, put together.

Two steps, because the first costs a millisecond and tells how long the second would take: `script`
(what is said) and `sound` (phonemes, words). Does NOT know segments.
"""

from __future__ import annotations

from plait.speech.alignment import Spoken, align
from plait.speech.english_words import SIGNS
from plait.speech.normalisation import script_of
from plait.speech.pronouncing import Pronouncer, tolerant
from plait.speech.rewriting import Script
from plait.speech.segment import MAX_PHONEMES

_SILENCE = Script("", [], [], [])


class Reading:
    """One language's, shared by its streams; used by one thread."""

    def __init__(self, language: str, pronouncer: Pronouncer) -> None:
        self.language = language
        self._pronouncer = pronouncer

    def script(self, text: str) -> Script:
        """What is said for `text`; empty where it is only punctuation."""
        if not any(char.isalnum() or char in SIGNS for char in text):
            return _SILENCE
        return script_of(text, self.language)

    def sound(self, text: str, script: Script) -> Spoken:
        """How `script`, made of `text`, sounds."""
        if not script.text.strip():
            return Spoken("", ())
        sounds = tolerant(self._pronouncer.pronounce, script.text)
        spoken = align(text, script, sounds, spaced=self._pronouncer.spaced)
        if len(text) <= 1:  # it cannot be cut any further; a ligature may be a whole phrase
            return Spoken(spoken.phonemes[:MAX_PHONEMES], ())
        return spoken
