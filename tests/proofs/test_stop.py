"""Seen from outside: after a cancel the worker computes no more and its engine holds nothing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from time import monotonic

import pytest

from plait.client import Client, Stream, connect
from tests.live.server import LiveServer
from tests.proofs.rig import ENDLESS, engine_gauges, long_text, params, reach, watched_cpu
from tests.proofs.sizes import FULL, TEST_SECONDS

pytestmark = [pytest.mark.model, pytest.mark.timeout(TEST_SECONDS)]

WATCHED_SECONDS = 1.5
STOP_SECONDS = 1.5 if FULL else 5.0  # a step and what a busy machine adds
RELEASED_CPU_SECONDS = 0.25
TRIES = 5


@pytest.mark.parametrize("phase", ["decode", "prefill"])
async def test_a_cancel_stops_the_computing_and_brings_slot_and_kv_back(
    server: LiveServer, phase: str, record_property: Callable[[str, object], None]
) -> None:
    async with connect(server.ws_url) as client:
        stream = await caught(server, client, phase)
        with watched_cpu(server.worker) as cpu:
            sent = monotonic()
            cancelled = await stream.cancel()
            terminal = monotonic()
            free = lambda: engine_gauges(server) == (0, 0)  # noqa: E731
            await asyncio.to_thread(server.wait_until, free, 5.0, "slot and KV back")
            gauges_back = monotonic()
            await asyncio.sleep(WATCHED_SECONDS)  # what is watched is that nothing happens

    assert cancelled is not None
    assert cancelled.by == "client"
    assert cpu.used_since(gauges_back) < RELEASED_CPU_SECONDS
    assert cpu.settled_at() - sent < STOP_SECONDS
    assert gauges_back - sent < STOP_SECONDS
    for what, moment in (
        ("terminal after ms", terminal),
        ("CPU still after ms", max(sent, cpu.settled_at())),
        ("slot and KV back after ms", gauges_back),
    ):
        record_property(what, round(1000 * (moment - sent)))
    record_property("stop_ms", cancelled.stop_ms)


async def caught(server: LiveServer, client: Client, phase: str) -> Stream:
    """In that phase, with a slot and KV bytes. A machine that stalls looks too late: again then."""
    holding = lambda: min(engine_gauges(server)) > 0  # noqa: E731
    for _ in range(TRIES):
        stream = client.open("chat", params(ENDLESS if phase == "decode" else long_text()))
        await reach(stream, phase)
        with contextlib.suppress(AssertionError):
            await asyncio.to_thread(server.wait_until, holding, 5.0, "a slot and KV bytes in use")
            if stream.terminal is None and (stream.last_seq > 0) == (phase == "decode"):
                return stream
        await stream.cancel()
        await asyncio.to_thread(server.wait_idle)
    pytest.fail(f"{TRIES} times {phase} was over before it could be looked at")
