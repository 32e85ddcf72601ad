"""Random lives of many streams: nothing leaks, and each accepted stream ends exactly once.

Hypothesis draws a sequence of what peers, engine and clock may do; the rules of PROTOCOL.md §2
are checked on everything the peers received, and the books must be at zero in the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, given, settings, strategies as st

from tests.fakes import MemorySocket, info
from tests.sessions.rig import INFOS, Rig, rig
from tests.virtual_time import run_virtually, settle

TERMINALS = {"done", "cancelled", "error"}
WINDOWS = (0, 1, 3, 64)
Step = tuple[str, int, int]

steps = st.lists(
    st.tuples(
        st.sampled_from(
            ["open"] * 3
            + ["items", "tick"] * 2
            + ["cancel", "ack", "finish", "fail", "release", "crash", "hang_up", "drain"]
            + ["feed", "end", "starve"]
        ),
        st.integers(0, 5),
        st.integers(0, 7),
    ),
    max_size=60,
)


@dataclass
class World:
    """Two peers that come back with a new socket after hanging up, and what was opened."""

    rig: Rig
    peers: list[MemorySocket] = field(default_factory=list)
    all_peers: list[MemorySocket] = field(default_factory=list)
    next_id: int = 1
    opened: dict[int, MemorySocket] = field(default_factory=dict)

    async def connect(self, index: int) -> None:
        peer = await self.rig.connect()
        self.all_peers.append(peer)
        self.peers[index : index + 1] = [peer]

    def job(self, which: int) -> int | None:
        jobs = list(self.rig.engine.running)
        return jobs[which % len(jobs)] if jobs else None


async def _open(world: World, a: int, b: int) -> None:
    peer = world.peers[a % 2]
    fields: dict[str, Any] = {"deadline_ms": 150} if b == 7 else {}
    openings = {"chat": peer.open, "synthesize": peer.speak, "transcribe": peer.transcribe}
    opening = openings[world.rig.method]
    opening(world.next_id, window=WINDOWS[b % 4], **fields)
    world.opened[world.next_id] = peer
    world.next_id += 1


async def _cancel(world: World, a: int, b: int) -> None:
    if world.opened:
        id = max(1, world.next_id - 1 - b)
        world.opened[id].say({"type": "cancel", "id": id, "heard_ms": 100 * a})


async def _feed(world: World, a: int, b: int) -> None:
    if world.opened:
        id = max(1, world.next_id - 1 - b)
        size = (1, 50, 20_000, 0, 3, 60_000)[a]
        if world.rig.method == "transcribe":
            world.opened[id].hear(id, bytes(4 * size))
        else:
            world.opened[id].feed(id, "x" * size)
        if (job := world.job(a)) is not None:
            world.rig.engine.consume(job, 50)


async def _end(world: World, a: int, b: int) -> None:
    if world.opened:
        id = max(1, world.next_id - 1 - b)
        world.opened[id].end(id)


async def _starve(world: World, a: int, b: int) -> None:
    if (job := world.job(a)) is not None and not world.rig.engine.running[job]:
        world.rig.engine.starve(job, crossed=max(0, b - 6))


async def _ack(world: World, a: int, b: int) -> None:
    for id, peer in world.opened.items():
        sent = [m["seq"] for m in told(peer, id) if m["type"] == "item"]
        if sent:
            peer.say({"type": "ack", "id": id, "seq": sent[-1]})


async def _items(world: World, a: int, b: int) -> None:
    if (job := world.job(a)) is not None and not world.rig.engine.running[job]:
        engine = world.rig.engine
        if world.rig.method == "chat":
            engine.items(job, b)
            return
        if world.rig.method == "transcribe":
            for i in range(b):
                engine.segment(job, i // 2, i, final=bool(i % 2))
            return
        engine.mark(job, "One two. ", 0.0, 0.2)
        for i in range(b):
            engine.audio(job, 20, at=20 * i)


async def _finish(world: World, a: int, b: int) -> None:
    if (job := world.job(a)) is not None:
        world.rig.engine.finish(job)


async def _fail(world: World, a: int, b: int) -> None:
    if (job := world.job(a)) is not None:
        world.rig.engine.fail(job)


async def _release(world: World, a: int, b: int) -> None:
    world.rig.engine.release_after = (None, 0.0, 0.05, 0.3)[b % 4]


async def _crash(world: World, a: int, b: int) -> None:
    world.rig.engine.crash()
    world.rig.scheduler.on_ready(INFOS.get(world.rig.method, info)())


async def _tick(world: World, a: int, b: int) -> None:
    await asyncio.sleep((0, 0.01, 0.2, 1.5, 12, 31)[a])


async def _hang_up(world: World, a: int, b: int) -> None:
    world.peers[a % 2].hang_up()
    await world.connect(a % 2)


async def _drain(world: World, a: int, b: int) -> None:
    if b == 0:
        for session in world.rig.sessions:
            session.drain(1)


ACTIONS: dict[str, Callable[[World, int, int], Awaitable[None]]] = {
    "open": _open,
    "cancel": _cancel,
    "ack": _ack,
    "items": _items,
    "finish": _finish,
    "fail": _fail,
    "release": _release,
    "crash": _crash,
    "tick": _tick,
    "hang_up": _hang_up,
    "drain": _drain,
    "feed": _feed,
    "end": _end,
    "starve": _starve,
}


def told(peer: MemorySocket, id: int) -> list[dict[str, Any]]:
    """All that a peer received of one stream, audio too."""
    return [message for message in peer.story if message.get("id") == id]


def check_stream(messages: list[dict[str, object]]) -> None:
    """One accepted stream as its peer saw it: order, one terminal, gapless seqs."""
    types = [str(m["type"]) for m in messages]
    if types[0] == "rejected":
        assert types == ["rejected"]
        return
    assert types[0] == "accepted"
    ends = [t for t in types if t in TERMINALS]
    assert len(ends) <= 1
    if ends:
        assert types[-1] == ends[0]
    if "item" in types:
        assert types.index("started") < types.index("item")
    seqs = [m["seq"] for m in messages if m["type"] == "item"]
    assert seqs == list(range(1, len(seqs) + 1))
    if ends:
        assert messages[-1]["seq"] == len(seqs)


async def play(script: list[Step], method: str) -> None:
    async with rig(method=method) as r:
        world = World(r)
        await world.connect(0)
        await world.connect(1)
        for name, a, b in script:
            await ACTIONS[name](world, a, b)
            assert r.engine.computing <= 2
            await settle()
            assert r.engine.computing <= r.gauge("plait_slots_used", model="m") <= 2
        alive = [peer for peer in world.all_peers if peer.closed is None]
        r.engine.release_after = 0.0
        for id, peer in world.opened.items():
            peer.say({"type": "cancel", "id": id})
        await asyncio.sleep(30)
        for peer in world.all_peers:
            for id in {m["id"] for m in peer.received if "id" in m}:
                check_stream(told(peer, id))
        for id, peer in world.opened.items():
            if peer in alive and peer in world.peers and peer.of(id):
                assert peer.last(id)["type"] in {*TERMINALS, "rejected"}
        for peer in world.all_peers:
            peer.hang_up()
        await asyncio.sleep(30)
        r.assert_nothing_held()


@settings(max_examples=240, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps, st.sampled_from(["chat", "synthesize", "transcribe"]))
def test_no_life_of_streams_leaks_anything_or_ends_twice(script: list[Step], method: str) -> None:
    run_virtually(lambda: play(script, method))
