"""All methods at once, over many connections, cancelled and hung up on: nothing is left of it."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from plait.models import ModelStore
from tests.live.server import LiveServer, live_server
from tests.proofs.sizes import SOAK_CONNECTIONS, TEST_SECONDS
from tests.proofs.soak_rig import converse

pytestmark = pytest.mark.timeout(TEST_SECONDS)

EMBED_MODEL = "all-minilm-l6-v2"
LANES = 8
RSS_GROWTH_BYTES = 48 * 2**20  # of one process; an arena more or less, but no leak
QUIET_SECONDS = 30.0
KEPT = "plait_prefix_cache_bytes"  # of chats that are over: it may stay, within its cap
USED = "plait_memory_used_bytes"
# Whatever else the machine does, and what the scrape itself takes: descriptors are counted apart.
MACHINES = ("plait_memory_available_bytes", "plait_memory_pressure")
NOT_HELD = (*MACHINES, "plait_tasks", "plait_open_fds")


@pytest.fixture(scope="module", params=["scripted", pytest.param("onnx", marks=pytest.mark.model)])
def soaked_server(request: pytest.FixtureRequest) -> Iterator[LiveServer]:
    """All four methods by script, and once with a real model among them: the cheapest to run."""
    if request.param == "onnx":
        ModelStore().ensure(EMBED_MODEL, request.param)
    with live_server("scripted", "scripted", "scripted", request.param) as running:
        yield running


@dataclass(frozen=True, slots=True)
class Facts:
    """What a server holds, by its own gauges and by the kernel's account of its processes."""

    gauges: dict[tuple[str, frozenset[tuple[str, str]]], float]
    descriptors: dict[int, int]
    rss_bytes: dict[int, int]

    @classmethod
    def of(cls, server: LiveServer) -> Facts:
        processes = [psutil.Process(server.process.pid), *server.workers]
        return cls(
            gauges_of(server),
            {process.pid: process.num_fds() for process in processes},
            {process.pid: process.memory_info().rss for process in processes},
        )

    def beyond(self, other: Facts) -> set[tuple[object, float]]:
        """What is held now and was not then, or the other way round."""
        now, then = ({*facts.gauges.items(), *facts.descriptors.items()} for facts in (self, other))
        return now ^ then


def gauges_of(server: LiveServer) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Every gauge of the server's own; what is kept of chats that are over counts for nothing."""
    families = text_string_to_metric_families(server.get("/metrics")[1])
    samples = [s for family in families if family.type == "gauge" for s in family.samples]
    own = [s for s in samples if s.name not in (KEPT, *NOT_HELD)]
    gauges = {(s.name, frozenset(s.labels.items())): s.value for s in own}
    kept = sum(s.value for s in samples if s.name == KEPT)
    if (USED, frozenset()) in gauges:
        gauges[USED, frozenset()] -= kept
    return gauges


def ended_streams(server: LiveServer) -> float:
    """Terminals by the server's own count, also of those nobody was left to hear."""
    return sum(
        value
        for (name, labels), value in server.metrics().items()
        if name == "plait_streams_total" and ("outcome", "rejected") not in labels
    )


async def soak(server: LiveServer, connections: int, seed: int) -> Counter[str]:
    async with asyncio.TaskGroup() as tasks:
        lanes = [
            tasks.create_task(
                converse(server.ws_url, -(-connections // LANES), random.Random(100 * seed + lane))
            )
            for lane in range(LANES)
        ]
    await asyncio.to_thread(server.wait_idle, QUIET_SECONDS)
    return sum((lane.result() for lane in lanes), Counter())


def wait_as_before(server: LiveServer, before: Facts) -> float:
    """Seconds until gauges and descriptors are as they were."""
    try:
        return server.wait_until(
            lambda: not Facts.of(server).beyond(before), QUIET_SECONDS, "all is as before"
        )
    except AssertionError as late:
        raise AssertionError(f"still held: {Facts.of(server).beyond(before)}") from late


async def test_a_mixed_soak_leaves_every_gauge_descriptor_and_process_as_it_was(
    soaked_server: LiveServer, record_property: Callable[..., None]
) -> None:
    server = soaked_server
    await soak(server, SOAK_CONNECTIONS // 3, seed=1)  # pools and caches come with the first use
    before, ended_before = Facts.of(server), ended_streams(server)

    ends = await soak(server, SOAK_CONNECTIONS, seed=2)

    took = await asyncio.to_thread(wait_as_before, server, before)
    after, ended = Facts.of(server), ended_streams(server) - ended_before
    grown = {pid: rss - before.rss_bytes[pid] for pid, rss in after.rss_bytes.items()}
    for how, count in sorted(ends.items()):
        record_property(how, count)
    record_property("as before after ms", round(1000 * took))
    record_property("largest RSS growth, MiB", round(max(grown.values()) / 2**20, 1))
    told = ends["done"] + ends["cancelled"]
    # Many a cancel comes too late on a fast machine; those that nothing else would end never do.
    assert ends["cancelled"] > ends.total() / 50
    assert ends["lost"] > 0
    assert told <= ended <= told + ends["lost"]
    assert max(grown.values()) < RSS_GROWTH_BYTES
