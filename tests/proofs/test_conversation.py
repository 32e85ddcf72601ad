"""A spoken conversation with real models, and what it takes to interrupt it.

One server listens, writes and speaks at once, on one connection. The user talks into the answer:
that is told at once, whatever the recogniser decodes, and both streams of the answer stop.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from statistics import median

import pytest

from plait.client import Client, StreamCancelled, connect
from plait.models import ModelStore
from plait.wire.messages import Cancelled
from tests.live.server import LiveServer, live_server
from tests.proofs.conftest import LISTENING_MODEL, MODEL, SPEECH_MODEL, idle_around
from tests.proofs.conversation_rig import (
    MOST_TOKENS,
    WAIT_SECONDS,
    Answer,
    Listener,
    Microphone,
    halting,
    stream_of,
)
from tests.proofs.sizes import CONTEXT_TOKENS, FULL, TEST_SECONDS
from tests.proofs.transcribe_rig import SAMPLE_RATE, likeness, said

pytestmark = [pytest.mark.model, pytest.mark.timeout(TEST_SECONDS)]

Record = Callable[[str, object], None]
ALIKE = 0.7
# The promises, on a machine that does nothing else. Every other run shows that it works at all.
TOLD_MS = 100.0 if FULL else 3000.0


@pytest.fixture(scope="module")
def shared_server() -> Iterator[LiveServer]:
    store = ModelStore()
    store.ensure(MODEL, "llamacpp")
    store.ensure(SPEECH_MODEL, "kokoro-onnx")
    store.ensure(LISTENING_MODEL, "whisper")
    with live_server(
        "llamacpp",
        speech="kokoro-onnx",
        transcribe="whisper",
        slots=2,
        context_tokens=CONTEXT_TOKENS,
        max_tokens=MOST_TOKENS,
    ) as running:
        yield running


@pytest.fixture
def server(shared_server: LiveServer) -> Iterator[LiveServer]:
    yield from idle_around(shared_server)


@contextlib.asynccontextmanager
async def listening(client: Client, microphone: Microphone) -> AsyncIterator[Listener]:
    """Until the microphone is switched off, and all that was said into it is text."""
    stream = client.transcribe.live(microphone.frames(), sample_rate=SAMPLE_RATE, events=True)
    async with stream, asyncio.TaskGroup() as tasks:
        listener = Listener(stream)
        task = tasks.create_task(listener.run())
        try:
            yield listener
        finally:
            microphone.switch_off()
            await asyncio.wait([task], timeout=WAIT_SECONDS)
            task.cancel()


def tapped(client: Client, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Whose frames come on the wire, growing."""
    came: list[int] = []
    receive = client._receive

    def note(frame: str | bytes) -> None:
        came.append(stream_of(frame))
        receive(frame)

    monkeypatch.setattr(client, "_receive", note)
    return came


def active(server: LiveServer) -> dict[str, float]:
    """Streams that run, by method."""
    found = server.metrics().items()
    return {
        dict(labels)["method"]: value
        for (name, labels), value in found
        if name == "plait_streams_active" and value
    }


def middle(values: list[float]) -> list[int]:
    """Median and maximum."""
    return [round(median(values)), round(max(values))]


def cancelled(proof: Cancelled | None) -> Cancelled:
    """Released, unless the machine was too busy to confirm it in time."""
    assert isinstance(proof, Cancelled)
    assert proof.by == "client"
    assert proof.released or not FULL
    return proof


def stop_ms_of(chat: Cancelled | None) -> float | None:
    """None: a fast machine had written all of it before."""
    return None if chat is None else cancelled(chat).stop_ms


async def test_that_somebody_speaks_is_told_at_once_while_a_decode_runs(
    server: LiveServer, record_property: Record
) -> None:
    microphone = Microphone()
    microphone.say(halting())
    microphone.switch_off()
    async with connect(server.ws_url) as client:
        frames = microphone.frames()
        listener = Listener(
            client.transcribe.live(frames, sample_rate=SAMPLE_RATE, events=True, silence_ms=200)
        )
        await listener.run()

    late = [
        microphone.late_ms(*listener.onsets.get_nowait()) for _ in range(listener.onsets.qsize())
    ]
    record_property("onsets", len(late))
    record_property("speech_started after the detector could know, ms p50, max", middle(late))
    assert len(late) > 1
    assert middle(late)[0] < TOLD_MS


async def test_who_talks_into_an_answer_is_heard_at_once_and_stops_it(
    server: LiveServer, record_property: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    microphone = Microphone()
    question, words = said(1)
    interruption, _ = said(2)
    async with connect(server.ws_url) as client:
        came = tapped(client, monkeypatch)
        async with listening(client, microphone) as listener:
            microphone.say(question)
            await listener.next_onset()
            asked = await listener.next_final()
            answer = Answer(client, asked.text)
            await asyncio.wait_for(answer.speak_a_clause(), WAIT_SECONDS)
            playing = asyncio.create_task(answer.play())

            microphone.say(interruption)
            onset, told_at = await listener.next_onset()
            heard_ms = answer.heard_ms()
            proofs = await asyncio.gather(answer.speech.cancel(heard_ms), answer.chat.cancel())
            ended = len(came)
            with pytest.raises(StreamCancelled):
                await playing
            only_listens = lambda: active(server) == {"transcribe": 1}  # noqa: E731
            await asyncio.to_thread(server.wait_until, only_listens, WAIT_SECONDS, "both given up")
            await listener.next_final()
        assert not {answer.speech.id, answer.chat.id} & set(came[ended:])

    speech, chat_stop_ms = cancelled(proofs[0]), stop_ms_of(proofs[1])
    told_ms = microphone.late_ms(onset, told_at)
    over, begun = answer.bounds_of(heard_ms)
    assert speech.heard
    assert speech.heard.startswith(over)
    assert begun.startswith(speech.heard)
    assert answer.written.startswith(speech.heard)
    assert likeness(asked.text, words) > ALIKE
    assert told_ms < TOLD_MS
    record_property("speech_started after the detector could know, ms", round(told_ms))
    record_property("stop_ms of speech, chat", [speech.stop_ms, chat_stop_ms])
    assert answer.audio_at is not None
    assert answer.clause_at is not None
    record_property("question to first clause, s", round(answer.clause_at - answer.asked_at, 2))
    record_property("first clause to first audio, s", round(answer.audio_at - answer.clause_at, 2))
    record_property("heard", f"{len(speech.heard)} of {len(answer.written)} characters")
