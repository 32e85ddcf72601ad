"""Random microphones: whatever comes when, the audio is whole and a transcription ends once.

Hypothesis draws frames of any cut, consumption, revisions, a slow reader, silence and endings.
"""

from __future__ import annotations

import asyncio
from itertools import pairwise

from hypothesis import HealthCheck, given, settings, strategies as st

from plait.engines.base import FinishInput
from tests.fakes import MemorySocket, listening_info
from tests.sessions.rig import Rig, rig
from tests.virtual_time import run_virtually, settle

WINDOW = 320_000
SIZES = st.sampled_from([0, 1, 3, 640, 1601, 100_000])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("hear"), SIZES),
        st.tuples(st.just("consume"), st.integers(1, 200_000)),
        st.tuples(st.just("wait"), st.sampled_from([0, 1, 20, 3000])),
        st.tuples(st.just("revise"), st.integers(1, 9)),
        st.tuples(st.just("final"), st.just(0)),
        st.tuples(st.just("ack"), st.just(0)),
        st.tuples(st.just("starve"), st.integers(0, 1)),
        st.tuples(st.just("ready"), st.just(0)),
        st.tuples(st.just("stop"), st.sampled_from(["end", "cancel"]).map(len)),
    ),
    max_size=40,
)


class Microphone:
    """A careful client with stream 1, and the engine it talks to."""

    def __init__(self, r: Rig, peer: MemorySocket) -> None:
        self.rig = r
        self.peer = peer
        self.sent = b""
        self.consumed = 0
        self.stopped = ""
        self.ready = False
        self.index = 0
        self.revision = 0

    @property
    def credit(self) -> int:
        acks = [m["bytes"] for m in self.peer.of(1) if m["type"] == "input_ack"]
        return max(acks, default=0) + WINDOW - len(self.sent)

    @property
    def runs(self) -> bool:
        return self.rig.engine.running.get(1) is False

    async def step(self, action: str, value: int) -> None:
        getattr(self, f"_{action}")(value)
        await asyncio.sleep(value / 1000 if action == "wait" else 0)
        await settle()

    def _hear(self, size: int) -> None:
        if size <= self.credit and not self.stopped:
            piece = bytes((len(self.sent) + i) % 251 for i in range(size))
            self.peer.hear(1, piece)
            self.sent += piece

    def _consume(self, size: int) -> None:
        taken = min(size, len(self.rig.engine.fed_audio(1)) - self.consumed)
        if taken > 0 and self.runs:
            self.rig.engine.consume(1, taken)
            self.consumed += taken

    def _wait(self, milliseconds: int) -> None:
        """`step` does."""

    def _revise(self, times: int) -> None:
        for _ in range(times if self.runs else 0):
            self.revision += 1
            self.rig.engine.segment(1, self.index, self.revision)

    def _final(self, _: int) -> None:
        if self.runs:
            self.rig.engine.segment(1, self.index, self.revision + 1, final=True)
            self.index, self.revision = self.index + 1, 0

    def _ack(self, _: int) -> None:
        seqs = [m["seq"] for m in self.peer.of(1) if m["type"] == "item"]
        if seqs:
            self.peer.say({"type": "ack", "id": 1, "seq": seqs[-1]})

    def _starve(self, crossed: int) -> None:
        if self.runs and not self.stopped:
            self.rig.engine.starve(1, crossed=crossed)

    def _ready(self, _: int) -> None:
        if not self.ready:
            self.ready = True
            self.rig.scheduler.on_ready(listening_info())

    def _stop(self, letters: int) -> None:
        self.stopped = {3: "end", 6: "cancel"}[letters] if not self.stopped else "cancel"
        self.peer.say({"type": self.stopped, "id": 1})


def check_segments(mic: Microphone) -> None:
    """What was shown: revisions grow, segments follow each other, a final is the last word."""
    for before, after in pairwise(mic.peer.segments(1)):
        same = after["index"] == before["index"]
        assert before["is_final"] is not same
        assert after["revision"] > before["revision"] if same else True
        assert after["index"] - before["index"] in (0, 1)


async def play(script: list[tuple[str, int]]) -> None:
    async with rig(method="transcribe", ready=False) as r:
        peer = await r.connect()
        peer.transcribe(1, window=3)
        await settle()
        mic = Microphone(r, peer)
        for action, value in script:
            await mic.step(action, value)
            assert mic.sent.startswith(r.engine.fed_audio(1))
            assert 0 <= mic.credit <= WINDOW
        await mic.step("ready", 0)
        await mic.step("wait", 1000)
        check_segments(mic)
        if mic.stopped != "cancel":
            assert r.engine.fed_audio(1) == mic.sent
            assert (FinishInput(1) in r.engine.sent) == (mic.stopped == "end")
            await finish(mic)
        ends = [t for t in peer.types(1) if t in ("done", "cancelled", "error")]
        assert ends == ["done" if mic.stopped != "cancel" else "cancelled"]
        r.assert_nothing_held()


async def finish(mic: Microphone) -> None:
    """Every segment becomes final and everything is read."""
    while 1 in mic.rig.engine.running and not mic.runs:
        await mic.step("ack", 0)
        if not mic.runs:
            mic.peer.end(1)
            await settle()
    await mic.step("final", 0)
    mic.rig.engine.finish(1)
    for _ in range(5):
        await settle()
        await mic.step("ack", 0)
    finals = [s["index"] for s in mic.peer.segments(1) if s["is_final"]]
    assert finals == list(range(mic.index))
    check_segments(mic)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_audio_arrives_whole_finals_are_never_lost_and_one_terminal_ends_it(
    script: list[tuple[str, int]],
) -> None:
    run_virtually(lambda: play(script))
