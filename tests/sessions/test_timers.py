from __future__ import annotations

import asyncio
import time

from plait.sessions.timers import LATE_SECONDS, Timers


async def test_a_timer_that_a_suspended_process_missed_lets_what_came_meanwhile_go_first() -> None:
    timers, fired = Timers(), list[str]()
    timers.arm("slow", 0.01, lambda: fired.append("slow"))

    time.sleep(LATE_SECONDS + 0.2)  # noqa: ASYNC251 - the process does not run
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert "slow" in timers
    timers.disarm("slow")
    assert fired == []


async def test_a_timer_fires_once_and_is_gone() -> None:
    timers, fired = Timers(), asyncio.Event()

    timers.arm("slow", 0.01, fired.set)
    await fired.wait()

    assert "slow" not in timers
