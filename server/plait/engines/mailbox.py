"""Where the command reader thread hands over to the worker loop, inside a worker process.

The reader puts; the loop takes and, when it has nothing to do, sleeps here. A `Cancel` also sets
the sticky flag of its job before the loop sees the command, so a step that is under way already
counts as wasted work. Knows no socket and no engine.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from plait.engines.base import Cancel, Command

# Full is fatal. The gateway bounds what it sends (streams, upload credit), so a full mailbox is a
# broken gateway; to stop reading instead would hide the cancels behind the backlog.
MAX_COMMANDS = 65_536
MAX_BACKLOG_BYTES = 512 * 1024 * 1024


class MailboxOverflow(RuntimeError):
    """The gateway sent more than it may have outstanding; the worker must end."""


class Mailbox:
    """Implements `CancelFlags`. `put` and `close` are the reader's, all else is the loop's."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        max_commands: int = MAX_COMMANDS,
        max_backlog_bytes: int = MAX_BACKLOG_BYTES,
    ) -> None:
        self._clock = clock
        self._max_commands = max_commands
        self._max_backlog_bytes = max_backlog_bytes
        self._commands: deque[Command] = deque()
        self._backlog_bytes = 0
        self._stamps: dict[int, float] = {}
        self._changed = threading.Condition()

    def put(self, command: Command, size_bytes: int) -> None:
        """Raises MailboxOverflow."""
        with self._changed:
            if isinstance(command, Cancel):
                self._stamps.setdefault(command.job, self._clock())
            self._commands.append(command)
            self._backlog_bytes += size_bytes
            if (
                len(self._commands) > self._max_commands
                or self._backlog_bytes > self._max_backlog_bytes
            ):
                raise MailboxOverflow(
                    f"{len(self._commands)} commands of {self._backlog_bytes} bytes wait; "
                    f"the limits are {self._max_commands} and {self._max_backlog_bytes} bytes"
                )
            self._changed.notify()

    def take_all(self, *, wait: bool) -> list[Command]:
        """All commands in order of arrival; with `wait` sleeps until there is at least one."""
        with self._changed:
            if wait:
                self._changed.wait_for(lambda: self._commands)
            commands = list(self._commands)
            self._commands.clear()
            self._backlog_bytes = 0
            return commands

    def stamp(self, job: int) -> float | None:
        # Without the lock: one dict lookup is atomic, and adapters ask once per row and step.
        return self._stamps.get(job)

    def forget(self, job: int) -> None:
        """The job is over; its flag, if any, goes."""
        with self._changed:
            self._stamps.pop(job, None)

    @property
    def flagged(self) -> list[int]:
        """Jobs whose cancel has arrived and which are not forgotten."""
        if not self._stamps:
            return []
        with self._changed:
            return list(self._stamps)
