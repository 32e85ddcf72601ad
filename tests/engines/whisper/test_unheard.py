"""What of a stream's unheard audio is a flood, and what is live beside a decode."""

from __future__ import annotations

from plait.engines.whisper.messages import Audio
from plait.engines.whisper.unheard import FLOOD_SECONDS, SLICE_BYTES, Unheard
from plait.wire.params import TranscribeParams

RATE_BYTES = 32_000
FLOOD_BYTES = int(FLOOD_SECONDS * RATE_BYTES)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def unheard(clock: Clock) -> Unheard:
    return Unheard(TranscribeParams(sample_rate=16_000), clock)


def put(audio: Unheard, size_bytes: int) -> None:
    audio.put(Audio(memoryview(bytes(size_bytes)), 0.0))


def take_all_live(audio: Unheard) -> int:
    taken = 0
    while audio and audio.live:
        taken += len(audio.take()[0])
    return taken


def test_it_comes_in_slices() -> None:
    audio = unheard(Clock())
    put(audio, SLICE_BYTES + 1)

    assert [len(audio.take()[0]), len(audio.take()[0]), bool(audio)] == [SLICE_BYTES, 1, False]


def test_more_than_waits_in_live_audio_is_a_flood() -> None:
    audio = unheard(Clock())
    put(audio, FLOOD_BYTES)
    before = audio.floods, audio.live

    put(audio, 1)

    assert before == (False, True)
    assert (audio.floods, audio.live) == (True, False)


def test_a_flood_in_small_pieces_is_none_that_is_live_beside_a_decode() -> None:
    audio = unheard(Clock())
    audio.begin_decode()

    taken = 0
    for _ in range(100):
        put(audio, RATE_BYTES // 10)
        taken += take_all_live(audio)

    assert FLOOD_BYTES <= taken <= FLOOD_BYTES + RATE_BYTES // 10


def test_live_audio_is_live_however_long_the_decode() -> None:
    clock = Clock()
    audio = unheard(clock)
    audio.begin_decode()

    for _ in range(600):
        clock.now += 0.1
        put(audio, RATE_BYTES // 10)
        assert take_all_live(audio) == RATE_BYTES // 10
