"""From token ids to items: whole characters, stop strings, tool calls, end of turn, length.

`Detokenizer` gives only whole characters and costs O(bytes of the token); `StopMatcher` holds back
only what may still become a stop string; `AnswerText` joins both with the end-of-turn tokens, the
token bound and, where tools were given, the parser of calls into what every chat adapter needs per
job. Invariant: the concatenation of all items is the decoded answer up to the first stop, whatever
the borders between tokens. Knows nothing of models, slots, jobs or how a token was sampled.
"""

from __future__ import annotations

import codecs
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from plait.engines.chat.calls import CallParser
from plait.engines.chat.constraint import Watch
from plait.wire.messages import FinishReason

Ending: TypeAlias = Literal["stop", "length"]

_encode_json = msgspec.json.Encoder().encode


class Vocabulary(NamedTuple):
    """What a model's tokens mean as text; built once per model (see `prompt`).

    `pieces`: bytes of every token id, b"" for special tokens, which are never shown. `eos_ids`:
    every token that ends a turn. `skips_first_space`: sentencepiece's, an answer's first piece
    carries a space that is not part of it. `marks`: special tokens that are markup of tool calls,
    and what stands for them in the text of an answer that may call.
    """

    pieces: Sequence[bytes]
    eos_ids: frozenset[int]
    skips_first_space: bool = False
    marks: Mapping[int, bytes] = MappingProxyType({})


class Detokenizer:
    """One job's incremental decoder: `add` returns the characters the token completed.

    A character split over tokens appears with its last one. Bytes that cannot be UTF-8 appear as
    U+FFFD, exactly as decoding the whole answer at once would show them.
    """

    def __init__(self, vocabulary: Vocabulary, *, marks: bool = False) -> None:
        """`marks`: whether the markup of tool calls is wanted."""
        self._pieces = vocabulary.pieces
        self._marks = vocabulary.marks if marks else {}
        self._skips_space = vocabulary.skips_first_space
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def add(self, token: int) -> str:
        """Ids outside the table (padded vocabularies) have no text."""
        piece = self._pieces[token] if 0 <= token < len(self._pieces) else b""
        if not piece and self._marks:
            piece = self._marks.get(token, b"")
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
    from prompt + `tokens`. With `logprobs`, each delta lists the entries of its tokens. `calls`:
    the parser of its tool calls, if any tools were given. `watch`: of the form it must have, if
    any; then `add` and `end` raise `GenerationFailed`, after which the answer is over.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        stops: Collection[str],
        max_tokens: int,
        calls: CallParser | None = None,
        watch: Watch | None = None,
    ) -> None:
        assert max_tokens >= 1
        self.tokens: list[int] = []
        self.finish_reason: FinishReason | None = None
        # It ended where the engine would go on: at a stop string, or after the one call asked for.
        self.stop_string = False
        self._detokenizer = Detokenizer(vocabulary, marks=calls is not None)
        self._matcher = StopMatcher(stops)
        self._calls = calls
        self._watch = watch
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
            return self._end("stop", self._rest(cut=False))
        self.tokens.append(token)
        self._unsent_tokens += 1
        if logprob is not None:
            self._unsent_logprobs.append(logprob)
        text = self._detokenizer.add(token)
        if self._watch is not None:
            self._watch.add(text)
        text, stopped = self._matcher.add(text)
        if stopped:
            self.stop_string = True
            return self._end("stop", text)
        if len(self.tokens) >= self._max_tokens:
            return self._end("length", text + self._rest(cut=True))
        return self._delta(text) if self._calls is None else self._parse(self._calls, text)

    def end(self, reason: Ending) -> Delta | None:
        """The engine itself ended the answer; -> what was held back."""
        assert self.finish_reason is None, "the answer has ended"
        return self._end(reason, self._rest(cut=reason == "length"))

    def _rest(self, *, cut: bool) -> str:
        text = self._detokenizer.finish(cut=cut)
        if self._watch is not None and not cut:
            self._watch.add(text)
            self._watch.finish()
        text, stopped = self._matcher.add(text)
        return text if stopped else text + self._matcher.flush()

    def _end(self, reason: Ending, text: str) -> Delta | None:
        self.finish_reason = reason
        if self._calls is None:
            return self._delta(text)
        content, tool_calls = self._calls.finish(text, cut=reason == "length")
        if self._calls.completed and not self._calls.cut:
            self.finish_reason = "tool_calls"
        return self._delta(content, tool_calls)

    def _parse(self, calls: CallParser, text: str) -> Delta | None:
        content, tool_calls = calls.add(text)
        if calls.done:
            self.finish_reason = "tool_calls"
            self.stop_string = True
        return self._delta(content, tool_calls)

    def _delta(self, text: str, tool_calls: list[dict[str, Any]] | None = None) -> Delta | None:
        if not text and not tool_calls:
            return None  # an item is never empty; its tokens count with the next one
        data: dict[str, Any] = {"content": text} if text else {}
        if tool_calls:
            data["tool_calls"] = tool_calls
        if self._unsent_logprobs:
            data["logprobs"] = self._unsent_logprobs
            self._unsent_logprobs = []
        delta = Delta(_encode_json(data), self._unsent_tokens)
        self._unsent_tokens = 0
        return delta
