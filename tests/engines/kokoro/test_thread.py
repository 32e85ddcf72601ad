"""The engine answers while a window is computed in its thread, which a test may hold up."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from plait.engines.base import Finished
from plait.engines.computing import ComputingThread
from plait.engines.kokoro.engine import STALLED_SECONDS
from tests.engines.kokoro.rig import NoThread, SpeechRig, ToySynthesizer, make_rig

TEXT = "well, this is a sentence. and here comes another one! "
WAIT_SECONDS = 60


@pytest.fixture
def synthesizer() -> ToySynthesizer:
    return ToySynthesizer()


@pytest.fixture
def rig(tmp_path: Path, synthesizer: ToySynthesizer) -> Iterator[SpeechRig]:
    rig = make_rig(tmp_path, synthesizer, ComputingThread())
    yield rig
    rig.engine.close()


class Gate:
    """Holds the computing thread up in the midst of a window."""

    def __init__(self, rig: SpeechRig, synthesizer: ToySynthesizer) -> None:
        self._rig = rig
        self._model = synthesizer.model
        self._inside = threading.Event()
        self._open = threading.Event()

    def close(self) -> None:
        """Step until a window is under way, and hold it there."""
        self._model.during = self._hold
        self._rig.step_until(self._inside.is_set)

    def _hold(self) -> None:
        self._inside.set()
        assert self._open.wait(WAIT_SECONDS)

    def open(self) -> None:
        self._model.during = lambda: None
        self._open.set()


@pytest.fixture
def gate(rig: SpeechRig, synthesizer: ToySynthesizer) -> Iterator[Gate]:
    gate = Gate(rig, synthesizer)
    yield gate
    gate.open()  # else a failed test would never end


def test_a_job_is_released_while_anothers_window_is_computed(rig: SpeechRig, gate: Gate) -> None:
    alone = rig.say(TEXT)
    goes = rig.start()  # waits for text
    stays = rig.start(TEXT)
    gate.close()

    rig.cancel(goes)
    rig.step()

    assert goes in rig.released
    gate.open()
    rig.finish()
    assert rig.pcm(stays) == alone


def test_a_job_is_released_once_its_own_window_is_given_up(rig: SpeechRig, gate: Gate) -> None:
    job = rig.start(TEXT)
    gate.close()

    rig.cancel(job)
    rig.step()
    assert job not in rig.released  # something is still computed for it
    assert rig.engine.stats().slots_used == 1
    gate.open()
    rig.finish()

    assert job in rig.released
    assert rig.engine.stats().slots_used == 0
    assert not rig.frames(job)


def test_a_step_does_not_wait_for_a_window_when_a_command_comes(rig: SpeechRig, gate: Gate) -> None:
    rig.start(TEXT)
    gate.close()

    rig.engine.interrupt()

    assert rig.step() == []
    assert not rig.engine.idle


def test_another_job_may_come_meanwhile(rig: SpeechRig, gate: Gate) -> None:
    first = rig.start(TEXT)
    gate.close()

    second = rig.start(TEXT)
    gate.open()
    rig.finish()

    assert rig.pcm(first) == rig.pcm(second) != b""


def test_what_breaks_in_the_thread_ends_its_job(rig: SpeechRig) -> None:
    job, other = rig.start("qqq."), rig.start(TEXT)
    rig.finish()

    assert job in rig.released
    assert isinstance(rig.ends[other], Finished)


def test_the_end_waits_for_the_window_under_way(rig: SpeechRig, gate: Gate) -> None:
    rig.start(TEXT)
    gate.close()
    before = threading.active_count()
    gate.open()

    rig.engine.close()

    assert threading.active_count() == before - 1


class StuckThread(NoThread):
    def wait(self, seconds: float) -> bool:
        return False


def test_a_window_that_never_ends_is_a_crash(tmp_path: Path) -> None:
    now = 0.0
    rig = make_rig(tmp_path, ToySynthesizer(), StuckThread(), clock=lambda: now)
    rig.start(TEXT)
    for _ in range(100):
        rig.step()

    now = STALLED_SECONDS + 1
    with pytest.raises(RuntimeError, match="under way"):
        rig.step()


def test_cancels_at_any_moment_give_one_release_each_and_leave_nothing(rig: SpeechRig) -> None:
    alone = rig.say(TEXT)
    for round_ in range(60):
        stays, goes = rig.start(TEXT), rig.start(TEXT)
        for _ in range(round_ % 20):
            rig.step()
        rig.cancel(goes)
        rig.finish()

        assert goes in rig.released
        assert rig.pcm(stays) == alone
    assert rig.engine.stats().kv_bytes == 0
