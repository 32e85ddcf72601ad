"""Mandarin by misaki's `zh` extra: jieba's words, pypinyin's readings, tones as arrows."""

from __future__ import annotations

from plait.speech.alignment import Sound


class ChinesePronouncer:
    def __init__(self) -> None:
        from misaki import zh

        self._g2p = zh.ZHG2P(unk="")

    def pronounce(self, text: str) -> list[Sound]:
        phonemes, _tokens = self._g2p(text) if text.strip() else ("", None)
        return [Sound(0, len(text), str(phonemes))] if phonemes else []
