"""Which texts share a batch, and how large it may be."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given, settings, strategies as st

from plait.engines.embed.encoding import TextEncoder
from plait.engines.embed.job import EmbedJob, Text
from plait.engines.embed.packing import (
    MAX_TEXTS,
    MAX_TOKENS,
    MIN_TOKENS,
    TARGET_SECONDS,
    Batch,
    Pace,
    Packer,
)
from plait.wire.params import EmbedParams

NO_ENCODER = cast("TextEncoder", None)


def job(number: int, *lengths: int) -> EmbedJob:
    """Started, with texts of so many tokens, encoded."""
    entry = EmbedJob(number, EmbedParams(), NO_ENCODER, ahead=1000, started=True)
    for index, length in enumerate(lengths):
        entry.put(Text(index, [0] * length, truncated=False, credit_bytes=0))
    return entry


def pack_all(packer: Packer, tokens: int) -> list[Batch]:
    batches = []
    while (batch := packer.pack(tokens)) is not None:
        batches.append(batch)
    return batches


def packer_of(*jobs: EmbedJob) -> Packer:
    packer = Packer()
    for entry in jobs:
        packer.join(entry)
    return packer


def indexes(batch: Batch) -> list[tuple[int, int]]:
    return [(entry.id, text.index) for entry, text in batch.entries]


@settings(deadline=None)
@given(
    st.lists(st.lists(st.integers(1, 300), max_size=40), min_size=1, max_size=5),
    st.integers(16, 600),
)
def test_every_text_is_packed_once_within_the_bound(lengths: list[list[int]], tokens: int) -> None:
    packer = packer_of(*(job(number, *each) for number, each in enumerate(lengths)))

    batches = pack_all(packer, tokens)

    packed = [place for batch in batches for place in indexes(batch)]
    assert sorted(packed) == [(n, i) for n, each in enumerate(lengths) for i in range(len(each))]
    assert all(len(b.entries) == 1 or b.tokens <= tokens for b in batches)
    assert all(len(batch.entries) <= MAX_TEXTS for batch in batches)


@settings(deadline=None)
@given(st.lists(st.integers(1, 300), min_size=1, max_size=200))
def test_little_of_a_batch_is_padding(lengths: list[int]) -> None:
    for batch in pack_all(packer_of(job(1, *lengths)), 256):
        padding = batch.tokens - sum(len(ids) for ids in batch.texts)
        # A bucket's texts differ too.
        assert padding <= max(32, batch.tokens / 5) + 8 * len(batch.entries)


def test_a_batch_begins_with_the_first_text_of_each_job_in_turn() -> None:
    packer = packer_of(job(1, 100, 10, 100), job(2, 50, 50))

    batches = pack_all(packer, 64)

    assert [indexes(batch)[0] for batch in batches[:2]] == [(1, 0), (2, 0)]


def test_texts_of_about_one_length_come_from_all_jobs_in_turn() -> None:
    packer = packer_of(job(1, 8, 8, 8), job(2, 8), job(3, 8, 8))

    batch = packer.pack(8 * 5)

    assert batch is not None
    assert indexes(batch) == [(1, 0), (2, 0), (3, 0), (1, 1), (3, 1)]


def test_paused_jobs_and_those_that_leave_are_passed_over() -> None:
    paused, leaving = job(1, 8), job(2, 8)
    paused.paused = leaving.leaving = True

    assert packer_of(paused, leaving).pack(100) is None


def test_what_is_put_back_goes_first_again() -> None:
    entry = job(1, *[8] * 10)
    packer = packer_of(entry)
    batch = packer.pack(8 * 4)
    assert batch is not None

    entry.put_back(batch.texts_of(entry))

    again = packer.pack(8 * 4)
    assert again is not None
    assert indexes(again) == indexes(batch)


def test_a_text_whose_batch_broke_is_alone() -> None:
    entry = job(1, 8, 8)
    entry.take(entry.waiting[0])
    entry.put_back([Text(0, [0] * 8, truncated=False, credit_bytes=0, alone=True)])

    batches = pack_all(packer_of(entry), 100)

    assert [indexes(batch) for batch in batches] == [[(1, 0)], [(1, 1)]]


@pytest.mark.parametrize(("seconds", "more"), [(TARGET_SECONDS / 4, True), (1.0, False)])
def test_the_pace_follows_the_measured_time(seconds: float, more: bool) -> None:
    pace = Pace(1000)

    pace.took(1000, seconds)

    assert (pace.tokens > 1000) == more
    assert 500 <= pace.tokens <= 1250


def test_the_pace_stays_within_its_bounds() -> None:
    slow, fast = Pace(200), Pace(10_000)

    for _ in range(20):
        slow.took(slow.tokens, 10.0)
        fast.took(fast.tokens, 0.001)

    assert (slow.tokens, fast.tokens) == (MIN_TOKENS, MAX_TOKENS)


def test_a_small_batch_says_nothing_of_the_pace() -> None:
    pace = Pace(1000)

    pace.took(10, 1.0)

    assert pace.tokens == 1000
