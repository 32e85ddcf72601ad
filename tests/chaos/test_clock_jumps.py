"""A live server whose wall clock jumps by years while streams run, wait and rest.

As when somebody sets the clock: gateway and workers read the new time at once (by libfaketime), and
CLOCK_MONOTONIC knows nothing of it. Between two leaps the server has a quarter second of work.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from plait.engines.scripted.hearing import recite
from tests.chaos.rig import unharmed, wait_ready
from tests.live.peer import Peer, peer
from tests.live.server import LiveServer

LIBRARY = "faketime/libfaketimeMT.so.1"
FOLDERS = ("lib/*", "lib*")  # of Debian, of others
LEAPS = (1, -1, 1, -1)  # years from the true time: ahead by one, back by two, and again
LONG = "tokens=100000 step_ms=50"  # by its bound of tokens, most of a minute
WORK = ["step_ms=10 one"] + ["more"] * 24
DEADLINE_SECONDS = 1.5
QUEUE_SECONDS = 6.0
LATE_SECONDS = 10.0  # of a machine that does much else; a leap would be out by a year
MOST_SECONDS = 3600.0  # of anything that is measured here
NO_DURATION = ("_created", "process_start_time_seconds")


class ClockServer(LiveServer):
    """Its clock, and that of whatever it starts, is off by what a file says."""

    def __init__(self, library: Path, file: Path, **settings: Any) -> None:
        self._file = file
        self.leap(0)
        self.program = (
            "/usr/bin/env",
            f"LD_PRELOAD={library}",
            f"FAKETIME_TIMESTAMP_FILE={file}",
            "FAKETIME_NO_CACHE=1",
            "FAKETIME_DONT_FAKE_MONOTONIC=1",
            "NO_FAKE_STAT=1",
            *LiveServer.program,
        )
        super().__init__(**settings)

    def leap(self, years: int) -> None:
        written = self._file.with_suffix(".new")
        written.write_text(f"{years:+}y\n")
        written.replace(self._file)  # never half of it

    def forget_shared_memory(self) -> None:
        """The library leaves it behind where the server was killed, and trips over it later."""
        for name in ("faketime_shm", "sem.faketime_sem"):
            Path(f"/dev/shm/{name}_{self.process.pid}").unlink(missing_ok=True)

    async def live_through_leaps(self) -> None:
        """Returns with the clock a year behind."""
        async with peer(self.ws_url) as worker:
            for id, years in enumerate(LEAPS, 1):
                await asyncio.to_thread(wait_ready, self)
                self.leap(years)
                assert (await asyncio.to_thread(self.get, "/readyz"))[0] == 200
                await worker.embed(id, WORK, window=0)
                assert (await worker.hear_terminals(id))[id]["type"] == "done"


@pytest.fixture(scope="module")
def library() -> Path:
    """Skips where it is not installed; CI installs it."""
    if sys.platform != "linux":
        pytest.skip("libfaketime is preloaded on Linux only")
    found = [path for folder in FOLDERS for path in Path("/usr").glob(f"{folder}/{LIBRARY}")]
    if not found and "CI" not in os.environ:
        pytest.skip("libfaketime is not installed (apt-get install libfaketime)")
    assert found, "CI installs libfaketime: see .ci/system-packages"
    return found[0]


@pytest.fixture(scope="module")
def server(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClockServer]:
    running = ClockServer(
        library,
        tmp_path_factory.mktemp("clock") / "offset",
        transcribe="scripted",
        embed="scripted",
        slots=1,
        queue_timeout_seconds=QUEUE_SECONDS,
    )
    try:
        yield running
        assert running.stop() == 0
        assert "Traceback" not in running.output, running.output[-5000:]
    finally:
        running.kill()
        running.forget_shared_memory()


@pytest.fixture(autouse=True)
def true_time(server: ClockServer) -> None:
    """Each test begins with it, as whatever it starts does."""
    server.leap(0)


async def test_a_stream_ends_by_its_deadline_and_who_waits_behind_it_is_served_then(
    server: ClockServer,
) -> None:
    async with unharmed(server), peer(server.ws_url) as client:
        begin = time.monotonic()
        await client.open(1, LONG, window=0, deadline_ms=round(1000 * DEADLINE_SECONDS))
        await client.open(2)
        await server.live_through_leaps()
        ends = await client.hear_terminals(1, 2)
        elapsed = time.monotonic() - begin
    assert [(id, end["type"]) for id, end in ends.items()] == [(1, "cancelled"), (2, "done")]
    assert ends[1]["by"] == "deadline"
    lived = ends[1]["timing"]["total_ms"] / 1000
    assert DEADLINE_SECONDS <= lived <= min(elapsed, DEADLINE_SECONDS + LATE_SECONDS)
    assert 0 <= ends[2]["timing"]["queued_ms"] / 1000 <= elapsed


@pytest.mark.waits
async def test_who_waits_for_a_slot_is_told_so_after_the_queues_time_and_no_sooner(
    server: ClockServer,
) -> None:
    async with unharmed(server), peer(server.ws_url) as client:
        await client.open(1, LONG, window=0)
        await client.hear_until("item", 1)
        begin = time.monotonic()
        await client.open(2)
        hearing = asyncio.create_task(hear_end(client, 2))
        await server.live_through_leaps()
        end, at = await hearing
        await client.say({"type": "cancel", "id": 1})
        ended = await client.hear_until("cancelled", 1)
    assert end["error"]["code"] == "queue_timeout"
    assert QUEUE_SECONDS <= at - begin < QUEUE_SECONDS + LATE_SECONDS
    assert_sane(ended, time.monotonic() - begin + QUEUE_SECONDS)


async def hear_end(client: Peer, id: int) -> tuple[dict[str, Any], float]:
    """And when it came, whatever else takes how long."""
    ends = await client.hear_terminals(id)
    return ends[id], time.monotonic()


async def test_who_rests_loses_neither_connection_nor_stream(server: ClockServer) -> None:
    async with unharmed(server), peer(server.ws_url) as silent, peer(server.ws_url) as client:
        await client.transcribe(1)  # waits for its input
        await client.hear_until("started", 1)
        await client.open(2, "tokens=50", window=4)  # waits for an acknowledgement
        await client.hear_until("item", 2)
        await server.live_through_leaps()
        await silent.say({"type": "ping", "n": 7})
        assert (await silent.hear_until("pong"))["n"] == 7
        await client.say({"type": "ack", "id": 2, "seq": 4})
        await client.send_audio(1, recite("one two three"))
        await client.say({"type": "end", "id": 1})
        ends = await client.hear_terminals(1, 2)
    assert {end["type"] for end in ends.values()} == {"done"}
    assert ends[2]["usage"]["completion_tokens"] == 50


@pytest.mark.parametrize("leaps", [(1, -1), (-1, 1)], ids=["back", "ahead"])
async def test_a_receipt_is_sane_whatever_the_clock_did_between_start_cancel_and_release(
    server: ClockServer, leaps: tuple[int, int]
) -> None:
    async with unharmed(server), peer(server.ws_url) as client:
        begin = time.monotonic()
        await client.open(1, f"{LONG} cancel_ms=30", window=0)
        await client.hear_until("item", 1)
        server.leap(leaps[0])
        await client.hear_until("item", 1)
        await client.say({"type": "cancel", "id": 1})
        server.leap(leaps[1])
        end = await client.hear_until("cancelled", 1)
    assert_sane(end, time.monotonic() - begin)


def assert_sane(cancelled: dict[str, Any], most_seconds: float) -> None:
    assert cancelled["by"] == "client"
    assert all(0 <= value <= 1000 * most_seconds for value in cancelled["timing"].values())
    if cancelled["released"]:  # within 100 ms, which a busy machine may miss
        assert 0 <= cancelled["stop_ms"] <= 1000 * most_seconds


async def test_what_the_server_measures_stays_sane_and_its_log_tells_the_new_time(
    server: ClockServer,
) -> None:
    before = len(server.output)
    async with unharmed(server):
        await server.live_through_leaps()
        uptime = json.loads(server.get("/v1/status")[1])["uptime_seconds"]
    assert 0 < uptime < MOST_SECONDS
    seconds = {
        key: value
        for key, value in server.metrics().items()
        if "seconds" in key[0] and not key[0].endswith(NO_DURATION)
    }
    assert [item for item in seconds.items() if not 0 <= item[1] < MOST_SECONDS] == []
    year = datetime.now(UTC).year
    logged = re.findall(r'"timestamp": ?"(\d{4})-', server.output[before:])
    assert {year + 1, year - 1} <= {int(each) for each in logged}


def test_gateway_and_workers_are_under_that_clock(server: ClockServer, library: Path) -> None:
    for process in (psutil.Process(server.process.pid), *server.workers):
        assert any(found.path == str(library.resolve()) for found in process.memory_maps())
