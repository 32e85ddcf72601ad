"""Transcription without a model: the audio itself says which words are in it (see `hearing`).

Every word makes a revision of its segment, in which it is only half heard ("thr"); with the next
one it is whole, and the final has all. `silence_ms` of quiet ends a segment. `prompt` is the
script; "tokens" are words heard, and `step_ms` is how long 0.2 s of audio, or a word, takes.
Input counts as consumed when it was listened to. Does NOT know steps nor slots (see `scripted`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from plait.engines.base import Consumed, Event, Feed, Item, Usage
from plait.engines.scripted.hearing import Ears, SoundFormat, SpokenWord
from plait.engines.scripted.jobs import ScriptedJob
from plait.errors import InvalidAudio
from plait.wire.params import TranscribeParams

LANGUAGES = ("en", "de")  # what it says it knows; it always hears the first one
STRIDE_SECONDS = 0.2  # of audio per step, at most


@dataclass(slots=True)
class Utterance:
    """The open segment. `revision` is of what was last shown, `covered` its last sample."""

    index: int
    revision: int = 0
    words: list[SpokenWord] = field(default_factory=list)


@dataclass(slots=True)
class ListeningJob(ScriptedJob):
    params: TranscribeParams = field(default_factory=lambda: TranscribeParams(16_000))
    clock: Callable[[], float] = float
    input_ended: bool = False
    audio: bytearray = field(default_factory=bytearray)  # not yet listened to
    received_bytes: int = 0
    arrivals: deque[tuple[int, float]] = field(default_factory=deque)  # bytes so far, when
    segment: Utterance | None = None
    segments: int = 0
    speaking: bool = False  # between `speech_started` and `speech_stopped`
    sound_end: int = 0  # samples
    told_ms: int = 0  # of the audio that items account for
    ears: Ears = field(init=False)
    format: SoundFormat = field(init=False)

    def __post_init__(self) -> None:
        params = self.params
        self.format = SoundFormat(params.sample_rate, params.encoding, params.channels)
        self.ears = Ears(params.sample_rate)

    @property
    def frame_bytes(self) -> int:
        return self.format.frame_samples * self.format.sample_bytes

    @property
    def ready(self) -> bool:
        return self.input_ended or len(self.audio) >= self.frame_bytes

    @property
    def usage(self) -> Usage:
        return {"audio_ms": self.heard_ms}

    @property
    def heard_ms(self) -> int:
        return self.ears.heard_samples * 1000 // self.format.sample_rate

    def feed(self, feed: Feed) -> None:
        """Raises InvalidAudio for a file's header."""
        self.audio += feed.audio or b""
        if self.received_bytes < 4 and self.audio.startswith(b"RIFF"):
            raise InvalidAudio("This is a WAV file, header and all: send its samples alone.")
        self.received_bytes += len(feed.audio or b"")
        self.arrivals.append((self.received_bytes, self.clock()))
        self.starved = False

    def finish_input(self) -> None:
        self.input_ended = True
        self.starved = False

    def advance(self) -> list[Event]:
        """0.2 s of audio, or up to the next word, event or final."""
        before = len(self.audio)
        until = self.ears.heard_samples + STRIDE_SECONDS * self.format.sample_rate
        items: list[Item] = []
        while not items and len(self.audio) >= self.frame_bytes and self._heard() < until:
            items += self._listen(self._take(self.frame_bytes))
        if not items and self.input_ended and len(self.audio) < self.frame_bytes:
            items += self._finish()
        self._forget_arrivals()
        consumed = before - len(self.audio)
        return [Consumed(self.job, consumed), *items] if consumed else [*items]

    def _heard(self) -> int:
        return self.ears.heard_samples

    def _take(self, size_bytes: int) -> bytes:
        data = bytes(self.audio[:size_bytes])
        del self.audio[:size_bytes]
        return data

    def _listen(self, data: bytes) -> list[Item]:
        word = self.ears.hear(self.format.decode(data))
        items: list[Item] = []
        if self.ears.sure or word is not None:
            sounding = word or self.ears.word
            assert sounding is not None
            self.sound_end = sounding.end
            if not self.speaking:
                self.speaking = True
                items += self._event("speech_started", sounding.start)
        if word is not None:
            items += self._add(word)
        quiet = self._heard() - self.sound_end
        if self.speaking and quiet * 1000 >= self.params.silence_ms * self.format.sample_rate:
            items += self._stop()
        return items

    def _finish(self) -> list[Item]:
        """The last bytes, whole samples of them, and everything becomes final."""
        rest = self._take(len(self.audio))
        items = self._listen(rest[: len(rest) - len(rest) % self.format.sample_bytes])
        word = self.ears.finish()
        if word is not None:
            self.sound_end = word.end
            items += self._add(word)
        if self.speaking:
            items += self._stop()
        self.finish_reason = "stop"
        return items

    def _add(self, word: SpokenWord) -> list[Item]:
        if self.segment is None:
            self.segment = Utterance(self.segments)
            self.segments += 1
        self.segment.words.append(word)
        self.produced += 1
        length = (word.end - self.segment.words[0].start) / self.format.sample_rate
        if length >= self.params.max_segment_seconds:
            return self._close()
        return [self._show(self.segment, final=False)] if self.params.interim else []

    def _stop(self) -> list[Item]:
        self.speaking = False
        return [*self._event("speech_stopped", self.sound_end), *self._close()]

    def _close(self) -> list[Item]:
        segment, self.segment = self.segment, None
        return [] if segment is None else [self._show(segment, final=True)]

    def _show(self, segment: Utterance, *, final: bool) -> Item:
        segment.revision += 1
        *settled, newest = [word.text for word in segment.words]
        texts = [*settled, newest if final else newest[:-2]]
        shown: dict[str, Any] = {
            "index": segment.index,
            "revision": segment.revision,
            "text": " ".join(texts),
            "start": self._seconds(segment.words[0].start),
            "end": self._seconds(segment.words[-1].end),
            "is_final": final,
            "lag_ms": self._lag_ms(segment.words[-1].end),
        }
        if not final:
            shown["stable"] = " ".join(settled)
        if self.params.language is None:
            shown["language"] = LANGUAGES[0]
        if self.params.words:
            shown["words"] = [
                {"text": text, "start": self._seconds(word.start), "end": self._seconds(word.end)}
                for text, word in zip(texts, segment.words, strict=True)
            ]
        return self._item({"segment": shown}, revises=segment.index + 1)

    def _event(self, name: str, at: int) -> list[Item]:
        if not self.params.events:
            return []
        return [self._item({"event": name, "at": self._seconds(at)})]

    def _item(self, data: Mapping[str, Any], revises: int = 0) -> Item:
        units = self.heard_ms - self.told_ms
        self.told_ms = self.heard_ms
        return Item(self.job, msgspec.json.encode(data), units, revises=revises)

    def _seconds(self, samples: int) -> float:
        return round(samples / self.format.sample_rate, 3)

    def _lag_ms(self, end: int) -> float:
        covered = end * self.format.sample_bytes
        came = next((at for received, at in self.arrivals if received >= covered), self.clock())
        return round((self.clock() - came) * 1000, 1)

    def _forget_arrivals(self) -> None:
        """Of audio that no segment to come covers: in silence for ever, nothing grows."""
        sounding = self.speaking or self.ears.word is not None
        covered = self.sound_end if sounding else self._heard()
        while self.arrivals and self.arrivals[0][0] < covered * self.format.sample_bytes:
            self.arrivals.popleft()


def listening_job(
    job: int, params: Mapping[str, Any], parse: Callable[[str], Any], clock: Callable[[], float]
) -> ListeningJob:
    """`params` as in `Prepare`. Raises InvalidRequest for a bad script."""
    declared = msgspec.convert(params, TranscribeParams)
    return ListeningJob(job, parse(declared.prompt or ""), params=declared, clock=clock)
