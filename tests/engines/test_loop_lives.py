"""Random lives of jobs on the scripted engine, through the worker loop."""

from __future__ import annotations

import itertools

import msgspec
from hypothesis import HealthCheck, given, settings, strategies as st

from plait.engines.base import (
    Cancel,
    Command,
    Consumed,
    Event,
    Feed,
    FinishInput,
    Item,
    Pause,
    Prepare,
    Refused,
    Released,
    Resume,
    Shutdown,
    Start,
    Starved,
    Stats,
)
from plait.engines.loop import WorkerLoop
from plait.engines.mailbox import Mailbox
from plait.engines.scripted.engine import ScriptedEngine
from plait.engines.scripted.hearing import WORDS, recite
from tests.engines.recording import prepare, scripted_spec


class InjectedEngine(ScriptedEngine):
    """Puts the next batch of commands into the mailbox in each step, or when it is idle."""

    def __init__(
        self, mailbox: Mailbox, batches: list[list[Command]], method: str = "chat"
    ) -> None:
        super().__init__(msgspec.structs.replace(scripted_spec(), method=method))
        self._mailbox = mailbox
        self._batches: list[list[Command]] = [batch for batch in batches if batch]
        self._batches.append([Shutdown()])

    def inject(self) -> None:
        if self._batches:
            for command in self._batches.pop(0):
                self._mailbox.put(command, 1)

    def step(self) -> list[Event]:
        self.inject()
        return super().step()

    @property
    def idle(self) -> bool:
        idle = super().idle
        if idle:
            self.inject()
        return idle


@st.composite
def lives(draw: st.DrawFn) -> list[list[Command]]:
    """Up to four jobs, each a run of commands in order, interleaved at random over batches."""
    runs: list[list[Command]] = []
    for job in range(draw(st.integers(1, 4))):
        script = draw(st.sampled_from(["tokens=3", "tokens=0", "fail_at=1", "tokens=99"]))
        begin: list[Command] = [prepare(job, script), Start(job)]
        middle: list[Command] = draw(
            st.lists(st.sampled_from([Pause(job), Resume(job)]), max_size=3)
        )
        end: list[Command] = (
            [Cancel(job, 0.0)] if script == "tokens=99" or draw(st.booleans()) else []
        )
        cut = draw(st.integers(0, 2)) if end else 2
        runs.append([*begin[:cut], *middle, *end])
    batches: list[list[Command]] = [[] for _ in range(6)]
    for run in runs:
        size = len(run)
        slots = sorted(draw(st.lists(st.integers(0, 5), min_size=size, max_size=size)))
        for slot, command in zip(slots, run, strict=True):
            batches[slot].append(command)
    return batches


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(lives())
def test_every_started_job_is_released_exactly_once_and_nothing_stays(
    batches: list[list[Command]],
) -> None:
    mailbox = Mailbox()
    frames: list[list[Event]] = []
    engine = InjectedEngine(mailbox, batches)

    WorkerLoop(engine, mailbox, frames.append).run()

    events = [event for frame in frames for event in frame]
    started = [c.job for batch in batches for c in batch if isinstance(c, Start)]
    assert sorted(e.job for e in events if isinstance(e, Released | Refused)) == sorted(started)
    assert (engine.stats(), mailbox.flagged) == (Stats(), [])


class PatientEngine(InjectedEngine):
    """Puts the next batch only when it is idle."""

    def step(self) -> list[Event]:
        return ScriptedEngine.step(self)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.lists(st.sampled_from(["a", "a. ", "b"]), max_size=3), min_size=1, max_size=6))
def test_who_waits_for_input_has_said_so_with_all_that_it_was_told(texts: list[list[str]]) -> None:
    mailbox = Mailbox()
    frames: list[list[Event]] = []
    opening: list[Command] = [Prepare(1, "synthesize", {}, "c"), Start(1)]
    feeds: list[list[Command]] = [[Feed(1, texts=[text]) for text in batch] for batch in texts]
    engine = PatientEngine(mailbox, [opening, *feeds], "synthesize")

    WorkerLoop(engine, mailbox, frames.append).run()

    starved = [e.inputs for frame in frames for e in frame if isinstance(e, Starved)]
    assert starved == sorted(set(starved))
    assert starved[-1] == sum(map(len, texts))


class WrittenMailbox(Mailbox):
    """A batch with each look into it; the shutdown when the loop would sleep for ever."""

    def __init__(self, batches: list[list[Command]]) -> None:
        super().__init__()
        self._batches = [batch for batch in batches if batch]

    def take_all(self, *, wait: bool) -> list[Command]:
        if self._batches or wait:
            for command in self._batches.pop(0) if self._batches else [Shutdown()]:
                self.put(command, 1)
        return super().take_all(wait=wait)


@st.composite
def talks(draw: st.DrawFn) -> tuple[dict[int, str], list[list[Command]]]:
    """What up to three speakers say, and their audio, in pieces of any cut, over some batches."""
    said: dict[int, str] = {}
    batches: list[list[Command]] = [[] for _ in range(8)]
    for job in range(draw(st.integers(1, 3))):
        said[job] = " ".join(draw(st.lists(st.sampled_from(WORDS), max_size=4)))
        audio = recite(said[job], 8000)
        cuts = sorted(draw(st.lists(st.integers(0, len(audio)), max_size=4)))
        edges = [0, *cuts, len(audio)]
        feeds: list[Command] = [Feed(job, audio[a:b]) for a, b in itertools.pairwise(edges)]
        run: list[Command] = [Prepare(job, "transcribe", {"sample_rate": 8000}, "c"), Start(job)]
        run += [Pause(job), *feeds, Resume(job)] if draw(st.booleans()) else feeds
        run.append(Cancel(job, 0.0) if draw(st.booleans()) else FinishInput(job))
        slots = sorted(draw(st.lists(st.integers(0, 7), min_size=len(run), max_size=len(run))))
        for slot, command in zip(slots, run, strict=True):
            batches[slot].append(command)
    return said, batches


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(talks())
def test_who_is_not_cancelled_is_heard_whole_and_nobody_hears_another(
    talk: tuple[dict[int, str], list[list[Command]]],
) -> None:
    said, batches = talk
    mailbox = WrittenMailbox(batches)
    frames: list[list[Event]] = []
    engine = ScriptedEngine(msgspec.structs.replace(scripted_spec(), method="transcribe"))

    WorkerLoop(engine, mailbox, frames.append).run()

    events = [event for frame in frames for event in frame]
    assert sorted(e.job for e in events if isinstance(e, Released | Refused)) == list(said)
    assert (engine.stats(), mailbox.flagged) == (Stats(), [])
    for job in [c.job for batch in batches for c in batch if isinstance(c, FinishInput)]:
        audio_bytes = sum(e.bytes for e in events if isinstance(e, Consumed) and e.job == job)
        assert audio_bytes == len(recite(said[job], 8000))
        assert finals_of(events, job) == said[job]


def finals_of(events: list[Event], job: int) -> str:
    items = [msgspec.json.decode(e.data) for e in events if isinstance(e, Item) and e.job == job]
    return " ".join(i["segment"]["text"] for i in items if i["segment"]["is_final"])
