"""One embedding job: from its texts to its answers, in order, a bounded part of them at a time.

    texts ──encode──► waiting (in buckets by length) ──batch──► answers ──take_events──► items

At most `ahead` texts are between the first and the last stage, so however many texts a job has, it
holds few tokens and few rows; the texts themselves are bounded by the message they came in, or by
the upload window. Does NOT know other jobs, the model, or how long things take.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from plait.engines.base import Consumed, Event, Prepare, Starved, Usage
from plait.engines.embed.encoding import PIECE_CHARACTERS, Encoded, LongText, TextEncoder
from plait.engines.embed.output import FLOAT_BYTES, Answer, items
from plait.engines.embed.texts import credit_of, no_vector, too_long
from plait.errors import InvalidRequest, PlaitError
from plait.models.embedding.settings import EmbeddingSettings
from plait.wire.params import EmbedParams

# Texts differ by less than this in one bucket; a batch of one bucket wastes little.
BUCKET_TOKENS = 8
# Rows of the texts that are under way. So few that a burst of them, when a late one comes at last,
# is well below what a stream may have unsent.
AHEAD_BYTES = 128 * 1024
AHEAD_TEXTS = (16, 128)
TOKEN_BYTES = 8


def texts_ahead(settings: EmbeddingSettings) -> int:
    """How many texts of a job may be under way at a time."""
    least, most = AHEAD_TEXTS
    return min(max(AHEAD_BYTES // (settings.dims * FLOAT_BYTES), least), most)


def job_bytes(settings: EmbeddingSettings) -> int:
    """Most that a job holds: rows and tokens."""
    each = settings.dims * FLOAT_BYTES + TOKEN_BYTES * settings.max_tokens
    return texts_ahead(settings) * each


@dataclass(slots=True, eq=False)
class Text:
    """An encoded text. `alone`: its batch failed, so it is tried by itself."""

    index: int
    ids: list[int]
    truncated: bool
    credit_bytes: int
    alone: bool = False

    @property
    def bucket(self) -> int:
        return -(-len(self.ids) // BUCKET_TOKENS) * BUCKET_TOKENS


@dataclass(slots=True, eq=False)
class EmbedJob:
    """`fed`: its texts come by `feed`. `ahead`: how many texts may be under way at a time."""

    id: int
    params: EmbedParams
    encoder: TextEncoder
    ahead: int
    fed: bool = False
    started: bool = False
    paused: bool = False
    leaving: bool = False  # it is over, but for the batch under way
    input_ended: bool = False
    waiting: dict[int, Text] = field(default_factory=dict)  # by index
    buckets: dict[int, deque[Text]] = field(default_factory=dict)
    usage: Usage = field(default_factory=lambda: {"texts": 0, "tokens": 0})
    _texts: deque[str] = field(default_factory=deque)
    _long: LongText | None = None  # the text at `_encoded`, partly read
    _encoded: int = 0  # index of the next text to encode
    _answers: dict[int, Answer] = field(default_factory=dict)  # not sent: an earlier one is missing
    _starved: bool = False

    # --- its texts -----------------------------------------------------------------------------

    def feed(self, texts: Iterable[str]) -> None:
        self._texts.extend(texts)
        self._starved = False

    def finish_input(self) -> None:
        self.input_ended = True
        self._starved = False

    @property
    def can_encode(self) -> bool:
        return self.active and bool(self._texts) and self._encoded - self.answered < self.ahead

    def encode(self) -> None:
        """Some of the texts: what takes a few milliseconds."""
        if len(self._texts[0]) > PIECE_CHARACTERS:
            self._encode_piece()
            return
        room = self.ahead - (self._encoded - self.answered)
        batch: list[str] = []
        characters = 0
        while self._texts and len(batch) < room:
            characters += len(self._texts[0])
            if characters > PIECE_CHARACTERS:
                break
            batch.append(self._texts.popleft())
        try:
            encoded = self.encoder.encode_short(batch)
        except Exception:  # noqa: BLE001 - the library raises anything; one text is at fault
            for text in batch:
                self._encode_alone(text)
            return
        for text, found in zip(batch, encoded, strict=True):
            self._add(text, found)

    def _encode_alone(self, text: str) -> None:
        try:
            (found,) = self.encoder.encode_short([text])
        except Exception:  # noqa: BLE001 - without its message, which may quote the text
            self._fail(text, no_vector(self._encoded, "cannot read it"))
        else:
            self._add(text, found)

    def _encode_piece(self) -> None:
        if self._long is None:
            self._long = self.encoder.begin(self._texts[0])
        try:
            encoded = self._long.advance(to_the_end=not self.params.truncate)
        except Exception:  # noqa: BLE001 - as above
            self._long = None
            self._fail(self._texts.popleft(), no_vector(self._encoded, "cannot read it"))
            return
        if encoded is not None:
            self._long = None
            self._add(self._texts.popleft(), encoded)

    def _add(self, text: str, encoded: Encoded) -> None:
        index = self._encoded
        if encoded.truncated and not self.params.truncate:
            limit = self.encoder.settings.max_tokens
            self._fail(text, too_long(index, encoded.tokens, limit))
            return
        self._encoded += 1
        self.put(Text(index, encoded.ids, encoded.truncated, credit_of(text)))

    def _fail(self, text: str, error: PlaitError) -> None:
        index, self._encoded = self._encoded, self._encoded + 1
        self._answers[index] = Answer(index, error, 0, False, credit_of(text))

    # --- batches -------------------------------------------------------------------------------

    @property
    def active(self) -> bool:
        return self.started and not self.paused and not self.leaving

    @property
    def answered(self) -> int:
        """How many of its texts were answered, which are the first ones."""
        return self.usage["texts"]

    @property
    def first(self) -> Text | None:
        """The text that everything after it waits for, if it is encoded."""
        return self.waiting.get(self.answered) or next(iter(self.waiting.values()), None)

    def put(self, text: Text) -> None:
        self.waiting[text.index] = text
        if not text.alone:
            self.buckets.setdefault(text.bucket, deque()).append(text)

    def put_back(self, texts: list[Text]) -> None:
        """Those of a batch that was cut short: they go first."""
        for text in reversed(texts):
            self.waiting[text.index] = text
            if not text.alone:
                self.buckets.setdefault(text.bucket, deque()).appendleft(text)

    def take(self, text: Text) -> Text:
        """It goes into a batch."""
        del self.waiting[text.index]
        if not text.alone:
            bucket = self.buckets[text.bucket]
            bucket.remove(text)
            if not bucket:
                del self.buckets[text.bucket]
        return text

    def answer(self, text: Text, outcome: object) -> None:
        """`outcome`: its vector, or the error in its place."""
        failed = isinstance(outcome, PlaitError)
        self._answers[text.index] = Answer(
            text.index,
            outcome,  # type: ignore[arg-type]
            0 if failed else len(text.ids),
            truncated=text.truncated and not failed,
            credit_bytes=text.credit_bytes,
        )

    # --- answers -------------------------------------------------------------------------------

    @property
    def can_answer(self) -> bool:
        return self.active and self.answered in self._answers

    @property
    def ended(self) -> bool:
        return self.input_ended and self._is_done

    @property
    def starves(self) -> bool:
        """It did all it can with the texts it has, and has not said so."""
        return self.active and self._is_done and not self.input_ended and not self._starved

    @property
    def _is_done(self) -> bool:
        return not self._texts and self.answered == self._encoded

    @property
    def held_bytes(self) -> int:
        """Rows and tokens, roughly."""
        rows = sum(getattr(answer.outcome, "nbytes", 0) for answer in self._answers.values())
        return rows + sum(TOKEN_BYTES * len(text.ids) for text in self.waiting.values())

    def starve(self) -> Starved:
        self._starved = True
        return Starved(self.id)

    def take_events(self) -> list[Event]:
        """All answers whose turn it is."""
        answers: list[Answer] = []
        while (answer := self._answers.pop(self.answered, None)) is not None:
            answers.append(answer)
            self._count(answer)
        events: list[Event] = []
        if self.fed and answers:
            events.append(Consumed(self.id, sum(answer.credit_bytes for answer in answers)))
        events += items(self.id, answers, as_json=self.params.encoding == "json")
        return events

    def _count(self, answer: Answer) -> None:
        self.usage["texts"] += 1
        self.usage["tokens"] += answer.tokens
        for name, counts in (("truncated", answer.truncated), ("failed", answer.failed)):
            if counts:
                self.usage[name] = self.usage.get(name, 0) + 1


def read_params(command: Prepare) -> EmbedParams:
    """Raises InvalidRequest; the gateway has checked all of it, so this is for other drivers."""
    try:
        return msgspec.convert(command.params, EmbedParams)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"{error}. Correct it and send it again.") from None
