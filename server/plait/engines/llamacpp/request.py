"""One completion call into llama.cpp on a thread of its own, stoppable within a step.

The library asks "stop?" only when it delivers something, right after a step, and by then the next
step has begun. So the callback stays in its call, awake to `stop`, for most of the time the next
step needs: a stop that comes meanwhile takes effect at the end of the step under way instead of
one step later. The engine itself never waits for a callback.
`Gone` is put when the engine holds nothing of the request any more. Knows no jobs and no text.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, TypeAlias

import msgspec

from plait.engines.llamacpp.wire import Chunk, decode_chunk

# Share of a step spent inside the callback. Above 1 tokens would queue up; the rest is the slack
# in which a stop costs one step more.
PATIENCE = 0.9
MAX_PATIENCE_SECONDS = 1.0  # steps may get shorter at any time


@dataclass(slots=True, eq=False)
class Arrival:
    request: Request
    chunk: Chunk
    at: float


@dataclass(slots=True, eq=False)
class Gone:
    """The engine has confirmed it. `stopped`: it was told to drop it; else it ended by itself."""

    request: Request
    at: float
    stopped: bool
    error: Exception | None


# A SimpleQueue: the engine decodes on whether or not we take, so a bound could only block the
# callback and with it a stop. What waits here is at most the tokens of the running jobs' bounds.
Inbox: TypeAlias = SimpleQueue[Arrival | Gone | None]


class Request:
    """Runs `body` on `server`; everything it yields goes to `inbox`, `Gone` last.

    `probe` is a request for the same slot that the engine refuses as soon as it takes it up (see
    `wire.probe_body`). The engine takes tasks in order, between steps, and none for a
    slot that is busy: so its answer proves that the slot is free. (`handle_metrics` proves
    nothing: it is answered in the middle of a step.)
    """

    def __init__(self, server: Any, body: str, probe: str, inbox: Inbox, job: int) -> None:
        self.job = job
        self._server = server
        self._body = body
        self._probe = probe
        self._inbox = inbox
        self.reading = True  # its prompt
        self._stop = False
        self._give_way = False
        self._at_once = False
        self._has_read = False  # part of its prompt, not counting what was in the cache
        self._ended = False
        self._dropped = False  # the callback has told the engine to stop
        self._error: Exception | None = None
        self._wake = threading.Event()
        self._patience = Patience()
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"job-{job}")

    def start(self) -> None:
        self._thread.start()

    @property
    def leaving(self) -> bool:
        """Stopped or ended, and not confirmed yet."""
        return self._stop or self._ended

    @property
    def gave_way(self) -> bool:
        """It was dropped in its prompt, to be asked again."""
        return self._give_way and not self._stop

    def stop(self) -> None:
        """From any thread; idempotent. `Gone` follows."""
        self._stop = True
        self._wake.set()

    def give_way(self, *, at_once: bool) -> None:
        """From any thread: drop it unless the prompt is read by then. `Gone` follows if so.

        It has read a chunk by then, or `at_once` none: for what cannot happen again and again.
        """
        self._at_once |= at_once
        self._give_way = True
        self._wake.set()

    def hurry(self) -> None:
        """The answer is complete: fetch the engine's own end without patience."""
        self._wake.set()

    def join(self, timeout_seconds: float) -> None:
        self._thread.join(timeout_seconds)

    def _run(self) -> None:
        for body, receive in ((self._body, self._receive), (self._probe, _ignore)):
            try:
                self._server.handle_completions(body, receive)
            except Exception as error:  # noqa: BLE001 - crosses to the engine thread inside Gone
                self._error = self._error or error
        self._inbox.put(Gone(self, time.monotonic(), self._dropped, self._error))

    def _receive(self, raw: str) -> bool:
        """The library's callback; True drops the request. What it raised would be lost."""
        now = time.monotonic()
        try:
            chunk = decode_chunk(raw)
        except msgspec.DecodeError as error:
            self._error = error
            self._dropped = True
            return True
        progress = chunk.prompt_progress
        self.reading = progress is not None and progress.processed < progress.total
        self._has_read |= progress is not None and progress.processed > progress.cache
        self._ended = chunk.finish_reason is not None or chunk.error is not None
        self._inbox.put(Arrival(self, chunk, now))
        seconds = self._patience.seconds_after(chunk, now)
        if seconds and not self._must_drop:
            self._wake.wait(seconds)
            self._wake.clear()
        self._dropped = self._must_drop
        return self._dropped

    @property
    def _must_drop(self) -> bool:
        yields = self._give_way and (self._at_once or self._has_read)
        return self._stop or (yields and self.reading)


class Patience:
    """How long to stay in the callback: most of what the last step took, as the next one will."""

    def __init__(self) -> None:
        self._last: float | None = None

    def seconds_after(self, chunk: Chunk, now: float) -> float:
        last, self._last = self._last, now
        progress = chunk.prompt_progress
        follows_at_once = (
            chunk.finish_reason is not None
            or chunk.error is not None
            or (progress is not None and progress.processed == progress.total)
        )
        if follows_at_once or last is None:
            return 0.0
        return min(PATIENCE * (now - last), MAX_PATIENCE_SECONDS)


def _ignore(_: str) -> bool:
    return False
