"""A bench that is killed outright leaves no server behind, whatever it was at."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import psutil
import pytest

from tests.live.server import SERVER, START_SECONDS

END_SECONDS = 60.0  # it takes about one
ENDLESS = {
    "cancel": ["--engine=scripted", "--cancels=100000"],
    "soak": ["--engine=scripted", "--methods", "chat", "embed", "--minutes=60"],
    "gateway": ["--only=rate", "--many=4", "--seconds=0.5", "--rounds=1000"],
}

Processes = list[psutil.Process]
Look = Callable[[psutil.Process], Processes]


@contextlib.contextmanager
def running(kind: str) -> Iterator[psutil.Process]:
    with subprocess.Popen(
        [sys.executable, "-m", "plait", "bench", kind, *ENDLESS[kind]],
        env={**os.environ, "PYTHONPATH": str(SERVER)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        bench = psutil.Process(process.pid)
        try:
            yield bench
        finally:
            for each in [*bench.children(recursive=True), bench] if bench.is_running() else []:
                each.kill()


def wait_for(look: Look, bench: psutil.Process) -> Processes:
    """What it finds below `bench`, as soon as it finds anything."""
    until, tick = time.monotonic() + START_SECONDS, threading.Event()
    while not (found := look(bench)):
        assert time.monotonic() < until, "the bench does not get to its work"
        tick.wait(0.01)
    return found


def server_that_starts(bench: psutil.Process) -> Processes:
    return bench.children()


def server_at_work(bench: psutil.Process) -> Processes:
    """The server that `bench` is connected to, with its workers; nothing before that."""
    for child in bench.children():
        with contextlib.suppress(psutil.NoSuchProcess):
            connections = child.net_connections("tcp")
            if any(each.status == psutil.CONN_ESTABLISHED for each in connections):
                return [child, *workers] if (workers := child.children(recursive=True)) else []
    return []


def servers_of_which_one_is_frozen(bench: psutil.Process) -> Processes:
    """All below `bench`, as soon as one of them is."""
    below = bench.children(recursive=True)
    with contextlib.suppress(psutil.NoSuchProcess):
        if any(each.status() == psutil.STATUS_STOPPED for each in below):
            return below
    return []


def alive(processes: Processes) -> Processes:
    """One that nobody reaps is gone all the same."""
    found = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def survivors(processes: Processes) -> Processes:
    """Who has not ended in time; none of them is left to the next test."""
    until, tick = time.monotonic() + END_SECONDS, threading.Event()
    while (left := alive(processes)) and time.monotonic() < until:
        tick.wait(0.05)
    for process in left:
        process.kill()
    return left


@pytest.mark.parametrize(
    ("kind", "look"),
    [
        ("cancel", server_that_starts),
        ("cancel", server_at_work),
        ("soak", server_at_work),
        ("gateway", servers_of_which_one_is_frozen),
    ],
    ids=lambda each: each if isinstance(each, str) else each.__name__,
)
def test_a_bench_killed_outright_takes_its_servers_and_their_workers_with_it(
    kind: str, look: Look
) -> None:
    with running(kind) as bench:
        servers_and_workers = wait_for(look, bench)
        bench.kill()
        left = survivors(servers_and_workers)
    assert left == []


@contextlib.contextmanager
def tethered() -> Iterator[subprocess.Popen[str]]:
    """A server that has said where it listens; we hold its stdin and read what it says."""
    engines = [f"--{kind}-engine=off" for kind in ("speech", "transcribe", "embed")]
    command = ["plait.bench.tethered", "serve", "--no-open", "--port=0", "--chat-engine=scripted"]
    with subprocess.Popen(
        [sys.executable, "-m", *command, *engines],
        env={**os.environ, "PYTHONPATH": str(SERVER)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("Plait serves")
            yield process
        finally:
            process.kill()


def test_the_end_of_its_stdin_ends_a_server_in_order() -> None:
    with tethered() as server:
        said, _ = server.communicate(timeout=END_SECONDS)
    assert (server.returncode, said.splitlines()[-1]) == (0, "Stopped.")


def test_it_ends_in_order_also_when_nobody_reads_any_more_what_it_says() -> None:
    with tethered() as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdout.close()
        server.stdin.close()
        assert server.wait(END_SECONDS) == 0
