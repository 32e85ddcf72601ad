"""The soak itself: lanes of visits, samples as they go, and quiet before and after.

First a warm-up, as pools, arenas and caches come with the first use: it lasts until every method
has worked, and what is held at rest after it is the baseline. Then the run; at its end everybody
cancels what is left, and when the server is at rest, or refuses to be, the last sample is taken.
Does NOT judge, nor ask by itself.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from time import monotonic

from plait.bench.figures import Metrics
from plait.bench.serving import BenchError, Server
from plait.bench.soak.asking import Asking
from plait.bench.soak.books import Broken
from plait.bench.soak.sampling import Sample, Watch
from plait.bench.soak.visit import Visit, linked

WARM_UP_SHARE, LONGEST_WARM_UP_SECONDS = 0.15, 60.0
WARM_STREAMS = 4  # of each method, done with items: as many as a worker has slots by default
WARM_WAIT_SECONDS = 180.0  # for them; a real model's first work on a busy machine takes long
WARM_CHECK_SECONDS = 0.5
QUIET_SECONDS = 60.0  # until all is given back
SETTLE_SECONDS = 1.0  # for sockets that were closed a moment ago, ours and the server's
MOST_BROKEN = 20  # kept word for word
MOST_MISSED = 5  # samples in a row
MOST_REFUSED = 50  # connections in a row: then nobody is there any more

Tell = Callable[["Progress"], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """`every_seconds`: between samples. `seed`: of all that clients do, but not of when."""

    seconds: float
    clients: int
    every_seconds: float
    seed: int

    @property
    def warm_up_seconds(self) -> float:
        return min(LONGEST_WARM_UP_SECONDS, WARM_UP_SHARE * self.seconds)


@dataclass(slots=True)
class Tally:
    """`ends`: by method and end; `codes`: of errors and rejections; `late`: `released: false`;
    `worked`: by method, streams that were done and had brought something."""

    visits: int = 0
    ends: Counter[tuple[str, str]] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    leavings: Counter[str] = field(default_factory=Counter)
    late: int = 0
    refused: int = 0
    broken: list[str] = field(default_factory=list)
    worked: Counter[str] = field(default_factory=Counter)

    def add(self, visit: Visit) -> None:
        self.visits += 1
        self.leavings[visit.leaving] += 1
        for life in visit.book.lives.values():
            self.ends[life.method, life.end] += 1
            self.late += life.released is False
            self.worked[life.method] += life.end == "done" and life.seq > 0
            if life.code is not None:
                self.codes[life.code] += 1


@dataclass(slots=True)
class Outcome:
    """`before` and `after`: at rest. `metrics`: pages at the beginning and the end of the run.
    `cold`: methods that had not worked `before`, which is no baseline for them."""

    plan: Plan
    before: Sample
    after: Sample
    samples: list[Sample]
    tally: Tally
    metrics: tuple[Metrics, Metrics]
    ran_seconds: float
    ended_early: bool
    cold: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """What is shown while it runs."""

    phase: str
    seconds: float
    of_seconds: float
    sample: Sample
    tally: Tally


class Soak:
    """One run against one server; `stop` ends it early, and everything is still judged."""

    def __init__(
        self, server: Server, plan: Plan, asking: Asking, watch: Watch, tell: Tell
    ) -> None:
        self._server = server
        self._plan = plan
        self._asking = asking
        self._watch = watch
        self._tell = tell
        self._stopped = asyncio.Event()
        self._visits: set[Visit] = set()

    def stop(self) -> None:
        self._stopped.set()

    async def run(self) -> Outcome:
        """Raises BenchError when the server cannot be reached, or is lost for good."""
        plan = self._plan
        warming = random.Random(f"{plan.seed} warm-up")
        warm = Tally()
        await self._load("warm-up", plan.warm_up_seconds, warm, [], warming, self._cold)
        cold = self._cold(warm)
        before = await self._rest(Tally(), None)
        tally, samples = Tally(), list[Sample]()
        began, first = monotonic(), await self._server.metrics()
        await self._load("soak", plan.seconds, tally, samples, random.Random(plan.seed))
        ran, last = monotonic() - began, await self._server.metrics()
        after = await self._rest(tally, before)
        early = self._stopped.is_set()
        return Outcome(plan, before, after, samples, tally, (first, last), ran, early, cold)

    def _cold(self, tally: Tally) -> tuple[str, ...]:
        """Methods that have not worked yet."""
        return tuple(m for m in sorted(self._asking.scripted) if tally.worked[m] < WARM_STREAMS)

    async def _load(
        self,
        phase: str,
        seconds: float,
        tally: Tally,
        samples: list[Sample],
        rng: random.Random,
        wanting: Callable[[Tally], Collection[str]] = lambda _: (),
    ) -> None:
        """Longer while something is `wanting`, within WARM_WAIT_SECONDS."""
        over = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._plan.clients):
                tasks.create_task(self._run_lane(tally, over, random.Random(rng.random())))
            await self._watch_on(phase, seconds, tally, samples)
            began = monotonic()
            while (
                wanting(tally)
                and monotonic() < began + WARM_WAIT_SECONDS
                and not self._stopped.is_set()
            ):
                await self._watch_on(phase, WARM_CHECK_SECONDS, tally, samples)
            over.set()
            for visit in list(self._visits):
                await visit.hurry()

    async def _run_lane(self, tally: Tally, over: asyncio.Event, rng: random.Random) -> None:
        refused = 0
        while not over.is_set():
            try:
                await self._visit(tally, over, rng)
                refused = 0
            except BenchError:
                refused += 1
                tally.refused += 1
                if refused == MOST_REFUSED:
                    raise
                await asyncio.sleep(0.1)  # a client that is turned away comes again

    async def _visit(self, tally: Tally, over: asyncio.Event, rng: random.Random) -> None:
        async with linked(self._server) as link:
            visit = Visit(link, self._asking, rng)
            self._visits.add(visit)
            try:
                await visit.run()
            except Broken as broken:
                if len(tally.broken) < MOST_BROKEN:
                    tally.broken.append(str(broken))
            finally:
                self._visits.discard(visit)
        tally.add(visit)

    async def _watch_on(
        self, phase: str, seconds: float, tally: Tally, samples: list[Sample]
    ) -> None:
        began, missed = monotonic(), 0
        while (passed := monotonic() - began) < seconds and not self._stopped.is_set():
            try:
                samples.append(await self._watch.sample())
                missed = 0
            except BenchError:
                missed += 1
                if missed == MOST_MISSED or not samples:
                    raise
            self._tell(Progress(phase, passed, seconds, samples[-1], tally))
            wait = min(self._plan.every_seconds, seconds - passed)
            try:
                async with asyncio.timeout(wait):
                    await self._stopped.wait()
            except TimeoutError:
                continue

    async def _rest(self, tally: Tally, before: Sample | None) -> Sample:
        """The first sample of a server that holds nothing, and no more than `before`; or the last
        one within QUIET_SECONDS. Its gauges can only be asked for again and again.
        """
        began = monotonic()
        while True:
            sample = await self._watch.sample()
            passed = monotonic() - began
            self._tell(Progress("coming to rest", passed, QUIET_SECONDS, sample, tally))
            if passed > QUIET_SECONDS:
                return sample
            as_before = before is None or not sample.beyond(before)
            if sample.at_rest and as_before and passed > SETTLE_SECONDS:
                return sample
            await asyncio.sleep(0.25)
