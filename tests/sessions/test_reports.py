"""What the log says of a stream's cost, by which the abandonment bench gives account."""

from __future__ import annotations

import asyncio
from typing import Any

from structlog.testing import capture_logs

from tests.sessions.rig import rig
from tests.virtual_time import settle, virtually


def released(lines: list[Any]) -> list[dict[str, Any]]:
    return [line for line in lines if line["event"] == "stream.released"]


@virtually
async def test_the_engines_last_word_is_logged_with_its_usage_and_its_times() -> None:
    with capture_logs() as lines:
        async with rig() as r:
            r.engine.release_after = 0.03
            peer = await r.connect()
            began = asyncio.get_running_loop().time()
            peer.open(1)
            await settle()
            peer.say({"type": "cancel", "id": 1})
            await asyncio.sleep(0.05)

    (line,) = released(lines)
    assert (line["stream"], line["session"], line["usage"]) == (1, "s0", r.engine.usage)
    assert line["opened_at"] == line["started_at"] == began
    assert 0.029 < line["released_at"] - began < 0.031


@virtually
async def test_a_release_after_its_terminal_is_logged_too() -> None:
    with capture_logs() as lines:
        async with rig() as r:
            r.engine.release_after = 1.0
            peer = await r.connect()
            peer.open(1)
            await settle()
            peer.hang_up()
            await asyncio.sleep(2)

    events = [line["event"] for line in lines if line.get("stream") == 1]
    assert events[-2:] == ["stream.ended", "stream.released"]


@virtually
async def test_a_stream_that_never_started_has_no_release() -> None:
    with capture_logs() as lines:
        async with rig(slots=1) as r:
            peer = await r.connect()
            peer.open(1)
            peer.open(2)
            await settle()
            peer.say({"type": "cancel", "id": 2})
            await settle()

    assert [line["stream"] for line in released(lines)] == [1]
