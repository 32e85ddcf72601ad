"""Several speech jobs in one engine: turns, pauses, cancels, and what is left after them."""

from __future__ import annotations

import gc
import time
import weakref
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from plait.engines.base import Finished, Prepare
from plait.engines.kokoro.voices import PACK_BYTES
from plait.errors import InvalidRequest, UnsupportedMethod, VoiceNotFound
from plait.wire.messages import Format
from tests.engines.kokoro.rig import HELD_BYTES, SpeechRig, ToySynthesizer, make_rig

TEXT = "well, this is a sentence. and here comes another one! "
LONG = "a sentence that is rather long and goes on and on for quite a while. " * 3


@pytest.fixture
def synthesizer() -> ToySynthesizer:
    return ToySynthesizer()


@pytest.fixture
def rig(tmp_path: Path, synthesizer: ToySynthesizer) -> SpeechRig:
    return make_rig(tmp_path, synthesizer)


def assert_empty(rig: SpeechRig) -> None:
    stats = rig.engine.stats()
    assert (stats.slots_used, stats.kv_bytes) == (0, 0)
    assert rig.engine.idle
    assert rig.step() == []


def test_it_says_what_it_is(rig: SpeechRig) -> None:
    info = rig.engine.info

    assert (info.methods, info.slots) == (["synthesize"], 4)
    assert info.format == Format("pcm_s16le", 24_000, 1)


def test_parallel_jobs_say_what_each_says_alone_in_turns_of_a_window(
    tmp_path: Path, synthesizer: ToySynthesizer
) -> None:
    ticks = count(0.0, 10.0)  # so slow a machine that everybody always has little in hand
    rig = make_rig(tmp_path, synthesizer, clock=lambda: next(ticks))
    texts = [f"{LONG} {number * 'x'}." for number in range(4)]
    alone = [rig.say(text) for text in texts]
    rig.order.clear()

    jobs = [rig.start(text) for text in texts]
    rig.finish()

    assert [rig.pcm(job) for job in jobs] == alone
    assert sorted(rig.order[8:12]) == jobs
    assert rig.order[8:40] == rig.order[8:12] * 8


def test_who_has_little_in_hand_catches_up_with_who_has_much(
    tmp_path: Path, synthesizer: ToySynthesizer
) -> None:
    rig = make_rig(tmp_path, synthesizer, clock=lambda: 0.0)  # so fast a machine
    old = rig.start(LONG)
    rig.step_until(lambda: len(rig.frames(old)) == 12)

    new = rig.start(LONG)
    rig.step_until(lambda: len(rig.frames(old)) == 13)

    assert sum(frame.units for frame in rig.frames(new)) >= 500


def test_a_newcomer_is_heard_before_the_others_go_on(rig: SpeechRig) -> None:
    old = rig.start(LONG)
    rig.step_until(lambda: len(rig.frames(old)) == 3)

    new = rig.start(LONG)
    rig.step_until(lambda: bool(rig.frames(new)))

    assert len(rig.frames(old)) == 3


def test_however_many_newcomers_come_the_others_get_their_turns(rig: SpeechRig) -> None:
    old = rig.start(LONG)
    rig.step_until(lambda: len(rig.frames(old)) == 3)

    for _ in range(40):
        new = rig.start("x.")
        rig.step_until(lambda job=new: job in rig.released)  # type: ignore[misc]

    assert len(rig.frames(old)) >= 3 + 40 * 3 // 9 // 2


def test_a_job_that_waits_for_text_or_is_paused_holds_nobody_up(rig: SpeechRig) -> None:
    waits, paused = rig.start(), rig.start(LONG)
    rig.step_until(lambda: bool(rig.frames(paused)))
    rig.engine.pause(paused)
    before = len(rig.frames(paused))

    job = rig.start(TEXT)
    rig.finish()

    assert isinstance(rig.ends[job], Finished)
    assert len(rig.frames(paused)) == before
    assert rig.engine.stats().slots_used == 1  # who waits for text keeps its slot
    assert waits not in rig.released


