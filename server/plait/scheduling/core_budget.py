"""Which CPUs each model computes on: one budget for all workers, as a pure function.

What a model costs in cores is its adapter's to say (`EngineInfo.cores`, `stream_cores`) and is
known to admission as *slots*, never looked at a second time per stream:

- Chat, speech and embedding are throughput engines. One thread pool serves all their streams, so
  a further stream costs no further core, only a share of the pace, and slots bound how thin that
  gets. They want as many cores as they have threads, for as long as any stream holds a slot.
- Transcription follows real time. Its slots come from a decode that is timed at load, in CPU
  seconds, times the cores it may have (`engines/whisper/capacity.py`), and a stream decodes on one
  core at a time, so it wants no more cores than streams. With fewer it gives fewer permits to
  decode: steps get wider and nobody is refused.

Every active model has at least one CPU of the budget and nobody has one outside of it. While there
are as many CPUs as models nobody shares: each has what it wants, or else an equal part. With more
models than CPUs each has one, and each CPU serves equally many. Idle models are not assigned
anything: they keep the set that they had last, in which they only sleep and answer, so that going
idle costs no message and coming back mostly none either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

Cpus = frozenset[int]


def assign(
    budget: Sequence[int], wants: Mapping[str, int], before: Mapping[str, Cpus]
) -> dict[str, Cpus]:
    """The CPUs of each active model.

    `wants`: the most that each can use (>= 1), who came first before who came later. `before`:
    what models had, also idle ones; who keeps a CPU does not move, and a model moves only where
    its part got smaller or another one had the same.
    """
    assert budget, "a machine has a CPU"
    if len(wants) > len(budget):
        return _shared(budget, wants, before)
    return _split(budget, _sizes(len(budget), wants), before)


def _sizes(count: int, wants: Mapping[str, int]) -> dict[str, int]:
    """How many CPUs each gets of its own: equal parts, but none more than it wants."""
    sizes = dict.fromkeys(wants, 1)
    spare = count - len(wants)
    hungry = [model for model, want in wants.items() if want > 1]
    while spare and hungry:
        for model in hungry[:spare]:
            sizes[model] += 1
            spare -= 1
        hungry = [model for model in hungry if sizes[model] < wants[model]]
    return sizes


def _split(
    budget: Sequence[int], sizes: Mapping[str, int], before: Mapping[str, Cpus]
) -> dict[str, Cpus]:
    free = dict.fromkeys(budget)
    given: dict[str, list[int]] = {model: [] for model in sizes}
    holders = Counter(cpu for model in sizes for cpu in before.get(model, ()))

    def give(model: str, candidates: Iterable[int]) -> None:
        for cpu in candidates:
            if len(given[model]) < sizes[model] and cpu in free:
                del free[cpu]
                given[model].append(cpu)

    for contested in (False, True):
        for model in sizes:
            had = sorted(before.get(model, ()))
            give(model, [cpu for cpu in had if (holders[cpu] > 1) is contested])
    for model in sizes:
        give(model, list(free))
    return {model: frozenset(cpus) for model, cpus in given.items()}


def _shared(
    budget: Sequence[int], models: Iterable[str], before: Mapping[str, Cpus]
) -> dict[str, Cpus]:
    load = dict.fromkeys(budget, 0)
    models = list(models)
    even, crowded = divmod(len(models), len(budget))  # so many CPUs have one model more
    placed: dict[str, int] = {}
    for model in models:
        for cpu in sorted(before.get(model, ())):
            if cpu in load and (load[cpu] < even or (load[cpu] == even and crowded)):
                crowded -= load[cpu] == even
                load[cpu] += 1
                placed[model] = cpu
                break
    for model in models:
        if model not in placed:
            cpu = placed[model] = min(load, key=lambda cpu: load[cpu])
            load[cpu] += 1
    return {model: frozenset((placed[model],)) for model in models}
