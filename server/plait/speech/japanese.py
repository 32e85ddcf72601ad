"""Japanese by misaki's `ja` extra. Does NOT normalise."""

from __future__ import annotations

from plait.speech.alignment import Sound


class JapanesePronouncer:
    """Loading takes a second or two: a morphological dictionary."""

    def __init__(self) -> None:
        from misaki import ja

        self._g2p = ja.JAG2P()

    def pronounce(self, text: str) -> list[Sound]:
        phonemes, _tokens = self._g2p(text) if text.strip() else ("", None)
        return [Sound(0, len(text), str(phonemes))] if phonemes else []
