"""From token ids to items of text: whole characters, stop strings, end of turn, length.

`Detokenizer` gives only whole characters and costs O(bytes of the token); `StopMatcher` holds back
only what may still become a stop string; `AnswerText` joins both with the end-of-turn tokens and
the token bound into what every chat adapter needs per job.
Invariant: the concatenation of all items is the decoded answer up to the first stop, whatever the
borders between tokens. Knows nothing of models, slots, jobs' lives or how a token was sampled.
"""

from __future__ import annotations

import codecs
from collections.abc import Collection, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

Ending: TypeAlias = Literal["stop", "length"]

_encode_json = msgspec.json.Encoder().encode


class Vocabulary(NamedTuple):
    """What a model's tokens mean as text; built once per model (see `prompt`).

    `pieces`: bytes of every token id, b"" for special tokens, which are never shown. `eos_ids`:
    every token that ends a turn. `skips_first_space`: sentencepiece's, an answer's first piece
    carries a space that is not part of it.
    """

    pieces: Sequence[bytes]
    eos_ids: frozenset[int]
    skips_first_space: bool = False


class Detokenizer:
    """One job's incremental decoder: `add` returns the characters the token completed.

    A character split over tokens appears with its last one. Bytes that cannot be UTF-8 appear as
    U+FFFD, exactly as decoding the whole answer at once would show them.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._pieces = vocabulary.pieces
        self._skips_space = vocabulary.skips_first_space
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def add(self, token: int) -> str:
        """Ids outside the table (padded vocabularies) have no text."""
        piece = self._pieces[token] if 0 <= token < len(self._pieces) else b""
        if self._skips_space and piece:
            self._skips_space = False
            piece = piece.removeprefix(b" ")
        return self._decoder.decode(piece)

    def finish(self, *, cut: bool) -> str:
        """What an unfinished character leaves behind; the decoder is empty afterwards.

        `cut`: we stopped the model in the middle, so half a character is dropped. Otherwise the
        model itself ended on invalid bytes, and U+FFFD says so.
        """
        if cut:
            self._decoder.reset()
            return ""
        return self._decoder.decode(b"", final=True)


def _borders(pattern: str) -> list[int]:
    """Knuth-Morris-Pratt: length of the longest proper border of every prefix of `pattern`."""
    borders = [0] * len(pattern)
    length = 0
    for index in range(1, len(pattern)):
        while length and pattern[index] != pattern[length]:
            length = borders[length - 1]
        if pattern[index] == pattern[length]:
            length += 1
        borders[index] = length
    return borders


class StopMatcher:
    """Finds the stop string whose last character comes first, holding back only true prefixes.

    Of several stops ending on one character the longest wins, so borders between tokens never
    change the result. `add` is amortized O(characters x stops), whatever the stops' lengths.
    """

    def __init__(self, stops: Collection[str]) -> None:
        assert all(stops), "an empty stop would match everywhere"
        self._stops = [(stop, _borders(stop)) for stop in dict.fromkeys(stops)]
        self._matched = [0] * len(self._stops)  # characters of each stop the text ends with
        self._held = ""

    def add(self, text: str) -> tuple[str, bool]:
        """-> (text that is surely no part of a stop, whether a stop was completed).

        After a completed stop the rest of the text is dropped and the matcher is spent.
        """
        if not self._stops:
            return text, False
        pending = self._held + text
        for index, char in enumerate(text, start=len(self._held) + 1):
            completed = self._advance(char)
            if completed:
                self._held = ""
                return pending[: index - completed], True
        keep = len(pending) - max(self._matched)
        self._held = pending[keep:]
        return pending[:keep], False

    def flush(self) -> str:
        """The held prefix, once it can no longer become a stop (end of turn, length)."""
        held, self._held = self._held, ""
        self._matched = [0] * len(self._stops)
        return held

    def _advance(self, char: str) -> int:
        """Feed one character; length of the longest stop it completes, or 0."""
        completed = 0
        for number, (stop, borders) in enumerate(self._stops):
            length = self._matched[number]
            while length and stop[length] != char:
                length = borders[length - 1]
            if stop[length] == char:
                length += 1
            if length == len(stop):
                completed = max(completed, length)
                length = borders[length - 1]
            self._matched[number] = length
        return completed


class Delta(NamedTuple):
    """One chat item: its encoded `data` member and how many tokens it accounts for."""

    data: bytes
    tokens: int


class AnswerText:
    """One job's answer: `add` every token sampled, in order, until `finish_reason` is set.

    `tokens` are the ids produced so far without the end-of-turn token; a resumed job continues
    from prompt + `tokens`. With `logprobs`, each delta lists the entries of its tokens.
    """

    def __init__(self, vocabulary: Vocabulary, stops: Collection[str], max_tokens: int) -> None:
        assert max_tokens >= 1
        self.tokens: list[int] = []
        self.finish_reason: Ending | None = None
        self.stop_string = False  # it ended at a stop string, so the engine would go on
        self._detokenizer = Detokenizer(vocabulary)
        self._matcher = StopMatcher(stops)
        self._eos_ids = vocabulary.eos_ids
        self._max_tokens = max_tokens
        self._unsent_tokens = 0
        self._unsent_logprobs: list[dict[str, Any]] = []

    def add(self, token: int, logprob: dict[str, Any] | None = None) -> Delta | None:
        """-> what the token made certain, or None. Sets `finish_reason` on the last token.

        `logprob`: {"token", "logprob", "top"} of this token, if the peer asked for it.
        """
        assert self.finish_reason is None, "the answer has ended"
        if token in self._eos_ids:
            self.finish_reason = "stop"
            return self._delta(self._rest(cut=False))
        self.tokens.append(token)
        self._unsent_tokens += 1
        if logprob is not None:
            self._unsent_logprobs.append(logprob)
        text, stopped = self._matcher.add(self._detokenizer.add(token))
        if stopped:
            self.finish_reason = "stop"
            self.stop_string = True
        elif len(self.tokens) >= self._max_tokens:
            self.finish_reason = "length"
            text += self._rest(cut=True)
        return self._delta(text)

    def end(self, reason: Ending) -> Delta | None:
        """The engine itself ended the answer; -> what was held back."""
        assert self.finish_reason is None, "the answer has ended"
        self.finish_reason = reason
        return self._delta(self._rest(cut=reason == "length"))

    def _rest(self, *, cut: bool) -> str:
        text, stopped = self._matcher.add(self._detokenizer.finish(cut=cut))
        return text if stopped else text + self._matcher.flush()

    def _delta(self, text: str) -> Delta | None:
        if not text:
            return None  # an item is never empty; its tokens count with the next one
        data: dict[str, Any] = {"content": text}
        if self._unsent_logprobs:
            data["logprobs"] = self._unsent_logprobs
            self._unsent_logprobs = []
        delta = Delta(_encode_json(data), self._unsent_tokens)
        self._unsent_tokens = 0
        return delta
