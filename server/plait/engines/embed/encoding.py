"""Texts to token ids, in pieces so short that nobody waits for one.

A tokenizer cannot be interrupted and takes half a second for a megabyte of text, so a long text is
cut at white space into pieces that are tokenized one by one; the ids are the same where words do
not depend on their neighbours, which is so for all tokenizers of these models. A text that is to be
truncated is read only as far as the model reads. Does NOT know jobs or batches.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from plait.models.embedding.settings import TOKENIZER_NAME, EmbeddingSettings

PIECE_CHARACTERS: Final = 4096  # 5 ms of English, 10 of Chinese
# Where there is no white space: a longer word is cut.
_WORD_CHARACTERS: Final = 16_384


class Tokenizer:
    """A tokenizer.json, without padding, truncation and special tokens, which are added here."""

    def __init__(self, form: Path, settings: EmbeddingSettings) -> None:
        """Raises what the tokenizers library raises: Exception."""
        import tokenizers

        # Its own threads would compute beside the model's, on cores that were not given to us.
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        self._tokenizer: Any = tokenizers.Tokenizer.from_file(str(form / TOKENIZER_NAME))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._settings = settings
        self.before, self.after = self._special_tokens()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of each, without special tokens."""
        lower = self._settings.lower_case
        found = self._tokenizer.encode_batch_fast(
            [text.lower() if lower else text for text in texts], add_special_tokens=False
        )
        return [encoding.ids for encoding in found]

    def _special_tokens(self) -> tuple[list[int], list[int]]:
        """Those before and after a text."""
        encoding = self._tokenizer.encode("a")
        special = encoding.special_tokens_mask
        first = special.index(0) if 0 in special else len(special)
        end = len(special) - special[::-1].index(0) if 0 in special else first
        return encoding.ids[:first], encoding.ids[end:]


@dataclass(slots=True)
class Encoded:
    """`ids` with special tokens, at most as many as the model reads. `tokens`: how many the whole
    text has, as far as it was counted."""

    ids: list[int]
    tokens: int
    truncated: bool


@dataclass(slots=True)
class TextEncoder:
    """Encodes for one model."""

    tokenizer: Tokenizer
    settings: EmbeddingSettings

    def begin(self, text: str) -> LongText:
        return LongText(self, f"{self.settings.prefix}{text}".strip())

    def encode_short(self, texts: Sequence[str]) -> list[Encoded]:
        """For texts of at most PIECE_CHARACTERS."""
        whole = [f"{self.settings.prefix}{text}".strip() for text in texts]
        return [self.finish(ids, len(ids)) for ids in self.tokenizer.encode(whole)]

    def finish(self, ids: list[int], tokens: int) -> Encoded:
        before, after = self.tokenizer.before, self.tokenizer.after
        room = max(0, self.settings.max_tokens - len(before) - len(after))
        complete = [*before, *ids[:room], *after]
        if not complete:  # a model without special tokens, a text without words
            return Encoded([self.settings.pad_id], 1, truncated=False)
        return Encoded(complete, tokens + len(before) + len(after), truncated=tokens > room)


@dataclass(slots=True)
class LongText:
    """A text on its way into tokens, a piece at a time."""

    encoder: TextEncoder
    text: str
    _place: int = 0
    _ids: list[int] = field(default_factory=list)
    _tokens: int = 0

    def advance(self, *, to_the_end: bool) -> Encoded | None:
        """Encode a piece; None: there is more of it. Without `to_the_end` that is so only until
        the model's limit is reached."""
        limit = self.encoder.settings.max_tokens
        piece = self._take_piece()
        (ids,) = self.encoder.tokenizer.encode([piece])
        self._tokens += len(ids)
        self._ids += ids[: max(0, limit - len(self._ids))]
        over = self._place >= len(self.text) or (self._tokens > limit and not to_the_end)
        return self.encoder.finish(self._ids, self._tokens) if over else None

    def _take_piece(self) -> str:
        """Up to white space, which begins the next piece."""
        begin, end = self._place, self._place + PIECE_CHARACTERS
        if end < len(self.text):
            while end > begin and not self.text[end].isspace():
                end -= 1
            if end == begin:
                end = begin + PIECE_CHARACTERS
                last = min(begin + _WORD_CHARACTERS, len(self.text))
                while end < last and not self.text[end].isspace():
                    end += 1
        self._place = min(end, len(self.text))
        return self.text[begin : self._place]
