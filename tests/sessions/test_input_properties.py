"""Random uploads: what the engine gets is what was sent, and nobody holds more than the credit.

Hypothesis draws inputs of any cut, consumption, pauses and endings of a stream that takes input.
"""

from __future__ import annotations

import asyncio

from hypothesis import HealthCheck, given, settings, strategies as st

from plait.engines.base import FinishInput
from plait.sessions.upload import WINDOW_BYTES
from tests.fakes import MemorySocket, speech_info
from tests.sessions.rig import Rig, rig
from tests.virtual_time import run_virtually, settle

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
PIECES = st.tuples(st.just("input"), st.one_of(TEXTS, st.integers(1, 9).map(lambda n: "é" * 2**n)))
STEPS = st.lists(
    st.one_of(
        PIECES,
        PIECES,
        st.tuples(st.just("consume"), st.integers(1, 100_000)),
        st.tuples(st.just("wait"), st.sampled_from([0.0, 0.001, 0.02, 3.0])),
        st.tuples(st.just("ready"), st.none()),
        st.tuples(st.just("end"), st.none()),
        st.tuples(st.just("cancel"), st.none()),
    ),
    max_size=30,
)


class Uploading:
    """A careful client: it never sends beyond its credit, and remembers what it sent."""

    def __init__(self, r: Rig, peer: MemorySocket) -> None:
        self.rig = r
        self.peer = peer
        self.sent = ""
        self.consumed = 0
        self.ended = False
        self.ready = False

    @property
    def credit(self) -> int:
        acks = [m["bytes"] for m in self.peer.of(1) if m["type"] == "input_ack"]
        return max(acks, default=0) + WINDOW_BYTES - len(self.sent.encode())

    async def step(self, action: str, value: object) -> None:
        if action == "input" and isinstance(value, str) and not self.ended:
            if len(value.encode()) <= self.credit:
                self.peer.feed(1, value)
                self.sent += value
        elif action == "consume" and isinstance(value, int):
            left = len(self.rig.engine.fed(1).encode()) - self.consumed
            if min(value, left) > 0 and 1 in self.rig.engine.running:
                self.rig.engine.consume(1, min(value, left))
                self.consumed += min(value, left)
        elif action == "wait" and isinstance(value, float):
            await asyncio.sleep(value)
        elif action == "ready" and not self.ready:
            self.rig.scheduler.on_ready(speech_info())
            self.ready = True
        elif action in ("end", "cancel"):
            self.peer.say({"type": action, "id": 1})
            self.ended = True
        await settle()


async def play(script: list[tuple[str, object]]) -> None:
    async with rig(method="synthesize", ready=False) as r:
        peer = await r.connect()
        peer.speak(1)
        await settle()
        client = Uploading(r, peer)
        for action, value in script:
            await client.step(action, value)
            assert client.sent.startswith(r.engine.fed(1))
            assert 0 <= client.credit <= WINDOW_BYTES
        await client.step("ready", None)
        await asyncio.sleep(1)
        assert "error" not in peer.types(1)
        if "cancelled" not in peer.types(1):
            assert r.engine.fed(1) == client.sent
            assert (FinishInput(1) in r.engine.sent) == client.ended
            peer.say({"type": "cancel", "id": 1})
            await settle()
        assert peer.types(1)[-1] == "cancelled"
        r.assert_nothing_held()


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_input_arrives_whole_in_order_and_within_its_credit(
    script: list[tuple[str, object]],
) -> None:
    run_virtually(lambda: play(script))
