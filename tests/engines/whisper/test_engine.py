"""The whisper adapter with real processes and scripted ears, forked and spawned."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from plait.engines.base import Consumed, Failed, Feed, Item, Prepare, Released
from plait.engines.whisper.capacity import STREAMS_PER_SLOT
from plait.errors import InputOverflow, InvalidRequest, UnsupportedMethod
from tests.engines.whisper.rig import PARAMS, Rig, running, whisper_spec

ISOLATIONS = ["fork", "spawn"]
SAMPLE_MS = 1 / 16


@pytest.fixture(scope="module", params=ISOLATIONS)
def shared(request: pytest.FixtureRequest) -> Iterator[Rig]:
    """Spawned processes take long to start, so one adapter serves all tests."""
    with running(whisper_spec(request.param)) as rig:
        yield rig


@pytest.fixture
def rig(shared: Rig) -> Iterator[Rig]:
    """Holding nothing, before and after."""
    shared.told.clear()
    shared.opened.clear()
    shared.flags.stamps.clear()
    yield shared
    for job in shared.live:
        shared.cancel(job)
    shared.step_until(lambda: not shared.live)
    assert shared.engine.stats().slots_used == shared.engine.stats().kv_bytes == 0
    assert shared.engine.idle


def test_words_become_items_then_an_end_then_the_release(rig: Rig) -> None:
    rig.open(1, "and so my fellow", end=True)
    rig.wait_released(1)

    assert rig.text(1) == "and so my fellow"
    assert rig.ends(1) == ["finished", "released"]
    (release,) = rig.of_kind(Released)
    assert (release.wasted, release.usage) == (0, {"audio_ms": int(17 / 2 * SAMPLE_MS)})


def test_what_was_consumed_adds_up_to_what_was_fed(rig: Rig) -> None:
    rig.open(1)
    for number in range(50):
        rig.say(1, f"word{number:02}")
    rig.engine.finish_input(1)
    rig.wait_released(1)

    assert sum(event.bytes for event in rig.of_kind(Consumed, 1)) == 50 * 7
    assert rig.text(1).split() == [f"word{number:02}" for number in range(50)]


def test_input_before_the_start_is_not_lost(rig: Rig) -> None:
    rig.engine.prepare(Prepare(1, "transcribe", {"sample_rate": 16_000}, scope="test"))
    rig.say(1, "early birds")
    rig.engine.finish_input(1)
    rig.engine.start(1)
    rig.wait_released(1)

    assert rig.text(1) == "early birds"


def test_a_later_revision_of_an_item_carries_its_number(rig: Rig) -> None:
    rig.open(1, "one")
    rig.wait_words(1, "one")
    rig.say(1, "two")
    rig.wait_words(1, "two")

    assert [(item.revises, item.units) for item in rig.of_kind(Item, 1)] == [(1, 1), (2, 1)]


def test_texts_of_many_streams_at_once_never_mix(rig: Rig) -> None:
    for job in range(1, 9):
        rig.open(job)
    for turn in range(20):
        for job in range(1, 9):
            rig.say(job, f"{job}-{turn}")
    for job in range(1, 9):
        rig.engine.finish_input(job)
    rig.wait_released(*range(1, 9))

    for job in range(1, 9):
        assert rig.text(job).split() == [f"{job}-{turn}" for turn in range(20)]
        assert len({item["pid"] for item in rig.items(job)}) == 1


def test_no_more_streams_decode_at_once_than_there_are_cores(rig: Rig) -> None:
    for job in range(1, 7):
        rig.open(job, "spin=0.05", end=True)
    rig.wait_released(*range(1, 7))

    spans = [(item["begin"], item["end"]) for job in range(1, 7) for item in rig.items(job)]
    for begin, _ in spans:
        assert sum(other[0] <= begin < other[1] for other in spans) <= 2


def test_it_is_busy_while_decodes_hold_cores_and_not_while_streams_are_silent(
    rig: Rig, tmp_path: Path
) -> None:
    gates = [tmp_path / "1", tmp_path / "2"]
    for job, gate in enumerate(gates, 1):
        rig.open(job, f"gate={gate}", end=True)
        rig.wait_begun(gate)

    rig.now += 2.0
    for gate in gates:
        gate.touch()
    rig.wait_released(1, 2)
    rig.open(3)
    rig.now += 5.0

    assert rig.engine.stats().busy_seconds == 4.0


def test_a_closing_decode_goes_before_those_that_wait_longer(rig: Rig, tmp_path: Path) -> None:
    gates = [tmp_path / "1", tmp_path / "2"]
    for job, gate in enumerate(gates, 1):
        rig.open(job, f"gate={gate}", end=True)
        rig.wait_begun(gate)
    for job in (3, 4):
        rig.open(job, "spin=0.05")
        rig.wait_permit(job, "WANTED")
    rig.open(5, "closing spin=0.05")
    rig.wait_permit(5, "WANTED_TO_CLOSE")

    gates[0].touch()
    rig.wait_words(4, "spin")

    begins = [rig.items(job)[0]["begin"] for job in (5, 3, 4)]
    assert begins == sorted(begins)
    gates[1].touch()


def test_what_comes_while_a_stream_waits_for_a_core_is_decoded_with_the_rest(
    rig: Rig, tmp_path: Path
) -> None:
    gates = [tmp_path / "1", tmp_path / "2"]
    for job, gate in enumerate(gates, 1):
        rig.open(job, f"gate={gate}", end=True)
        rig.wait_begun(gate)
    rig.open(3)
    for word in ("one", "two", "three"):
        rig.say(3, word)
        rig.wait_permit(3, "WANTED")
    rig.step_until(lambda: sum(e.bytes for e in rig.of_kind(Consumed, 3)) == len("one two three "))
    for gate in gates:
        gate.touch()
    rig.wait_words(3, "three")

    assert [item["words"] for item in rig.items(3)] == ["one two three"]


# --- ends ---------------------------------------------------------------------------------------


def test_a_cancel_in_a_decode_ends_it_and_nothing_more_is_told(rig: Rig, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    rig.open(1, "said")
    pid = rig.wait_words(1, "said")["pid"]
    rig.say(1, f"gate={gate}")
    rig.wait_begun(gate)

    rig.cancel(1)
    rig.wait_released(1)

    assert rig.ends(1) == ["released"]
    assert rig.of_kind(Released, 1)[0].wasted == 0
    assert rig.text(1) == "said"
    assert not computes(pid)


def test_a_process_that_hears_nothing_is_killed(rig: Rig, tmp_path: Path) -> None:
    deaf = tmp_path / "deaf"
    rig.open(1, "hello")
    pid = rig.wait_words(1, "hello")["pid"]
    rig.say(1, f"deaf={deaf}")
    rig.wait_begun(deaf)

    rig.cancel(1)
    rig.wait_released(1)

    assert not computes(pid)


def computes(pid: int) -> bool:
    """A spawned process that is free waits for its next stream; a dead one does nothing."""
    try:
        process = psutil.Process(pid)
        return process.status() == psutil.STATUS_RUNNING and process.cpu_percent(0.1) > 50
    except psutil.NoSuchProcess:
        return False


def test_a_cancel_before_the_start_holds_and_tells_nothing(rig: Rig) -> None:
    before = {child.pid for child in rig.processes()}
    rig.engine.prepare(Prepare(1, "transcribe", {"sample_rate": 16_000}, scope="test"))
    rig.say(1, "nobody hears this")

    rig.cancel(1)
    rig.engine.interrupt()

    assert rig.engine.step() == []
    assert {child.pid for child in rig.processes()} == before
    assert rig.engine.idle


@pytest.mark.parametrize("count", [1, 2])
def test_cancels_are_idempotent_also_right_after_the_start(rig: Rig, count: int) -> None:
    rig.open(1, "never")
    for _ in range(count):
        rig.cancel(1)
    rig.cancel(99)
    rig.wait_released(1)

    assert rig.ends(1) == ["released"]


def test_a_cancel_frees_the_core_for_who_waits(rig: Rig, tmp_path: Path) -> None:
    gates = [tmp_path / "1", tmp_path / "2"]
    for job, gate in enumerate(gates, 1):
        rig.open(job, f"gate={gate}")
        rig.wait_begun(gate)
    rig.open(3, "next", end=True)
    rig.wait_permit(3, "WANTED")

    rig.cancel(1)
    rig.wait_released(3)

    assert rig.text(3) == "next"


@pytest.mark.parametrize(
    ("word", "code"),
    [
        ("kill=9", "engine_crashed"),
        ("kill=11", "generation_failed"),
        ("exit=3", "generation_failed"),
        ("raise", "generation_failed"),
        ("memory", "out_of_memory"),
        ("invalid", "invalid_audio"),
    ],
)
def test_what_breaks_a_stream_is_told_and_is_that_streams_alone(
    rig: Rig, word: str, code: str
) -> None:
    rig.open(1, "good")
    rig.open(2, "fine")
    rig.wait_words(1, "good")
    rig.wait_words(2, "fine")

    rig.say(1, word)
    rig.wait_released(1)
    rig.say(2, "still")
    rig.engine.finish_input(2)
    rig.wait_released(2)

    assert rig.ends(1) == [code, "released"]
    assert "secret" not in rig.of_kind(Failed, 1)[0].fault.message
    assert (rig.text(1), rig.text(2)) == ("good", "fine still")


def test_a_process_killed_from_outside_is_told_and_its_core_is_free(
    rig: Rig, tmp_path: Path
) -> None:
    rig.open(1, "hello")
    pid = rig.wait_words(1, "hello")["pid"]
    rig.say(1, f"gate={tmp_path / 'gate'}")
    rig.wait_begun(tmp_path / "gate")

    psutil.Process(pid).kill()
    rig.wait_released(1)
    for job in (2, 3):
        rig.open(job, f"after{job}", end=True)
    rig.wait_released(2, 3)

    assert rig.ends(1) == ["engine_crashed", "released"]
    assert (rig.text(2), rig.text(3)) == ("after2", "after3")


# --- pauses -------------------------------------------------------------------------------------


def test_a_paused_stream_is_stopped_in_its_decode_and_goes_on_where_it_was(
    rig: Rig, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    rig.open(1, "before")
    process = psutil.Process(rig.wait_words(1, "before")["pid"])
    rig.say(1, f"gate={gate}")
    rig.wait_begun(gate)

    rig.engine.pause(1)
    rig.wait_for(lambda: process.status() == psutil.STATUS_STOPPED, "it rests")
    gate.touch()
    assert rig.engine.stats().slots_used == 0
    rig.engine.resume(1)
    rig.engine.finish_input(1)
    rig.wait_released(1)

    assert rig.ends(1) == ["finished", "released"]
    assert rig.text(1) == f"before gate={gate}"


def test_a_pause_gives_the_core_to_others_and_a_resume_waits_for_one(
    rig: Rig, tmp_path: Path
) -> None:
    gates = {job: tmp_path / str(job) for job in (1, 2, 3)}
    for job in (1, 2):
        rig.open(job, f"gate={gates[job]}", end=True)
        rig.wait_begun(gates[job])
    rig.open(3, f"gate={gates[3]}", end=True)

    rig.engine.pause(1)
    rig.wait_begun(gates[3])  # it has the core of 1 now
    rig.engine.resume(1)
    gates[1].touch()
    gates[3].touch()
    rig.wait_released(1, 3)

    assert rig.items(1)[0]["end"] >= rig.items(3)[0]["end"]
    gates[2].touch()


def test_what_was_fed_to_a_paused_stream_is_heard_when_it_goes_on(rig: Rig) -> None:
    rig.open(1, "one")
    rig.wait_words(1, "one")
    rig.engine.pause(1)
    rig.engine.pause(1)
    rig.say(1, "two")
    rig.engine.finish_input(1)
    rig.open(2, "meanwhile", end=True)
    rig.wait_released(2)

    rig.engine.resume(1)
    rig.wait_released(1)

    assert rig.text(1) == "one two"


def test_a_paused_stream_can_be_cancelled(rig: Rig, tmp_path: Path) -> None:
    rig.open(1, f"gate={tmp_path / 'gate'}")
    rig.wait_begun(tmp_path / "gate")
    rig.engine.pause(1)

    rig.cancel(1)
    rig.wait_released(1)

    assert rig.ends(1) == ["released"]


def test_many_pauses_at_any_moment_lose_nothing(rig: Rig) -> None:
    rig.open(1)
    for number in range(40):
        rig.say(1, f"w{number} spin=0.001")
        rig.engine.interrupt()
        rig.told += rig.engine.step()
        rig.engine.pause(1)
        rig.engine.interrupt()
        rig.told += rig.engine.step()
        rig.engine.resume(1)
    rig.engine.finish_input(1)
    rig.wait_released(1)

    words = [word for word in rig.text(1).split() if word.startswith("w")]
    assert words == [f"w{number}" for number in range(40)]


# --- input --------------------------------------------------------------------------------------


def test_a_stream_that_used_up_its_input_says_so_once_per_wait(rig: Rig) -> None:
    rig.open(1, "one")
    rig.step_until(lambda: rig.starved(1) == 1)
    rig.say(1, "two")
    rig.step_until(lambda: rig.starved(1) == 2)

    assert rig.text(1) == "one two"


def test_a_stream_whose_input_ended_never_starves(rig: Rig, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    rig.open(1, f"gate={gate}", end=True)
    rig.wait_begun(gate)
    gate.touch()
    rig.wait_released(1)

    assert rig.starved(1) == 0


def test_more_than_a_socket_holds_waits_for_a_busy_stream(rig: Rig, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    rig.open(1, f"gate={gate}")
    rig.wait_begun(gate)
    flood = f"{'x' * 999} " * 4000

    rig.engine.feed(Feed(1, audio=flood.encode()))
    rig.engine.finish_input(1)
    gate.touch()
    rig.wait_released(1)

    assert sum(e.bytes for e in rig.of_kind(Consumed, 1)) == len(flood) + len(f"gate={gate} ")
    assert rig.text(1).count("x" * 999) == 4000


def test_what_no_credit_allows_is_refused(rig: Rig, tmp_path: Path) -> None:
    rig.open(1, f"gate={tmp_path / 'gate'}")
    rig.wait_begun(tmp_path / "gate")
    rig.engine.feed(Feed(1, audio=bytes(15 * 1024 * 1024)))

    with pytest.raises(InputOverflow) as refused:
        rig.engine.feed(Feed(1, audio=bytes(2 * 1024 * 1024)))

    assert refused.value.data is not None
    assert refused.value.data["received_bytes"] > refused.value.data["credit_bytes"]


def test_audio_after_the_end_is_refused(rig: Rig, tmp_path: Path) -> None:
    rig.open(1, f"gate={tmp_path / 'gate'}", end=True)

    with pytest.raises(InvalidRequest):
        rig.say(1, "more")


# --- what it promises ---------------------------------------------------------------------------


def test_a_command_wakes_a_step(rig: Rig) -> None:
    rig.open(1)
    rig.engine.interrupt()

    assert rig.engine.step() == []
    assert not rig.engine.idle


def test_what_it_does_not_do_is_refused(rig: Rig) -> None:
    with pytest.raises(UnsupportedMethod):
        rig.engine.prepare(Prepare(1, "chat", {}, scope="test"))
    with pytest.raises(InvalidRequest) as language:
        rig.engine.prepare(Prepare(1, "transcribe", {**PARAMS, "language": "tlh"}, scope="test"))
    with pytest.raises(InvalidRequest):
        rig.engine.prepare(Prepare(1, "transcribe", {}, scope="test"))

    assert language.value.param == "language"
    assert "it knows en" in language.value.message


def test_each_stream_is_booked_with_what_it_holds(rig: Rig) -> None:
    info = rig.engine.info
    booked = rig.engine.prepare(Prepare(2, "transcribe", PARAMS, scope="test")).reserve_bytes
    rig.engine.cancel(2)
    rig.open(1)

    assert info.methods == ["transcribe"]
    assert info.kv_budget_bytes == info.slots * STREAMS_PER_SLOT * booked
    assert rig.engine.stats().kv_bytes == booked
    assert rig.engine.stats().slots_used == 1


def test_a_hundred_cancels_leave_no_process_and_no_descriptor(rig: Rig, tmp_path: Path) -> None:
    def cancel_some(first: int, count: int) -> tuple[int, int, int]:
        for job in range(first, first + count):
            rig.open(job, "word spin=0.01" if job % 2 else f"gate={tmp_path / str(job)}")
            if job % 4 == 0:
                rig.wait_begun(tmp_path / str(job))
            rig.cancel(job)
            rig.wait_released(job)
        children = len(rig.processes())
        return children, psutil.Process().num_fds(), rig.zygote.num_fds()

    before = cancel_some(1, 10)
    after = cancel_some(11, 100)

    # Of spawned processes that were kept, some may have been killed.
    assert all(now <= then for now, then in zip(after, before, strict=True)), (before, after)
