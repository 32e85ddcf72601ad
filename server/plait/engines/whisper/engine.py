"""Transcription with Whisper: the `Engine` around streams that have a process each.

The zygote (see `zygote`) gives every started stream a process of its own, in which audio becomes
items (see `child`); a cancel is the death of that process, and `Released` its confirmation. Here
bytes are passed on, permits to decode are given (see `cores`), and ends are told. A paused
stream's process is stopped where it is, and gets a permit again before it goes on with a decode.
`step` computes nothing: it waits for what processes say, until a command comes.
"""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable

from plait.engines.base import (
    CancelFlags,
    Consumed,
    EngineInfo,
    Event,
    Failed,
    Fault,
    Feed,
    Finished,
    Item,
    LoadSpec,
    Prepare,
    Prepared,
    Released,
    Report,
    Starved,
    Stats,
)
from plait.engines.ipc import FrameError
from plait.engines.whisper.bell import Bell
from plait.engines.whisper.capacity import STREAMS_PER_SLOT
from plait.engines.whisper.cores import Cores
from plait.engines.whisper.faults import death_of, read_params
from plait.engines.whisper.jobs import StreamJob
from plait.engines.whisper.loading import Facts, load_or_die
from plait.engines.whisper.messages import (
    Ask,
    Broken,
    Ended,
    FromChild,
    GiveBack,
    Gone,
    Resting,
    Said,
    Took,
)
from plait.engines.whisper.nursery import Nursery
from plait.errors import GenerationFailed, InvalidRequest, PlaitError

STEP_SECONDS = 1.0


def load(spec: LoadSpec, flags: CancelFlags, report: Report) -> WhisperEngine:
    """`spec.weights`: a ggml file; `spec.threads`: the cores to decode on; `spec.slots` 0: as many
    streams as these can follow. Options: languages, isolation ("fork", "spawn"), and for tests
    ears. Raises `ModelLoadFailed`."""
    nursery, facts = load_or_die(spec, report)
    return WhisperEngine(spec, flags, nursery, facts)


