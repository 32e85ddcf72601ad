"""What a transcription's segments and the moments they came tell: latencies, revisions, rewriting.

Moments are seconds since the first sample was heard, as segments' times are seconds of the audio,
so where audio is played as it was spoken, their difference is a latency. Pure. Does NOT know
sockets, clocks or verdicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from plait.bench.accuracy import common_words, words_of
from plait.bench.clips import Utterance
from plait.client import Segment


@dataclass(frozen=True, slots=True)
class Shown:
    """A segment as it came, `at` seconds after the clip's first sample."""

    at: float
    segment: Segment


@dataclass(frozen=True, slots=True)
class Onset:
    """That somebody speaks since `onset`, as it was told at `at`; both as in `Shown`."""

    at: float
    onset: float


@dataclass(frozen=True, slots=True)
class Rewriting:
    """Words that were on display when the next revision came, and those it changed or took away.

    `stable` words are those of the prefix that a segment said would stay.
    """

    words: int = 0
    rewritten: int = 0
    stable: int = 0
    stable_rewritten: int = 0

    def __add__(self, other: Rewriting) -> Rewriting:
        return Rewriting(
            self.words + other.words,
            self.rewritten + other.rewritten,
            self.stable + other.stable,
            self.stable_rewritten + other.stable_rewritten,
        )


def told_seconds(onsets: Sequence[Onset]) -> list[float]:
    """Per stretch of speech: from its first sound, as the server knows it, to its being told."""
    return [one.at - one.onset for one in onsets]


def final_text(shown: Sequence[Shown]) -> str:
    return " ".join(s.segment.text for s in shown if s.segment.is_final)


def first_text_seconds(shown: Sequence[Shown], utterances: Sequence[Utterance]) -> list[float]:
    """Per utterance: from its first sound to the first text that reaches into it."""
    firsts = []
    for said in utterances:
        moments = (s.at for s in shown if s.at >= said.start and _reaches(s.segment, said))
        if (first := next(moments, None)) is not None:
            firsts.append(first - said.start)
    return firsts


def final_after_speech_seconds(
    shown: Sequence[Shown], utterances: Sequence[Utterance]
) -> list[float]:
    """Per utterance: from its last sound to the final with its last words."""
    lasts = []
    for said in utterances:
        finals = [s.at for s in shown if s.segment.is_final and _reaches(s.segment, said)]
        if finals:
            lasts.append(finals[-1] - said.end)
    return lasts


def final_after_segment_seconds(shown: Sequence[Shown]) -> list[float]:
    """Per segment: from where it says that it ends to its final."""
    finals = [s for s in shown if s.segment.is_final and s.segment.text]
    return [s.at - s.segment.end for s in finals]


def word_seconds(shown: Sequence[Shown]) -> list[float]:
    """Per word of a final: from its end to when it was first shown at its place.

    Where a word ends is not known exactly: a segment's words count as equally long.
    """
    latencies = []
    for revisions in _by_index(shown):
        last = revisions[-1].segment
        final = words_of(last.text)
        texts = [(s.at, words_of(s.segment.text)) for s in revisions]
        for place, word in enumerate(final):
            end = last.start + (last.end - last.start) * (place + 1) / len(final)
            seen = next(at for at, text in texts if text[place : place + 1] == [word])
            latencies.append(seen - end)
    return latencies


def revision_counts(shown: Sequence[Shown]) -> list[int]:
    """Per segment, its final included."""
    return [len(revisions) for revisions in _by_index(shown)]


def rewriting(shown: Sequence[Shown]) -> Rewriting:
    total = Rewriting()
    for revisions in _by_index(shown):
        for before, after in pairwise(s.segment for s in revisions):
            words, stable = words_of(before.text), words_of(before.stable)
            kept = common_words(words, words_of(after.text))
            gone = max(0, len(stable) - kept)
            total += Rewriting(len(words), len(words) - kept, len(stable), gone)
    return total


def _reaches(segment: Segment, said: Utterance) -> bool:
    return bool(segment.text) and segment.end > said.start and segment.start < said.end


def _by_index(shown: Sequence[Shown]) -> list[list[Shown]]:
    segments: dict[int, list[Shown]] = {}
    for one in shown:
        segments.setdefault(one.segment.index, []).append(one)
    return list(segments.values())