def test_a_paused_job_goes_on_where_it_was(rig: SpeechRig) -> None:
    alone = rig.say(TEXT)
    job = rig.start(TEXT)
    while job not in rig.released:
        rig.step()
        rig.engine.pause(job)
        assert rig.engine.idle
        rig.engine.resume(job)

    assert rig.pcm(job) == alone


def test_a_cancel_cuts_its_own_unit_short(rig: SpeechRig, synthesizer: ToySynthesizer) -> None:
    stays, goes = rig.start(TEXT), rig.start(LONG)
    rig.step_until(lambda: bool(rig.frames(goes)))
    rig.engine.pause(stays)
    units = synthesizer.model.units

    synthesizer.model.during = lambda: rig.arrive_cancel(goes)
    rig.step()

    assert goes in rig.released
    assert synthesizer.model.units == units
    synthesizer.model.during = lambda: None
    rig.engine.resume(stays)
    rig.finish()
    assert rig.pcm(stays) == rig.say(TEXT)


def test_a_cancel_of_another_job_does_not_disturb_the_unit_under_way(
    rig: SpeechRig, synthesizer: ToySynthesizer
) -> None:
    alone = rig.say(TEXT)
    goes = rig.start()  # waits for text, so it never computes
    stays = rig.start(TEXT)
    units = synthesizer.model.units

    synthesizer.model.during = lambda: rig.arrive_cancel(goes)
    rig.step_until(lambda: goes in rig.flags.stamps)
    assert synthesizer.model.units == units + 1
    rig.finish()

    assert goes in rig.released
    assert rig.pcm(stays) == alone


def test_a_unit_that_was_cut_by_mistake_is_done_again(
    rig: SpeechRig, synthesizer: ToySynthesizer
) -> None:
    alone = rig.say(TEXT)
    job = rig.start(TEXT)
    for _ in range(5):
        synthesizer.model.interrupt()  # meant for a job that was over by then
        rig.step()
        rig.step()
    rig.finish()

    assert rig.pcm(job) == alone


def test_audio_computed_while_the_cancel_came_is_handed_over_to_be_counted(
    tmp_path: Path,
) -> None:
    synthesizer = ToySynthesizer(windows=(1200,))
    rig = make_rig(tmp_path, synthesizer)
    job = rig.start(LONG)
    rig.step_until(lambda: bool(rig.frames(job)))

    synthesizer.model.during = lambda: rig.flags.stamps.setdefault(job, time.monotonic())
    rig.step()

    assert len(rig.frames(job)) == 2
    assert rig.released[job].usage["audio_ms"] == 100


def test_a_cancel_is_released_by_the_next_step_whatever_the_job_was_doing(rig: SpeechRig) -> None:
    paused, waits, speaks = rig.start(LONG), rig.start(), rig.start(LONG)
    rig.step_until(lambda: bool(rig.frames(paused) and rig.frames(speaks)))
    rig.engine.pause(paused)

    for job in (paused, waits, speaks):
        rig.cancel(job)
    rig.step()

    assert set(rig.released) == {paused, waits, speaks}
    assert_empty(rig)


def test_two_cancels_give_one_release_and_those_of_others_none(rig: SpeechRig) -> None:
    job, prepared = rig.start(TEXT), rig.prepare(TEXT)

    for cancelled in (job, job, prepared, 9999):
        rig.cancel(cancelled)
    rig.finish()

    assert set(rig.released) == {job}
    assert_empty(rig)


def test_memory_is_held_while_a_job_speaks_and_given_back_with_its_release(rig: SpeechRig) -> None:
    job = rig.start(LONG)
    rig.step_until(lambda: bool(rig.frames(job)))
    (entry,) = rig.engine._jobs.values()
    gone = weakref.ref(entry)
    del entry

    assert rig.engine.stats().kv_bytes == HELD_BYTES
    rig.cancel(job)
    rig.step()
    gc.collect()

    assert gone() is None
    assert_empty(rig)


def test_a_blend_is_the_jobs_own_memory_and_a_voice_is_not(rig: SpeechRig) -> None:
    rig.start("hello.", voice="af_heart")
    rig.prepare("hello.", voice="af_heart,bf_emma")  # holds nothing before its start
    assert rig.engine.stats().kv_bytes == 0

    rig.start("hello.", voice="af_heart,bf_emma")
    assert rig.engine.stats().kv_bytes == PACK_BYTES


