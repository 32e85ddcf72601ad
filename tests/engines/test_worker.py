from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

import plait
from plait.engines import ipc
from plait.engines.base import (
    Cancel,
    Command,
    Event,
    Item,
    LoadFailed,
    Loading,
    LoadSpec,
    Ping,
    Pong,
    Prepared,
    Ready,
    Released,
    Shutdown,
    Start,
    UseCores,
)
from plait.machine_cores import core_ids
from tests.engines.bound import CAN_BIND, cpus_of
from tests.engines.recording import prepare, scripted_spec

WAIT_SECONDS = 60
SOURCE = str(Path(plait.__file__).parent.parent)
# A gateway that spawns a worker and waits for its own end.
GATEWAY = """
import socket, subprocess, sys, os
ours, theirs = socket.socketpair()
worker = subprocess.Popen(
    [sys.executable, "-m", "plait.engines.worker",
     "--fd", str(theirs.fileno()), "--parent", str(os.getpid())],
    pass_fds=[theirs.fileno()], start_new_session=True,
)
ours.sendall(bytes.fromhex(sys.argv[1]))
ours.recv(1)
print("loading", flush=True)
sys.stdin.read()
"""


class Peer:
    """A gateway by hand: one worker process, frames in and out."""

    def __init__(self) -> None:
        self.sock, theirs = socket.socketpair()
        self.sock.settimeout(WAIT_SECONDS)
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "plait.engines.worker"),
                *("--fd", str(theirs.fileno()), "--parent", str(os.getpid())),
            ],
            pass_fds=[theirs.fileno()],
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": SOURCE},
            start_new_session=True,
        )
        theirs.close()
        self._reader = ipc.FrameReader()
        self._events: list[Event] = []

    def send(self, *commands: Command | LoadSpec) -> None:
        self.sock.sendall(b"".join(map(ipc.encode_command, commands)))

    def expect(self, kind: type[Event]) -> Event:
        """Takes events up to the first of that type."""
        while True:
            while self._events:
                event = self._events.pop(0)
                if isinstance(event, kind):
                    return event
            data = self.sock.recv(65536)
            assert data, f"end of stream, waiting for {kind.__name__}"
            for payload in self._reader.feed(data):
                self._events += ipc.decode_events(payload)

    def end(self) -> tuple[int, str]:
        """Exit status and stderr."""
        _, errors = self.process.communicate(timeout=WAIT_SECONDS)
        return self.process.returncode, errors.decode()


@pytest.fixture
def peer() -> Iterator[Peer]:
    peer = Peer()
    yield peer
    peer.sock.close()
    peer.process.kill()
    peer.process.communicate()


@pytest.fixture
def ready_peer(peer: Peer) -> Peer:
    peer.send(scripted_spec())
    peer.expect(Ready)
    return peer


def test_the_first_word_comes_before_the_load(peer: Peer) -> None:
    peer.send(scripted_spec(load_hang=True))

    assert peer.expect(Loading) == Loading("starting", None)


def test_shutdown_ends_with_status_zero_and_nothing_on_stderr(ready_peer: Peer) -> None:
    ready_peer.send(prepare(1, "tokens=100000 step_ms=1"), Start(1))
    ready_peer.expect(Item)

    ready_peer.send(Shutdown())

    ready_peer.expect(Released)
    assert ready_peer.end() == (0, "")


def test_commands_sent_while_loading_are_not_lost(peer: Peer) -> None:
    peer.send(scripted_spec(load_seconds=0.2), prepare(1, "tokens=1"), Start(1))

    peer.expect(Ready)
    peer.expect(Prepared)
    assert isinstance(peer.expect(Released), Released)


@CAN_BIND
def test_it_loads_on_the_cpus_it_is_given_and_computes_on_those_it_is_told(peer: Peer) -> None:
    first, last = core_ids()[0], core_ids()[-1]
    peer.send(msgspec.structs.replace(scripted_spec(), cpus=[first]))
    peer.expect(Ready)
    assert cpus_of(peer.process.pid) == {first}

    peer.send(UseCores([last]), Ping(1))
    peer.expect(Pong)

    assert cpus_of(peer.process.pid) == {last}


def test_a_ping_is_answered_between_steps(ready_peer: Peer) -> None:
    ready_peer.send(prepare(1, "tokens=100000 step_ms=1"), Start(1), Ping(42))

    pong = ready_peer.expect(Pong)

    assert isinstance(pong, Pong)
    assert pong.n == 42


@pytest.mark.parametrize("script", ["tokens=100000 step_ms=1", "hang_at=1", "tokens=0"])
def test_end_of_file_ends_the_worker_whatever_it_does(ready_peer: Peer, script: str) -> None:
    ready_peer.send(prepare(1, script), Start(1))
    ready_peer.expect(Prepared)

    ready_peer.sock.close()

    assert ready_peer.end() == (0, "")


def test_end_of_file_ends_a_load(peer: Peer) -> None:
    peer.send(scripted_spec(load_hang=True))
    peer.expect(Loading)

    peer.sock.close()

    assert peer.end() == (0, "")


def test_end_of_file_before_the_first_frame_ends_it(peer: Peer) -> None:
    peer.sock.close()

    assert peer.end() == (0, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_gateway_alone_decides_when_it_stops(ready_peer: Peer, number: int) -> None:
    ready_peer.process.send_signal(number)

    ready_peer.send(prepare(1, "tokens=1"), Start(1))
    assert isinstance(ready_peer.expect(Released), Released)


def test_a_gateway_that_does_not_read_still_gets_its_cancel_flagged(ready_peer: Peer) -> None:
    ready_peer.send(prepare(1, "tokens=100000000 burst=500", max_tokens=10**9), Start(1))
    ready_peer.expect(Item)  # then read no more: the worker's send soon blocks

    ready_peer.send(Cancel(1, 0.0))

    end = ready_peer.expect(Released)
    assert isinstance(end, Released)


def test_a_crash_leaves_its_traceback_on_stderr_and_status_70(ready_peer: Peer) -> None:
    ready_peer.send(prepare(1, "raise_at=1"), Start(1))

    status, errors = ready_peer.end()

    assert status == 70
    assert "RuntimeError: the script asked for a crash after 1 tokens" in errors


def test_an_unreadable_command_is_a_crash(ready_peer: Peer) -> None:
    ready_peer.sock.sendall(ipc.encode_frame(b"\xc1"))

    status, errors = ready_peer.end()

    assert status == 70
    assert "FrameError" in errors


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (lambda: LoadSpec("nope", "m", 1, 10, 10), "There is no engine 'nope'"),
        (lambda: scripted_spec(load_fail="bad weights"), "bad weights"),
        (lambda: scripted_spec(load_raise="x"), "RuntimeError"),
    ],
)
def test_a_failed_load_is_reported_and_ends_orderly(
    peer: Peer, spec: Callable[[], LoadSpec], says: str
) -> None:
    peer.send(spec())

    failed = peer.expect(LoadFailed)

    assert isinstance(failed, LoadFailed)
    assert failed.fault.code == "model_load_failed"
    assert says in failed.fault.message
    assert peer.end()[0] == 0


def test_a_worker_dies_with_a_gateway_that_was_killed() -> None:
    spec = ipc.encode_command(scripted_spec(load_hang=True))
    gateway = subprocess.Popen(
        [sys.executable, "-c", GATEWAY, spec.hex()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": SOURCE},
    )
    assert gateway.stdout is not None
    assert gateway.stdout.readline() == b"loading\n"

    gateway.kill()

    # The worker inherited this pipe, so its end of file is the worker's end.
    assert gateway.stdout.read() == b""
    gateway.communicate()
