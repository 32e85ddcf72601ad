"""A decode beside the thread that listens: when it is told, what it raises, and how it ends."""

from __future__ import annotations

import select
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from plait.engines.whisper.decoding import Decoding
from plait.engines.whisper.words import Decoded, Window, Word

WAIT_SECONDS = 20.0


class Decoder:
    """Holds each decode until it may go on, and then says or raises what it is told."""

    def __init__(self) -> None:
        self.may_go_on = threading.Semaphore(0)
        self.outcome: Decoded | BaseException = Decoded([Word("yes", 0.0, 1.0)])

    def __call__(self, window: Window) -> Decoded:
        assert self.may_go_on.acquire(timeout=WAIT_SECONDS)
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


def window_of(seconds: float) -> Window:
    samples = np.zeros(int(16_000 * seconds), np.float32)
    return Window(samples, 0.0, closing=True, language=None, prompt="")


def rings(decoding: Decoding, seconds: float = WAIT_SECONDS) -> bool:
    assert decoding.bell is not None
    return bool(select.select([decoding.bell], [], [], seconds)[0])


def decode_threads() -> int:
    return sum(thread.name.startswith("decode") for thread in threading.enumerate())


@pytest.fixture
def decoder() -> Decoder:
    return Decoder()


@pytest.fixture
def decoding(decoder: Decoder) -> Iterator[Decoding]:
    made = Decoding(decoder)
    yield made
    decoder.may_go_on.release()
    made.close()


def test_without_a_decode_there_is_neither_thread_nor_bell(decoding: Decoding) -> None:
    assert (decoding.bell, decoding.running, decoding.take()) == (None, False, None)
    assert decode_threads() == 0


def test_the_bell_rings_once_for_each_decode_that_is_over(
    decoding: Decoding, decoder: Decoder
) -> None:
    for seconds in (1.0, 2.0):
        window = window_of(seconds)
        decoding.begin(window)
        assert (decoding.take(), rings(decoding, 0)) == (None, False)

        decoder.may_go_on.release()

        assert rings(decoding)
        assert decoding.take() == (window, decoder.outcome)
        assert (decoding.running, decoding.take(), rings(decoding, 0)) == (False, None, False)


@pytest.mark.parametrize("raised", [MemoryError(), ValueError("odd"), SystemExit(3)])
def test_what_a_decode_raises_is_raised_by_taking_and_another_may_begin(
    decoding: Decoding, decoder: Decoder, raised: BaseException
) -> None:
    decoder.outcome = raised
    decoding.begin(window_of(1.0))
    decoder.may_go_on.release()
    assert rings(decoding)

    with pytest.raises(type(raised)):
        decoding.take()

    assert not decoding.running
    decoding.begin(window_of(1.0))


def test_closing_waits_for_the_decode_that_runs(decoding: Decoding, decoder: Decoder) -> None:
    decoding.begin(window_of(1.0))
    assert decode_threads() == 1

    decoder.may_go_on.release()
    decoding.close()

    assert decode_threads() == 0
