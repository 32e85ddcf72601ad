"""A thread that makes one long call at a time, so that the worker loop answers meanwhile.

A call into a model takes up to some hundred milliseconds and a command may come at any time: a
cancel of another job, a ping, an open. The loop waits here, in slices, and `wake` ends its wait;
the call goes on. Its result is taken before the next is submitted. Does NOT know jobs or models:
how a call is cut short is the model's business.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")


class CallThread(Protocol[T]):
    """What an engine asks of `ComputingThread`, which says more."""

    def submit(self, call: Callable[[], T]) -> None: ...

    def wait(self, seconds: float) -> bool: ...

    def wake(self) -> None: ...

    def take(self) -> T: ...

    def close(self) -> None: ...


class ComputingThread(Generic[T]):
    """Used by one thread, except `wake`."""

    def __init__(self, name: str = "computing") -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._woken = threading.Event()
        self._future: Future[T] | None = None

    def submit(self, call: Callable[[], T]) -> None:
        assert self._future is None, "one call at a time"
        self._future = self._executor.submit(call)
        self._future.add_done_callback(lambda _: self._woken.set())

    def wait(self, seconds: float) -> bool:
        """Until the call is over, for so long at most, or until `wake`. True: it is over."""
        assert self._future is not None
        self._woken.wait(seconds)
        self._woken.clear()
        return self._future.done()

    def wake(self) -> None:
        """From any thread: end the wait under way, or the next one."""
        self._woken.set()

    def take(self) -> T:
        """What the call returned, or raises what it raised."""
        future, self._future = self._future, None
        assert future is not None
        assert future.done()
        return future.result()

    def close(self) -> None:
        """Waits for the end of the call under way."""
        self._executor.shutdown(wait=True)