def test_only_the_first_segments_are_looked_at_before_the_start(
    rig: SpeechRig, synthesizer: ToySynthesizer
) -> None:
    rig.prepare(LONG)

    assert synthesizer.model.units == 0
    assert rig.engine.stats().kv_bytes == 0
    assert rig.engine.idle


@pytest.mark.parametrize("voice", ["nope", "", "../../x", "AF_HEART", "x" * 256, "af_sky"])
def test_a_voice_that_is_not_there_is_refused_with_those_that_are(
    rig: SpeechRig, voice: str
) -> None:
    with pytest.raises(VoiceNotFound) as refused:
        rig.prepare("hello.", voice=voice)

    assert refused.value.data == {"voices": ["af_heart", "bf_emma"]}


def test_a_blend_speaks_the_language_of_its_first_voice(rig: SpeechRig) -> None:
    assert rig.say("hello.", voice="bf_emma:0.4,af_heart:0.6") != rig.say("hello.")


def test_a_language_that_cannot_be_pronounced_is_refused(rig: SpeechRig) -> None:
    with pytest.raises(InvalidRequest):
        rig.prepare("hello.", language="fr")


def test_other_methods_are_refused(rig: SpeechRig) -> None:
    with pytest.raises(UnsupportedMethod):
        rig.engine.prepare(Prepare(1, "chat", {}, "s"))


def test_close_gives_the_model_back(rig: SpeechRig, synthesizer: ToySynthesizer) -> None:
    rig.engine.close()

    assert synthesizer.model.closed


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["start", "fed", "feed", "end", "pause", "resume", "cancel", "arrive"]),
        st.integers(0, 3),
        st.integers(0, 4),
    ),
    max_size=40,
)


class Player:
    """Plays one random sequence of commands as the worker loop may give them."""

    def __init__(self, rig: SpeechRig) -> None:
        self.rig = rig
        self.jobs: list[int] = []
        self.cancelled: set[int] = set()
        self.paused: set[int] = set()
        self.fed: set[int] = set()

    def play(self, action: str, which: int) -> None:
        live = [job for job in self.jobs if job not in self.rig.released]
        if action in ("start", "fed") and len(live) < 4:
            job = self.rig.start(TEXT if action == "start" else None)
            self.jobs.append(job)
            if action == "fed":
                self.fed.add(job)
        job = live[which % len(live)] if live else 0
        if job and job not in self.cancelled:
            self._tell(action, job)

    def _tell(self, action: str, job: int) -> None:
        engine = self.rig.engine
        if action == "feed" and job in self.fed:
            self.rig.feed(job, "yes, and ")
        elif action == "end":
            self.fed.discard(job)
            engine.finish_input(job)
        elif action == "pause":
            self.paused.add(job)
            engine.pause(job)
        elif action == "resume":
            engine.resume(job)
        elif action == "arrive":
            self.rig.arrive_cancel(job)
        elif action == "cancel":
            self.cancelled.add(job)
            self.rig.cancel(job)

    def wind_up(self) -> None:
        """What the gateway would do in the end: everything ends."""
        for job in self.jobs:
            if job not in self.rig.released and job not in self.cancelled:
                if self.rig.flags.stamp(job) is not None:
                    self.rig.engine.cancel(job)
                self.rig.engine.resume(job)
                self.rig.engine.finish_input(job)
        self.rig.finish()


@given(ACTIONS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_sequence_of_commands_gives_each_job_one_release_and_leaves_nothing(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[str, int, int]]
) -> None:
    rig = make_rig(tmp_path_factory.mktemp("voices"), ToySynthesizer())
    alone = rig.say(TEXT)
    player = Player(rig)

    for action, which, steps in actions:
        player.play(action, which)
        for _ in range(steps):
            rig.step()
    player.wind_up()

    assert set(rig.released) == {1, *player.jobs}
    assert all(alone.startswith(rig.pcm(job)) for job in player.jobs if not rig.consumed.get(job))
    assert_empty(rig)
