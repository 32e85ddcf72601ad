"""§3 transcribe: audio in frames cut anywhere, credit given back, silence, and what is refused."""

from __future__ import annotations

import contextlib
import struct

from plait.conformance.cases import Skipped, case, expect
from plait.conformance.heard import Heard, Item
from plait.conformance.lab import SAMPLE_RATE, Lab
from plait.conformance.peer import Peer

NEEDS = ("transcribe",)
PIECE_BYTES = 3201  # odd: a sample lies in two frames


def _send(lab: Lab, peer: Peer, stream: Heard, audio: bytes, piece: int = PIECE_BYTES) -> None:
    for begin in range(0, len(audio), piece):
        peer.say(lab.audio(stream, audio[begin : begin + piece]))


@case("§3 transcribe", "silence and nothing at all end as done, without items", needs=NEEDS)
async def silence(lab: Lab) -> None:
    async with lab.connect() as peer:
        for audio in (b"", bytes(2 * SAMPLE_RATE)):
            stream = peer.open("transcribe", {"sample_rate": SAMPLE_RATE})
            await peer.answered(stream)
            _send(lab, peer, stream, audio)
            peer.end(stream)
            await peer.ended(stream)
            expect(stream.ended == "done", "done", f"{stream}: {stream.error}")
            expect(not stream.items, "no items of silence", [i.data for i in stream.items])
            audio_ms = (stream.terminal or {})["usage"].get("audio_ms", 0)
            wanted = len(audio) * 500 // SAMPLE_RATE
            expect(abs(audio_ms - wanted) <= 50, f"usage.audio_ms {wanted}", audio_ms, "§2")


@case("§5", "what was listened to is confirmed: input_ack gives the credit back", needs=NEEDS)
async def credit(lab: Lab) -> None:
    async with lab.connect() as peer:
        stream = peer.open("transcribe", {"sample_rate": SAMPLE_RATE})
        await peer.answered(stream)
        window = stream.accepted[0].get("window_bytes", 0)
        expect(window >= 2 * SAMPLE_RATE, "window_bytes of a second at least", window)
        audio = bytes(min(window, 4 * SAMPLE_RATE))
        _send(lab, peer, stream, audio)
        peer.end(stream)
        await peer.ended(stream)
        expect(stream.input_acks, "an `input_ack`", stream)
        confirmed = stream.input_acks[-1]["bytes"]
        expect(confirmed <= len(audio), f"bytes at most {len(audio)}", confirmed)
        lab.note(f"window {window} bytes, confirmed {confirmed} of {len(audio)}")


@case("§5", "more audio than the credit: error input_overflow", needs=NEEDS)
async def overflow(lab: Lab) -> None:
    async with lab.connect() as peer:
        stream = peer.open("transcribe", {"sample_rate": SAMPLE_RATE})
        await peer.answered(stream)
        left = 2 * stream.accepted[0].get("window_bytes", 0) + 2
        if left > 64 * 1024 * 1024:
            raise Skipped(f"a window of {left // 2} bytes")
        piece = min(int(lab.limits["max_binary_bytes"]) - 16, 64_000)
        peer.say(*(lab.audio(stream, bytes(min(piece, left - at))) for at in range(0, left, piece)))
        await lab.fails(peer, stream, "input_overflow")


@case("§3 transcribe", "audio that begins with a file's header: error invalid_audio", needs=NEEDS)
async def file_header(lab: Lab) -> None:
    async with lab.connect() as peer:
        stream = peer.open("transcribe", {"sample_rate": SAMPLE_RATE})
        await peer.answered(stream)
        peer.say(lab.audio(stream, b"RIFF\x24\x80\0\0WAVEfmt " + bytes(8000)))
        peer.end(stream)
        await lab.fails(peer, stream, "invalid_audio")


