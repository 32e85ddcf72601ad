"""Embeddings without a model: every text has a small vector of its own, which can be foretold.

The first text is the script, whose "tokens" are texts here; `burst` texts are answered in a step,
in one frame. A text has a token for each word, and two more; over MAX_TOKENS it is too long. One
with the word `nan` has no vector. Fed texts count as consumed when they are answered. Does NOT
know steps nor slots (see `scripted`).
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from plait.engines.base import Consumed, Event, Feed, Usage
from plait.engines.embed.output import Answer, items
from plait.engines.embed.texts import credit_of, too_long
from plait.engines.scripted.jobs import ScriptedJob
from plait.engines.scripted.script import Script
from plait.errors import GenerationFailed, PlaitError
from plait.wire.messages import Format
from plait.wire.params import EmbedParams

DIMS = 8
FORMAT = Format("f32", dims=DIMS)
MAX_TOKENS = 256
NO_VECTOR = "nan"


def vector(text: str, *, normalize: bool = True) -> NDArray[np.float32]:
    """What a text's embedding is, [DIMS]; of unit length, or as the model gave it."""
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=4 * DIMS).digest()
    raw = np.frombuffer(digest, "<u4").astype(np.float64) / 2**31 - 1
    found: NDArray[np.float32] = raw.astype(np.float32)
    return (raw / np.linalg.norm(raw)).astype(np.float32) if normalize else found


@dataclass(slots=True)
class EmbedJob(ScriptedJob):
    params: EmbedParams = field(kw_only=True)
    parse: Callable[[str], Script] = field(kw_only=True)
    texts: deque[str] = field(default_factory=deque)
    fed: bool = False
    input_ended: bool = False
    scripted: bool = False  # its first text was read
    counts: Usage = field(default_factory=lambda: {"texts": 0, "tokens": 0})

    @property
    def bursts(self) -> int:
        """A burst is one frame here."""
        return 1

    @property
    def ready(self) -> bool:
        return bool(self.texts) or self.input_ended

    @property
    def usage(self) -> Usage:
        return dict(self.counts)

    def feed(self, feed: Feed) -> None:
        """Raises InvalidRequest for a bad script."""
        self.take(feed.texts or ())

    def take(self, texts: Iterable[str]) -> None:
        self.texts.extend(texts)
        self.starved = False
        if self.texts and not self.scripted:
            self.scripted = True
            self.script = self.parse(self.texts[0])

    def finish_input(self) -> None:
        self.input_ended = True
        self.starved = False

    def advance(self) -> list[Event]:
        """A burst of texts, up to where the script wants something to happen."""
        answers: list[Answer] = []
        while self.texts and len(answers) < self.script.burst:
            answers.append(self._answer(self.texts.popleft()))
            if self.produced in self._ends:
                break
        if not self.texts and self.input_ended:
            self.finish_reason = "stop"
        events: list[Event] = []
        if self.fed and answers:
            events.append(Consumed(self.job, sum(answer.credit_bytes for answer in answers)))
        return [*events, *items(self.job, answers, as_json=self.params.encoding == "json")]

    @property
    def _ends(self) -> tuple[int, ...]:
        script = self.script
        return (script.fail_at, script.raise_at, script.crash_at, script.hang_at)

    def _answer(self, text: str) -> Answer:
        index, self.produced = self.produced, self.produced + 1
        tokens = len(text.split()) + 2
        truncated = tokens > MAX_TOKENS and self.params.truncate
        outcome = self._outcome(index, text, tokens)
        failed = isinstance(outcome, PlaitError)
        counted = 0 if failed else min(tokens, MAX_TOKENS)
        self.counts["texts"] += 1
        self.counts["tokens"] += counted
        for name, counts in (("truncated", truncated), ("failed", failed)):
            if counts:
                self.counts[name] = self.counts.get(name, 0) + 1
        return Answer(index, outcome, counted, truncated, credit_of(text))

    def _outcome(self, index: int, text: str, tokens: int) -> NDArray[np.float32] | PlaitError:
        words = text.split()
        if tokens > MAX_TOKENS and not self.params.truncate:
            return too_long(index, tokens, MAX_TOKENS)
        if NO_VECTOR in words:
            return GenerationFailed(
                f"Text {index} has no vector; change it.", data={"index": index}
            )
        if tokens > MAX_TOKENS:
            text = " ".join(words[: MAX_TOKENS - 2])
        return vector(text, normalize=self.params.normalize)


def embed_job(job: int, params: Mapping[str, Any], parse: Callable[[str], Script]) -> EmbedJob:
    """`params` as in `Prepare`. Raises InvalidRequest for a bad script."""
    declared = msgspec.convert(params, EmbedParams)
    texts = declared.texts
    entry = EmbedJob(job, parse(""), params=declared, parse=parse, fed=texts is None)
    entry.input_ended = not entry.fed
    entry.take(texts or ())
    return entry
