"""A `plait serve` of our own in another process, or somebody's running one, as the bench sees it.

What the server prints is read so that it never blocks, and its end is kept for error messages.
Does NOT know what is measured.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import re
import signal
import sys
import urllib.error
import urllib.request
from asyncio.subprocess import PIPE, STDOUT, Process
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import psutil
from prometheus_client.parser import text_string_to_metric_families

from plait.bench.figures import Metrics

START_SECONDS = 900.0  # a first start downloads the model
STOP_SECONDS = 20.0
SCRAPE_SECONDS = 10.0
KEPT_LINES = 30
ENDPOINT = "/v1/ws"
TOKEN_VARIABLE = "PLAIT_TOKEN"  # as for `plait conformance`


class BenchError(Exception):
    """The measurement could not be made; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Server:
    """`url` is http://host:port; `pid` None when the server is not ours.

    `token` empty: none is shown. `typed`: the URL as its user gave it, for messages.
    """

    url: str
    pid: int | None = None
    token: str = field(default="", repr=False)
    typed: str = ""

    @property
    def ws_url(self) -> str:
        return "ws" + self.url.removeprefix("http") + ENDPOINT

    @property
    def headers(self) -> dict[str, str]:
        """What a connection or a request shows to be let in."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    async def metrics(self) -> Metrics:
        """Raises BenchError when the page cannot be read, or is none of a Plait's."""
        return await asyncio.to_thread(_scrape, self)

    async def cpu_seconds(self) -> tuple[float, float]:
        """(gateway, worker) CPU seconds so far; zeros when the processes are not ours."""
        return (0.0, 0.0) if self.pid is None else await asyncio.to_thread(_cpu_seconds, self.pid)

    async def workers_cpu_seconds(self) -> float | None:
        """CPU seconds of all workers with the processes below them, those that have ended too.

        A process knows what its ended children took once it has waited for them (not on macOS:
        there theirs is missing). None when the processes are not ours.
        """
        return None if self.pid is None else await asyncio.to_thread(_workers_cpu_seconds, self.pid)


def running_server(typed: str, environ: Mapping[str, str] = os.environ) -> Server:
    """Somebody's, from http://host:port or ws://host:port/v1/ws; shown the token in PLAIT_TOKEN.

    Raises BenchError for what is no such URL.
    """
    try:
        parts = urlsplit(typed)
    except ValueError as error:
        raise BenchError(f"{typed} is no URL ({error}): give ws://host:port{ENDPOINT}") from error
    scheme = {"http": "http", "ws": "http", "https": "https", "wss": "https"}.get(parts.scheme)
    if scheme is None or not parts.netloc:
        raise BenchError(f"{typed} is no URL of a Plait: give ws://host:port{ENDPOINT}")
    if parts.query or "@" in parts.netloc:
        raise BenchError(f"the URL of a server may hold no secret: set {TOKEN_VARIABLE} to it")
    path = parts.path.rstrip("/").removesuffix(ENDPOINT)
    token = environ.get(TOKEN_VARIABLE, "").strip()
    return Server(f"{scheme}://{parts.netloc}{path}", None, token, typed)


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


def _scrape(server: Server) -> Metrics:
    request = urllib.request.Request(server.url + "/metrics")
    for name, value in server.headers.items():
        request.add_unredirected_header(name, value)
    try:
        with urllib.request.urlopen(request, timeout=SCRAPE_SECONDS) as response:
            page = response.read().decode()
        families = text_string_to_metric_families(page)
        samples = [sample for family in families for sample in family.samples]
    except urllib.error.HTTPError as error:
        with error:
            raise BenchError(_refused(server, error.code)) from error
    except (OSError, http.client.HTTPException) as error:
        raise BenchError(_unread(server, error)) from error
    except ValueError as error:  # a page of another kind
        raise BenchError(_no_plait(server)) from error
    if not any(sample.name.startswith("plait_") for sample in samples):
        raise BenchError(_no_plait(server))
    return {(s.name, frozenset(s.labels.items())): s.value for s in samples}


def _refused(server: Server, status: int) -> str:
    shown = server.typed or server.url
    may = "one that may read metrics (docs/operations.md)"
    if status == 401 and server.token:
        return f"{shown} does not know the token in {TOKEN_VARIABLE}: set it to {may}"
    if status == 401:
        return f"{shown} asks for a token: set {TOKEN_VARIABLE} to {may}"
    if status == 403:
        return f"{shown} lets this token read no metrics: set {TOKEN_VARIABLE} to {may}"
    if status == 404:
        return _no_plait(server)
    return f"the metrics of {shown} cannot be read: HTTP {status}; see that server's log"


def _no_plait(server: Server) -> str:
    return (
        f"{server.typed or server.url} is no Plait: it has no metrics of one; give the URL that "
        "`plait serve` prints"
    )


def _unread(server: Server, error: Exception) -> str:
    shown = server.typed or server.url
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, ConnectionRefusedError):
        return f"nobody listens at {shown}: is a server running there? Start one: plait serve"
    return f"the metrics of {shown} cannot be read ({reason}): check the URL and the server"


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