@case("§3 transcribe", "half a sample at the very end is dropped", needs=NEEDS)
async def half_a_sample(lab: Lab) -> None:
    async with lab.connect() as peer:
        stream = peer.open("transcribe", {"sample_rate": SAMPLE_RATE})
        await peer.answered(stream)
        peer.say(lab.audio(stream, bytes(3201)))
        peer.end(stream)
        await peer.ended(stream)
        expect(stream.ended == "done", "done", f"{stream}: {stream.error}")


@case("§3 transcribe", "params out of bounds: rejected, naming the field", needs=NEEDS)
async def bad_params(lab: Lab) -> None:
    bad = (
        ("sample_rate", 7999),
        ("sample_rate", 48001),
        ("channels", 3),
        ("encoding", "mp3"),
        ("silence_ms", 199),
        ("silence_ms", 3001),
        ("max_segment_seconds", 3.9),
        ("max_segment_seconds", 28.5),
        ("speech_threshold", 0.05),
        ("interim", "no"),
        ("prompt", "x" * 1025),
        ("language", "klingon"),
    )
    async with lab.connect() as peer:
        for name, value in bad:
            params = {"sample_rate": SAMPLE_RATE, name: value}
            await lab.refuses(peer, "transcribe", params, "invalid_request", name)
        await lab.refuses(peer, "transcribe", {}, "invalid_request", "sample_rate")


@case("§3 transcribe", "samples that are not finite, and beyond ±1, are taken", needs=NEEDS)
async def odd_samples(lab: Lab) -> None:
    async with lab.connect() as peer:
        params = {"sample_rate": SAMPLE_RATE, "encoding": "pcm_f32le"}
        stream = peer.open("transcribe", params)
        await peer.answered(stream)
        odd = struct.pack("<4f", float("nan"), float("inf"), 5.0, -5.0)
        peer.say(lab.audio(stream, bytes(4000) + odd + bytes(4000)))
        peer.end(stream)
        await peer.ended(stream)
        expect(stream.ended == "done", "done", f"{stream}: {stream.error}")


@case(
    "S3", "speech becomes final segments, in order, then done", needs=["transcribe", "synthesize"]
)
async def speech(lab: Lab) -> None:
    async with lab.connect() as peer:
        spoken = peer.open(
            "synthesize", {"text": "The keeper of the lighthouse waved to the ship."}
        )
        await peer.ended(spoken)
        rate = (spoken.started or {})["format"]["sample_rate"]
        params = {"sample_rate": rate, "events": True, "words": True}
        stream = peer.open("transcribe", params)
        await peer.answered(stream)
        window = stream.accepted[0]["window_bytes"]
        audio = bytes(rate) + spoken.audio + bytes(2 * rate)
        _send(lab, peer, stream, audio[:window], 16_000)
        peer.end(stream)
        await peer.ended(stream)
        expect(stream.ended == "done", "done", f"{stream}: {stream.error}")
        _check_events(stream.items)
        rules = peer.checker.streams[stream.id].contents
        expect(rules.revision == 0, "every segment final before done", rules.revision)
        lab.note(repr(rules.text.strip())[:80])


def _check_events(items: list[Item]) -> None:
    """Started and stopped in turn, times that never decrease."""
    events = [item.data for item in items if "event" in item.data]
    for number, event in enumerate(events):
        wanted = ("speech_started", "speech_stopped")[number % 2]
        expect(event["event"] == wanted, wanted, event)
    times = [event["at"] for event in events]
    expect(times == sorted(times), "times that never decrease", times)


@case("§2 G4", "a cancel while audio is still sent: the frames after it are ignored", needs=NEEDS)
async def cancel_while_sending(lab: Lab) -> None:
    async with lab.connect() as peer:
        stream = peer.open("transcribe", {"sample_rate": SAMPLE_RATE})
        await peer.started(stream)
        lab.must_run(stream)
        _send(lab, peer, stream, lab.hum(1.0))
        peer.cancel(stream)
        _send(lab, peer, stream, lab.hum(1.0))
        peer.end(stream)
        await lab.cancelled(peer, stream)
        await peer.barrier()
        with contextlib.suppress(Skipped):
            await lab.works(peer)
