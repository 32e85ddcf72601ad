"""A real `plait serve` in its own process, for tests over real sockets.

The server picks a free port; what it prints is kept and shown when a wait fails. Gauges are read
from `/metrics` as an operator would.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
from prometheus_client.parser import text_string_to_metric_families

SERVER = Path(__file__).parents[2] / "server"
SPEAKERS = "scripted-speech|kokoro"
LISTENERS = "scripted-transcribe|whisper"
EMBEDDERS = "scripted-embed|minilm"
START_SECONDS = 150.0  # a speech model on a machine that does much else


class LiveServer:
    """Running once built; `stop` (SIGTERM) or `kill` ends it."""

    program: tuple[str, ...] = (sys.executable, "-m", "plait")

    def __init__(
        self,
        engine: str = "scripted",
        speech: str = "off",
        transcribe: str = "off",
        embed: str = "off",
        **settings: object,
    ) -> None:
        environment = {f"PLAIT_{name.upper()}": str(value) for name, value in settings.items()}
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "PLAIT_HOME", "LANG")}
        self.token = ""  # shown for the gauges, where a test's server asks for one
        self._lines: list[str] = []
        self._more = threading.Condition()
        command = [*self.program, "serve", "--no-open", "--port", "0"]
        self.process = subprocess.Popen(
            [
                *command,
                *("--chat-engine", engine),
                *("--speech-engine", speech),
                *("--transcribe-engine", transcribe),
                *("--embed-engine", embed),
            ],
            env={**kept, **environment, "PYTHONPATH": str(SERVER)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self.port = int(self.wait_for_line(r"at http://[^ ]*:(\d+)")[1])
            self.wait_for_line(rf"^(?!.*({SPEAKERS}|{LISTENERS}|{EMBEDDERS})).*worker\.ready")
            for asked, names in ((speech, SPEAKERS), (transcribe, LISTENERS), (embed, EMBEDDERS)):
                if asked != "off":
                    self.wait_for_line(rf"({names}).*worker\.ready")
        except BaseException:
            self.kill()  # or it would outlive the test that never got it
            raise

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def ws_url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/v1/ws"

    @property
    def output(self) -> str:
        with self._more:
            return "".join(self._lines)

    @property
    def worker(self) -> psutil.Process:
        """The one worker process."""
        (worker,) = self.workers
        return worker

    @property
    def workers(self) -> list[psutil.Process]:
        """One per model."""
        return psutil.Process(self.process.pid).children()

    def wait_for_line(self, pattern: str, seconds: float = START_SECONDS) -> re.Match[str]:
        """The first line, past or future, that matches."""
        deadline = time.monotonic() + seconds
        seen = 0
        with self._more:
            while True:
                for line in self._lines[seen:]:
                    if match := re.search(pattern, line):
                        return match
                seen = len(self._lines)
                left = deadline - time.monotonic()
                if left <= 0 or (self.process.poll() is not None and not self._reader.is_alive()):
                    raise AssertionError(f"no line matched {pattern!r}:\n{''.join(self._lines)}")
                self._more.wait(min(left, 0.5))

    def get(
        self, path: str, body: bytes | None = None, method: str = "GET", **headers: str
    ) -> tuple[int, str]:
        url = self.url + path
        request = urllib.request.Request(url, method=method, data=body, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def metric(self, name: str, **labels: str) -> float:
        return self.metrics()[name, frozenset(labels.items())]

    def metrics(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        shown = f"Bearer {self.token}"  # a server that asks for none takes any
        families = text_string_to_metric_families(self.get("/metrics", Authorization=shown)[1])
        samples = [sample for family in families for sample in family.samples]
        return {(s.name, frozenset(s.labels.items())): s.value for s in samples}

    def wait_until(self, condition: Callable[[], bool], seconds: float, what: str) -> float:
        """Ask again and again; returns how long it took. A server's gauges can only be polled."""
        begin = time.monotonic()
        tick = threading.Event()
        while not condition():
            if time.monotonic() - begin > seconds:
                raise AssertionError(f"not within {seconds} s: {what}\n{self.output[-3000:]}")
            tick.wait(0.01)
        return time.monotonic() - begin

    def wait_idle(self, seconds: float = 10.0) -> float:
        """Until no stream, slot or KV byte is held, by the gateway's and the engine's books."""
        return self.wait_until(self._idle, seconds, "everything given back")

    def _idle(self) -> bool:
        names = (
            "plait_streams_active",
            "plait_streams_queued",
            "plait_slots_used",
            "plait_engine_slots_used",
            "plait_kv_bytes",
            "plait_kv_reserved_bytes",
        )
        return all(value == 0 for (name, _), value in self.metrics().items() if name in names)

    def stop(self, seconds: float = 30.0) -> int:
        """Its exit status. Raises TimeoutExpired: nothing may hold it up for so long."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
        self._reader.join(10)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._more:
                self._lines.append(line)
                self._more.notify_all()


@contextlib.contextmanager
def live_server(
    engine: str = "scripted",
    speech: str = "off",
    transcribe: str = "off",
    embed: str = "off",
    **settings: object,
) -> Iterator[LiveServer]:
    """Also checks, at the end, that the gateway itself never printed a traceback."""
    server = LiveServer(engine, speech, transcribe, embed, **settings)
    try:
        yield server
        lines = [line for line in server.output.splitlines() if "worker.output" not in line]
        assert not any("Traceback" in line for line in lines), server.output[-5000:]
    finally:
        server.kill()
