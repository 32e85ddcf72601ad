"""How long the page's main thread computed in one go, by its own clock of CPU time.

Time on the wall would be the machine's as much as the page's: a task that another process
interrupts is not a longer one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from playwright.sync_api import Browser, Page

TASKS = ("RunTask", "ThreadControllerImpl::RunTask")


@dataclass
class Tasks:
    """Of the main thread, in milliseconds of CPU; filled in when the watch is over."""

    cpu_ms: list[float] = field(default_factory=list)

    @property
    def longest(self) -> float:
        return max(self.cpu_ms)


@contextmanager
def watched(browser: Browser, page: Page) -> Iterator[Tasks]:
    """Nobody else may trace this browser meanwhile."""
    tasks = Tasks()
    browser.start_tracing(page=page, categories=["toplevel"])
    try:
        yield tasks
    finally:
        events = json.loads(browser.stop_tracing())["traceEvents"]
    main = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    tasks.cpu_ms = [
        event["tdur"] / 1000
        for event in events
        if event["name"] in TASKS and "tdur" in event and (event["pid"], event["tid"]) in main
    ]
    assert tasks.cpu_ms, "the browser says nothing of its tasks"
