"""An asyncio event loop whose clock jumps to the next timer instead of waiting for it.

Tests of seconds take microseconds and are exact: `loop.time` is the injected clock of everything
under test. For purely in-memory tests; with real sockets nothing would ever arrive.
"""

from __future__ import annotations

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

TestParams = ParamSpec("TestParams")


class _JumpingSelector(selectors.DefaultSelector):
    """Reports nothing ready and moves the clock on by the time-out it was asked to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            # Nobody will ever wake this loop: a test that waits for what cannot come must fail.
            raise RuntimeError("all tasks wait and no timer is set: deadlock")
        self.now += max(0.0, timeout)
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now

    @property
    def _clock_resolution(self) -> float:
        return 1e-9

    @_clock_resolution.setter
    def _clock_resolution(self, value: float) -> None:
        """asyncio sets the system clock's; ours is exact."""


def run_virtually(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run `main` to its end on a fresh virtual-time loop."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(main())


def virtually(
    test: Callable[TestParams, Coroutine[Any, Any, None]],
) -> Callable[TestParams, None]:
    """Decorator: the test runs on a virtual-time loop of its own."""

    @functools.wraps(test)
    def run(*args: TestParams.args, **kwargs: TestParams.kwargs) -> None:
        run_virtually(lambda: test(*args, **kwargs))

    return run


async def settle(turns: int = 12) -> None:
    """Let everything that is due run, without moving the clock."""
    for _ in range(turns):
        await asyncio.sleep(0)
