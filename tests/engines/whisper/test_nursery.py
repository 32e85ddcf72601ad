"""The zygote as the kernel sees it: what it is, what its streams hold, and how all of them end."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from plait.engines.whisper.capacity import MOST_SLOTS
from plait.engines.whisper.ears import WHISPER, load_ears
from plait.engines.whisper.faults import death_of
from plait.engines.whisper.loading import load_streams
from plait.engines.whisper.messages import Audio, Gone, Listen, Load, frame
from plait.engines.whisper.nursery import Nursery, ZygoteDied
from plait.errors import ModelLoadFailed
from tests.engines.whisper.rig import EARS, PARAMS, whisper_spec

WAIT_SECONDS = 30
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel of Linux")


@pytest.fixture(params=["fork", "spawn"])
def isolation(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@contextlib.contextmanager
def loaded(isolation: str = "fork", ears: str = f"{EARS}:ears") -> Iterator[Nursery]:
    nursery = Nursery(Load("", ears, isolation))
    try:
        assert nursery.load(lambda phase, percent: None) is False
        yield nursery
    finally:
        nursery.close()


def take_gone(nursery: Nursery, *jobs: int) -> dict[int, int | None]:
    """Until all of them are: their statuses."""
    statuses: dict[int, int | None] = {}
    while not set(jobs) <= statuses.keys():
        for message in nursery.receive():
            assert isinstance(message, Gone)
            statuses[message.job] = message.status
    return statuses


def listening(nursery: Nursery, job: int) -> socket.socket:
    """Our end of a stream that lives: it has said that it took something."""
    sock = nursery.open(job)
    sock.settimeout(WAIT_SECONDS)
    sock.sendall(frame(Listen(PARAMS)) + frame(Audio(memoryview(b"hello "), 0.0)))
    assert sock.recv(1024)
    return sock


def streams_of(nursery: Nursery) -> list[psutil.Process]:
    return psutil.Process(nursery.pid).children()


def wait_ended(*processes: psutil.Process) -> None:
    _, alive = psutil.wait_procs(processes, WAIT_SECONDS)
    assert not alive


@on_linux
def test_the_zygote_has_one_thread_also_after_forks() -> None:
    with loaded() as nursery:
        socks = [listening(nursery, job) for job in (1, 2)]

        assert psutil.Process(nursery.pid).num_threads() == 1
        for sock in socks:
            sock.close()


@on_linux
def test_a_stream_holds_its_socket_and_nothing_else_of_the_zygotes() -> None:
    with loaded() as nursery, listening(nursery, 1), listening(nursery, 2):
        children = streams_of(nursery)

        held = [sorted(map(int, os.listdir(f"/proc/{child.pid}/fd"))) for child in children]

    assert len(held) == 2
    assert all(len(fds) == 4 and fds[:3] == [0, 1, 2] for fds in held)


@on_linux
def test_out_of_memory_streams_go_first_then_the_zygote() -> None:
    def score(pid: int) -> int:
        return int(Path(f"/proc/{pid}/oom_score_adj").read_text())

    with loaded() as nursery, listening(nursery, 1):
        (child,) = streams_of(nursery)

        assert score(os.getpid()) < score(nursery.pid) < score(child.pid)


def test_a_kill_is_confirmed_when_the_process_is_gone() -> None:
    with loaded() as nursery, listening(nursery, 1):
        nursery.kill(1)

        assert take_gone(nursery, 1) == {1: -signal.SIGKILL}
        assert streams_of(nursery) == []


def test_kills_of_who_is_gone_or_never_was_mean_nothing(isolation: str) -> None:
    with loaded(isolation) as nursery, nursery.open(1), nursery.open(2):
        nursery.kill(1)
        take_gone(nursery, 1)
        for job in (1, 99):
            nursery.kill(job)
            nursery.stop(job)
            nursery.go(job)
        nursery.kill(2)

        assert set(take_gone(nursery, 2)) == {2}


def test_a_stream_that_nobody_waits_for_any_more_ends_by_itself(isolation: str) -> None:
    with loaded(isolation) as nursery:
        nursery.open(1).close()

        assert take_gone(nursery, 1) == {1: 0}


def test_a_stopped_stream_can_be_killed(isolation: str) -> None:
    with loaded(isolation) as nursery, listening(nursery, 1):
        nursery.stop(1)
        nursery.kill(1)

        assert set(take_gone(nursery, 1)) == {1}


def test_all_end_when_the_adapter_closes(isolation: str) -> None:
    with loaded(isolation) as nursery:
        socks = [listening(nursery, job) for job in (1, 2)]
        zygote = psutil.Process(nursery.pid)
        everybody = [zygote, *zygote.children()]

    wait_ended(*everybody)
    for sock in socks:
        sock.close()


@on_linux
def test_streams_die_with_a_zygote_that_is_killed(isolation: str) -> None:
    with loaded(isolation) as nursery, listening(nursery, 1):
        zygote = psutil.Process(nursery.pid)
        everybody = [zygote, *zygote.children()]

        zygote.kill()

        wait_ended(*everybody)
        with pytest.raises(ZygoteDied):
            nursery.receive()
        with pytest.raises(ZygoteDied):
            nursery.kill(1)


@on_linux
def test_the_zygote_dies_with_an_adapter_that_is_killed() -> None:
    adapter = subprocess.Popen(
        [sys.executable, "-c", ADAPTER], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert adapter.stdout is not None
    zygote = psutil.Process(int(adapter.stdout.readline()))
    everybody = [zygote, *zygote.children()]

    adapter.kill()
    adapter.communicate()

    wait_ended(*everybody)


ADAPTER = f"""
import sys, time
sys.path[:0] = {sys.path!r}
from plait.engines.whisper.messages import Audio, Listen, Load, frame
from plait.engines.whisper.nursery import Nursery
nursery = Nursery(Load("", "{EARS}:ears", "fork"))
nursery.load(lambda phase, percent: None)
sock = nursery.open(1)
sock.setblocking(True)
sock.sendall(frame(Listen({{"sample_rate": 16000}})) + frame(Audio(memoryview(b"hello "), 0.0)))
sock.recv(1024)
print(nursery.pid, flush=True)
time.sleep(600)
"""


def test_no_stray_signal_ends_them() -> None:
    with loaded() as nursery, listening(nursery, 1):
        for process in (psutil.Process(nursery.pid), *streams_of(nursery)):
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                process.send_signal(number)
        nursery.open(2).close()

        assert take_gone(nursery, 2) == {2: 0}
        nursery.kill(1)
        assert take_gone(nursery, 1) == {1: -signal.SIGKILL}


def test_its_death_is_told_whatever_we_do_then() -> None:
    ours, theirs = socket.socketpair()
    with loaded() as nursery, ours, theirs:
        nursery.watch(lambda: theirs.sendall(b"!"))
        psutil.Process(nursery.pid).kill()

        ours.settimeout(WAIT_SECONDS)
        assert ours.recv(1) == b"!"


def test_an_end_that_was_asked_for_is_not_told() -> None:
    deaths: list[str] = []
    with loaded() as nursery:
        nursery.watch(lambda: deaths.append("died"))

    assert deaths == []


def test_without_a_number_of_slots_it_is_measured() -> None:
    told: list[str] = []
    nursery, facts = load_streams(whisper_spec(slots=0), lambda phase, _: told.append(phase))
    nursery.close()

    assert facts.slots == MOST_SLOTS  # these ears decode in no time
    assert told == ["starting", "reading weights", "measuring"]


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (None, "out_of_memory"),
        (-9, "engine_crashed"),
        (-11, "generation_failed"),
        (1, "generation_failed"),
    ],
)
def test_how_a_process_ended_is_what_its_peer_is_told(status: int | None, code: str) -> None:
    assert death_of(status).code == code


# --- loads that fail ----------------------------------------------------------------------------


def load_fails(isolation: str, ears: str, weights: str = "") -> ModelLoadFailed:
    me = psutil.Process()
    before, others = me.num_fds(), set(me.children())
    spec = whisper_spec(isolation)
    spec.weights = weights
    spec.options["ears"] = ears
    with pytest.raises(ModelLoadFailed) as failed:
        load_streams(spec, lambda phase, percent: None)
    assert set(me.children()) <= others
    assert me.num_fds() <= before
    return failed.value


def test_weights_of_no_use_are_told_as_such(isolation: str) -> None:
    failed = load_fails(isolation, f"{EARS}:refusing")

    assert failed.message == "These weights are of no use; take others."


@pytest.mark.parametrize("ears", ["dying", "undecoding"])
def test_a_process_that_dies_while_loading_is_a_failed_load(isolation: str, ears: str) -> None:
    failed = load_fails(isolation, f"{EARS}:{ears}")

    assert "erify the model" in failed.message


def test_a_missing_file_is_a_failed_load_that_names_no_path(tmp_path: Path) -> None:
    failed = load_fails("fork", WHISPER, str(tmp_path / "gone.bin"))

    assert "pull the model again" in failed.message
    assert str(tmp_path) not in failed.message


@pytest.mark.parametrize("damage", [b"", b"lmgg", b"GGUF", b"lmgg" + bytes(10_000)])
def test_a_damaged_file_is_refused_before_the_library_sees_it(
    tmp_path: Path, damage: bytes
) -> None:
    weights = tmp_path / "ggml.bin"
    weights.write_bytes(damage)

    with pytest.raises(ModelLoadFailed, match="damaged"):
        load_ears(WHISPER, str(weights), None)