class WhisperEngine:
    """Implements `Engine` for transcribe; see the module's docstring."""

    def __init__(
        self,
        spec: LoadSpec,
        flags: CancelFlags,
        nursery: Nursery,
        facts: Facts,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spec = spec
        self._flags = flags
        self._nursery = nursery
        self._facts = facts
        self._clock = clock
        known = [] if facts.multilingual else ["en"]
        self._languages: list[str] = list(spec.options.get("languages", known))
        self._jobs: dict[int, StreamJob] = {}
        self._cores = Cores(max(1, spec.threads), nursery, self._flush, clock)
        self._events: list[Event] = []
        self._bell = Bell()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._bell, selectors.EVENT_READ, self._bell.quiet)
        self._selector.register(nursery, selectors.EVENT_READ, self._hear_zygote)

    @property
    def info(self) -> EngineInfo:
        slots = self._facts.slots
        whole_bytes = slots * STREAMS_PER_SLOT * self._facts.stream_bytes
        return EngineInfo(
            engine=self._spec.engine,
            model=self._spec.model,
            methods=["transcribe"],
            slots=slots,
            context_tokens=0,
            max_tokens=0,
            kv_budget_bytes=self._spec.kv_budget_bytes or whole_bytes,
            kv_kind="freed",
            counts_busy=True,
            cores=max(1, self._spec.threads),
            stream_cores=1,
        )

    # --- a job's life --------------------------------------------------------------------------

    def prepare(self, job: Prepare) -> Prepared:
        params = read_params(job, self._languages)
        self._jobs[job.job] = StreamJob(job.job, job.params, params)
        return Prepared(job.job, 0, self._facts.stream_bytes, 0)

    def start(self, job: int) -> None:
        entry = self._jobs[job]
        assert not entry.started, "a job starts once"
        assert self._slots_used() < self._facts.slots, "the scheduler overbooked the slots"
        entry.begin(self._nursery.open(job))
        assert entry.sock is not None
        self._selector.register(entry.sock, selectors.EVENT_READ, lambda: self._hear(entry))
        self._flush(entry)

    def feed(self, feed: Feed) -> None:
        entry = self._jobs.get(feed.job)
        if entry is None or entry.over or not feed.audio:
            return
        if entry.input_ended:
            raise InvalidRequest("The audio of this stream is complete; open another for more.")
        entry.feed(feed.audio, self._clock())
        self._flush(entry)

    def finish_input(self, job: int) -> None:
        entry = self._jobs.get(job)
        if entry is not None and not entry.over:
            entry.finish_input()
            self._flush(entry)

    def pause(self, job: int) -> None:
        entry = self._jobs.get(job)
        if entry is not None and entry.started and not entry.paused and not entry.over:
            self._cores.pause(entry)

    def resume(self, job: int) -> None:
        entry = self._jobs.get(job)
        if entry is not None and entry.paused and not entry.over:
            self._cores.resume(entry)

    def cancel(self, job: int) -> None:
        entry = self._jobs.get(job)
        if entry is None:
            return
        if not entry.started:
            del self._jobs[job]
        elif not entry.over:
            self._end(entry, kill=True)

    def _end(self, entry: StreamJob, *, kill: bool) -> None:
        """Nothing more is told of it but its release, when its process is gone."""
        entry.over = True
        self._hang_up(entry)
        if kill or entry.stopped:  # one that is stopped cannot end by itself
            self._nursery.kill(entry.id)

    def _hang_up(self, entry: StreamJob) -> None:
        if entry.sock is not None:
            self._selector.unregister(entry.sock)
            entry.sock.close()
            entry.sock = None

    # --- what processes say --------------------------------------------------------------------

    def interrupt(self) -> None:
        self._bell.ring()

    def step(self) -> list[Event]:
        """Waits for something to pass on, a command, or a second."""
        for key, _ in self._selector.select(0 if self._events else STEP_SECONDS):
            key.data()
        events, self._events = self._events, []
        return events

    def _hear_zygote(self) -> None:
        for message in self._nursery.receive():
            match message:
                case Gone(job, status):
                    self._bury(self._jobs[job], status)
                case _:
                    raise AssertionError(f"a {type(message).__name__} after the load")

    def _bury(self, entry: StreamJob, status: int | None) -> None:
        """Its process is gone. What it had said before comes first."""
        while self._hear(entry):
            continue
        if not entry.over:
            self._fail(entry, death_of(status))
        self._hang_up(entry)
        self._cores.leave(entry)
        del self._jobs[entry.id]
        self._events.append(Released(entry.id, self._clock(), 0, entry.usage))

    def _hear(self, entry: StreamJob) -> bool:
        """Writes what waits, too. False when nothing was there to read."""
        if entry.sock is None:  # closed by what came before it in this step
            return False
        self._flush(entry)
        try:
            messages = entry.receive()
        except BlockingIOError:
            return False
        except FrameError:
            self._fail(entry, GenerationFailed("The process of this stream broke; open it again."))
            self._end(entry, kill=True)
            return False
        if messages is None:
            self._hang_up(entry)  # how it ended is told by the zygote
            return False
        for message in messages:
            self._take(entry, message)
        return True

    def _take(self, entry: StreamJob, message: FromChild) -> None:
        if entry.over or self._flags.stamp(entry.id) is not None:
            return  # nobody waits for it any more, and none of it was computed since
        match message:
            case Said(data, revises, units):
                self._events.append(Item(entry.id, data, units, revises=revises))
            case Took(size_bytes):
                entry.taken_bytes += size_bytes
                self._events.append(Consumed(entry.id, size_bytes))
            case Ask(closing):
                self._cores.ask(entry, closing=closing)
            case GiveBack():
                self._cores.take_back(entry)
            case Resting(inputs):
                # What was sent since may lie unread in its socket.
                if inputs == entry.inputs and not entry.input_ended:
                    self._events.append(Starved(entry.id, self._facts.stream_bytes))
            case _:
                self._take_end(entry, message)

    def _take_end(self, entry: StreamJob, message: FromChild) -> None:
        match message:
            case Ended():
                self._events.append(Finished(entry.id, "stop", entry.usage))
            case Broken(fault):
                self._fail(entry, fault.to_error())
            case _:
                raise AssertionError(f"a {type(message).__name__} in the midst of a stream")
        self._end(entry, kill=False)

    def _fail(self, entry: StreamJob, error: PlaitError) -> None:
        if self._flags.stamp(entry.id) is None:
            self._events.append(Failed(entry.id, Fault.of(error), entry.usage))

    def _flush(self, entry: StreamJob) -> None:
        """Write, and be told when there is room for the rest."""
        done = entry.flush()
        if entry.sock is not None:
            wanted = selectors.EVENT_READ | (0 if done else selectors.EVENT_WRITE)
            key = self._selector.get_key(entry.sock)
            if key.events != wanted:
                self._selector.modify(entry.sock, wanted, key.data)

    # --- state ---------------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """Any process may say something, or die, at any time: also of a paused stream."""
        return not self._events and not any(job.started for job in self._jobs.values())

    def keep_prefixes(self, max_bytes: int) -> None:
        """Nothing is kept of jobs that are over."""

    def stats(self) -> Stats:
        started = sum(job.started for job in self._jobs.values())
        held_bytes = started * self._facts.stream_bytes
        return Stats(
            slots_used=self._slots_used(),
            kv_bytes=held_bytes,
            busy_seconds=self._cores.busy_seconds,
        )

    def _slots_used(self) -> int:
        return sum(job.started and not job.paused for job in self._jobs.values())

    def close(self) -> None:
        for entry in self._jobs.values():
            self._hang_up(entry)
        self._jobs.clear()
        self._nursery.close()
        self._selector.close()
        self._bell.close()
