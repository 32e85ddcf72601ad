"""An embedding engine without a model: a word is a token, and a text's vector is [words, sum, 1].

A word's id is its number, or its length; BEGIN and END are around each text. `ToyModel.during` is
called inside every batch, as if it came from another thread; the text "nan" has no finite vector,
and a batch with "break" in it fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from plait.engines.base import Consumed, Event, Feed, Finished, Item, LoadSpec, Prepare, Released
from plait.engines.embed.encoding import TextEncoder, Tokenizer
from plait.engines.embed.engine import EmbedEngine
from plait.engines.embed.model import Floats, Interrupted, TokenIds
from plait.engines.embed.packing import Pace
from plait.models.embedding.settings import EmbeddingSettings
from plait.wire.frames import BinaryKind
from tests.engines.flags import Flags

LIMIT = 20  # tokens, the special ones included
BEGIN, END, NAN, BREAK = 1001, 1002, 1003, 1004


class ToyTokenizer:
    before: tuple[int, ...] = (BEGIN,)
    after: tuple[int, ...] = (END,)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        if any("unreadable" in text for text in texts):
            raise ValueError("no such text")
        return [[_id(word) for word in text.split()] for text in texts]


def _id(word: str) -> int:
    named = {"nan": NAN, "break": BREAK}
    return int(word) if word.isdigit() else named.get(word, len(word))


class ToyModel:
    def __init__(self) -> None:
        self.during: Callable[[], None] = lambda: None
        self.batches: list[list[list[int]]] = []  # those that came to their end
        self.closed = False
        self._interrupted = False

    def embed(self, texts: Sequence[TokenIds]) -> Floats:
        self.during()
        if self._interrupted:
            raise Interrupted
        batch = [list(ids) for ids in texts]
        if any(BREAK in ids for ids in batch):
            raise RuntimeError("the model broke")
        self.batches.append(batch)
        return np.array([toy_vector(ids) for ids in batch], np.float32)

    def interrupt(self) -> None:
        self._interrupted = True

    def rearm(self) -> None:
        self._interrupted = False

    def close(self) -> None:
        self.closed = True


def toy_vector(ids: Sequence[int]) -> list[float]:
    words = [number for number in ids if number not in (BEGIN, END)]
    return [len(words), float("nan") if NAN in words else sum(words), 1.0]


class NoThread:
    """Computes at once, when it is waited for."""

    def __init__(self) -> None:
        self._call: Callable[[], Floats] | None = None
        self._future: Future[Floats] = Future()
        self.ready = True  # False: the batch goes on

    def submit(self, call: Callable[[], Floats]) -> None:
        assert self._call is None, "one call at a time"
        self._call, self._future = call, Future()

    def wait(self, seconds: float) -> bool:
        if self.ready and self._call is not None:
            call, self._call = self._call, None
            try:
                self._future.set_result(call())
            except Exception as error:  # noqa: BLE001 - raised by `take`
                self._future.set_exception(error)
        return self.ready

    def wake(self) -> None:
        """Nobody waits."""

    def take(self) -> Floats:
        return self._future.result(0)

    def close(self) -> None:
        """There is none."""


class EmbedRig:
    """The engine, and the events of all steps so far."""

    def __init__(self, tokens: int = 64, slots: int = 8) -> None:
        self.flags = Flags()
        self.model = ToyModel()
        self.thread = NoThread()
        self.settings = EmbeddingSettings(dims=3, max_tokens=LIMIT)
        self.pace = Pace(tokens)
        self.now = 0.0  # stands still, so the pace learns nothing
        self.engine = EmbedEngine(
            LoadSpec("onnx", "toy", slots=slots, context_tokens=0, max_tokens=0, method="embed"),
            self.flags,
            self.model,
            TextEncoder(cast("Tokenizer", ToyTokenizer()), self.settings),
            pace=self.pace,
            thread=self.thread,
            clock=lambda: self.now,
        )
        self.events: list[Event] = []

    def open(self, job: int, *texts: str, **params: Any) -> None:
        """Prepared and started. Raw vectors, unless `normalize` is given."""
        self.prepare(job, *texts, **params)
        self.engine.start(job)

    def prepare(self, job: int, *texts: str, **params: Any) -> None:
        options = {"normalize": False, **params}
        given = {} if options.pop("fed", False) else {"texts": list(texts)}
        self.engine.prepare(Prepare(job, "embed", {**given, **options}, "test"))

    def feed(self, job: int, *texts: str) -> None:
        self.engine.feed(Feed(job, texts=list(texts)))

    def cancel(self, job: int) -> None:
        """As it comes: the flag first, then the interrupt, then the command."""
        self.flag(job)
        self.engine.cancel(job)

    def flag(self, job: int) -> None:
        self.flags.stamps[job] = self.now
        self.engine.interrupt()

    def step(self) -> list[Event]:
        events = self.engine.step()
        self.events += events
        return events

    def run(self) -> EmbedRig:
        """Until nothing is left to do."""
        while not self.engine.idle:
            self.step()
        return self

    def of(self, kind: type[Any], job: int = 1) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind) and event.job == job]

    def items(self, job: int = 1) -> list[Item]:
        return self.of(Item, job)

    def rows(self, job: int = 1) -> dict[int, list[float]]:
        """Vectors by index, of binary frames."""
        found: dict[int, list[float]] = {}
        for item in self.items(job):
            if item.kind == BinaryKind.ROWS:
                found |= dict(enumerate(_floats(item).tolist(), item.aux))
        return found

    def json(self, job: int = 1) -> list[dict[str, Any]]:
        return [msgspec.json.decode(item.data) for item in self.items(job) if item.kind == 0]

    def indexes(self, job: int = 1) -> list[int]:
        """Of all answers, in the order in which they were sent."""
        return [i for item in self.items(job) for i in range(item.aux, item.aux + item.units)]

    def usage(self, job: int = 1) -> dict[str, int]:
        (finished,) = self.of(Finished, job)
        usage: dict[str, int] = finished.usage
        return usage

    def released(self, job: int = 1) -> bool:
        return len(self.of(Released, job)) == 1

    def consumed(self, job: int = 1) -> int:
        return sum(event.bytes for event in self.of(Consumed, job))


def _floats(item: Item) -> NDArray[np.float32]:
    return np.frombuffer(item.data, "<f4").reshape(item.units, -1)
