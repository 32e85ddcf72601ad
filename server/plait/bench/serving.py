"""A `plait serve` of our own in another process, or somebody's running one, as the bench sees it.

What the server prints is read so that it never blocks, and its end is kept for error messages.
Does NOT know what is measured.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
import urllib.error
import urllib.request
from asyncio.subprocess import PIPE, STDOUT, Process
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass

import psutil
from prometheus_client.parser import text_string_to_metric_families

from plait.bench.figures import Metrics

START_SECONDS = 900.0  # a first start downloads the model
STOP_SECONDS = 20.0
SCRAPE_SECONDS = 10.0
KEPT_LINES = 30


class BenchError(Exception):
    """The measurement could not be made; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Server:
    """`url` is http://host:port; `pid` None when the server is not ours."""

    url: str
    pid: int | None = None

    @property
    def ws_url(self) -> str:
        return "ws" + self.url.removeprefix("http") + "/v1/ws"

    async def metrics(self) -> Metrics:
        """Raises BenchError when the page cannot be read."""
        return await asyncio.to_thread(_scrape, self.url + "/metrics")

    async def cpu_seconds(self) -> tuple[float, float]:
        """(gateway, worker) CPU seconds so far; zeros when the processes are not ours."""
        return (0.0, 0.0) if self.pid is None else await asyncio.to_thread(_cpu_seconds, self.pid)

    async def workers_cpu_seconds(self) -> float | None:
        """CPU seconds of all workers with the processes below them, those that have ended too.

        A process knows what its ended children took once it has waited for them (not on macOS:
        there theirs is missing). None when the processes are not ours.
        """
        return None if self.pid is None else await asyncio.to_thread(_workers_cpu_seconds, self.pid)


@contextlib.asynccontextmanager
async def own_server(
    engine: str, on_line: Callable[[str], None] = lambda _: None, /, **settings: int | str
) -> AsyncIterator[Server]:
    """Serve `engine` for chat on a free port until the block ends; other methods if asked for.

    `settings` as in docs/configuration.md. `on_line` gets each line that it prints once it serves.

    Raises BenchError when it does not come up.
    """
    off = {f"{method}_engine": "off" for method in ("speech", "transcribe", "embed")}
    settings = {**off, **settings}
    kept = {name: value for name, value in os.environ.items() if not _is_setting(name)}
    environment = kept | {f"PLAIT_{name.upper()}": str(value) for name, value in settings.items()}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "plait.bench.tethered", "serve", "--no-open", "--port", "0"),
        *("--chat-engine", engine),
        env=environment,
        stdin=PIPE,  # held open: its end tells the server that we are gone
        stdout=PIPE,
        stderr=STDOUT,
        start_new_session=True,  # a Ctrl-C is ours to pass on
    )
    lines: deque[str] = deque(maxlen=KEPT_LINES)
    try:
        url = await _read_url(process, lines)
        reader = asyncio.create_task(_read_rest(process, lines, on_line))
        try:
            yield Server(url, process.pid)
        finally:
            await _stop(process)
            await reader
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _is_setting(name: str) -> bool:
    """Settings of the caller's shell would make figures nobody can repeat."""
    return name.startswith("PLAIT_") and name != "PLAIT_HOME"


async def _read_url(process: Process, lines: deque[str]) -> str:
    assert process.stdout is not None
    why = "did not start"
    try:
        async with asyncio.timeout(START_SECONDS):
            while line := await process.stdout.readline():
                lines.append(line.decode(errors="replace"))
                if found := re.search(r" at (http://\S+?)/?\s*$", lines[-1]):
                    return found[1]
    except TimeoutError:
        why = f"was not ready within {START_SECONDS:g} s"
    raise BenchError(f"the server {why}:\n" + "".join(lines))


async def _read_rest(process: Process, lines: deque[str], on_line: Callable[[str], None]) -> None:
    assert process.stdout is not None
    while line := await process.stdout.readline():
        lines.append(line.decode(errors="replace"))
        on_line(lines[-1])


async def _stop(process: Process) -> None:
    if process.returncode is not None:
        return
    process.send_signal(signal.SIGTERM)
    await wait_or_kill(process, STOP_SECONDS)


async def wait_or_kill(process: Process, seconds: float) -> None:
    """So long for it to end by itself, then SIGKILL; it has ended on return."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await process.wait()
    if process.returncode is None:
        process.kill()
        await process.wait()


def _scrape(url: str) -> Metrics:
    try:
        with urllib.request.urlopen(url, timeout=SCRAPE_SECONDS) as response:
            page = response.read().decode()
    except (OSError, urllib.error.URLError) as error:
        raise BenchError(f"{url} cannot be read: {error}") from error
    families = text_string_to_metric_families(page)
    samples = [sample for family in families for sample in family.samples]
    return {(s.name, frozenset(s.labels.items())): s.value for s in samples}


def _cpu_seconds(pid: int) -> tuple[float, float]:
    gateway = psutil.Process(pid)
    return _cpu(gateway), sum(_cpu(worker) for worker in gateway.children())


def _workers_cpu_seconds(pid: int) -> float:
    return spent_cpu_seconds(psutil.Process(pid).children(recursive=True))


def spent_cpu_seconds(processes: Iterable[psutil.Process]) -> float:
    """So far, by them and by those of their children that have ended and were waited for."""
    seconds = 0.0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            seconds += times.user + times.system + times.children_user + times.children_system
    return seconds


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
