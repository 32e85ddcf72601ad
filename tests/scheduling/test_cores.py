"""The owner of the core budget: what workers are told, and in which order."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, strategies as st

from plait.engines.base import Command, EngineInfo, UseCores
from plait.metrics import Metrics
from plait.scheduling.cores import Cores

MODELS = ("chat", "speech", "listening", "embed")


@dataclass
class Machine:
    """Workers that remember what they were told; each starts on the whole budget."""

    budget: list[int]
    told: dict[str, frozenset[int]] = field(default_factory=dict)
    messages: list[tuple[str, frozenset[int]]] = field(default_factory=list)
    active: dict[str, int] = field(default_factory=dict)
    metrics: Metrics = field(default_factory=Metrics)
    shared: bool = False

    def __post_init__(self) -> None:
        engines = {model: Worker(self, model) for model in MODELS}
        self.cores = Cores(self.budget, engines, self.metrics)

    def ready(self, model: str, cores: int, *, stream_cores: int = 0) -> None:
        self.told[model] = frozenset(self.budget)
        info = EngineInfo("fake", model, [], 4, 0, 0, 0, "freed", cores=cores)
        info.stream_cores = stream_cores
        self.cores.on_worker_ready(model, info)

    def run(self, model: str, streams: int) -> None:
        self.active[model] = streams
        self.cores.on_active(model, streams)

    def idle(self, model: str) -> None:
        self.active.pop(model, None)
        self.cores.on_idle(model)

    def gauge(self, name: str) -> float | None:
        return self.metrics.registry.get_sample_value(name)


@dataclass
class Worker:
    machine: Machine
    model: str

    def send(self, command: Command) -> None:
        assert isinstance(command, UseCores)
        cpus = frozenset(command.cpus)
        self.machine.messages.append((self.model, cpus))
        self.machine.told[self.model] = cpus

    def kill(self, reason: str) -> None:
        raise AssertionError(reason)


def test_who_leaves_is_told_before_who_comes() -> None:
    machine = Machine([0, 1, 2, 3])
    machine.ready("speech", 4)
    machine.ready("chat", 2)
    machine.run("speech", 1)

    machine.run("chat", 1)

    assert machine.messages == [("speech", frozenset({0, 1})), ("chat", frozenset({2, 3}))]


def test_a_model_that_goes_idle_leaves_its_cpus_and_coming_back_gets_the_same() -> None:
    machine = Machine([0, 1])
    machine.ready("speech", 2)
    machine.ready("chat", 1)
    machine.run("speech", 1)
    machine.run("chat", 1)
    had = machine.told["chat"]
    machine.idle("chat")
    assert machine.told["speech"] == {0, 1}
    machine.messages.clear()

    machine.run("chat", 1)

    assert machine.told["chat"] == had
    assert machine.messages == [("speech", frozenset({0, 1}) - had)]


def test_streams_that_decode_on_one_core_each_get_no_more_cores_than_they_are() -> None:
    machine = Machine([0, 1, 2, 3])
    machine.ready("listening", 4, stream_cores=1)

    machine.run("listening", 1)
    assert len(machine.told["listening"]) == 1
    machine.run("listening", 3)
    assert len(machine.told["listening"]) == 3


def test_a_new_worker_is_told_afresh() -> None:
    machine = Machine([0, 1])
    machine.ready("chat", 1)
    machine.run("chat", 1)
    machine.cores.on_worker_gone("chat")
    machine.active.clear()
    machine.ready("chat", 1)
    machine.messages.clear()

    machine.run("chat", 1)

    assert [model for model, _ in machine.messages] == ["chat"]


def test_budget_and_use_are_seen_in_metrics() -> None:
    machine = Machine([0, 1, 2])
    machine.ready("chat", 2)

    machine.run("chat", 1)
    assert (machine.cores.used, machine.gauge("plait_cores_used")) == (2, 2)
    machine.idle("chat")
    assert (machine.cores.used, machine.gauge("plait_cores_used")) == (0, 0)
    assert (machine.cores.budget, machine.gauge("plait_cores_budget")) == (3, 3)


events = st.tuples(
    st.sampled_from(MODELS), st.sampled_from(["run", "idle", "die"]), st.integers(1, 4)
)


@given(st.integers(1, 6), st.lists(events, max_size=40))
def test_no_cpu_is_handed_out_while_another_model_was_not_told_to_leave_it(
    count: int, happened: list[tuple[str, str, int]]
) -> None:
    machine = Machine(list(range(count)))
    for number, model in enumerate(MODELS):
        machine.ready(model, number + 1, stream_cores=number % 2)
    for model, what, streams in happened:
        before = dict(machine.told)
        machine.messages.clear()
        if what == "run":
            machine.run(model, streams)
        elif what == "idle":
            machine.idle(model)
        else:
            machine.active.pop(model, None)
            machine.cores.on_worker_gone(model)
            machine.ready(model, 2)
        check_order(machine, before)


def check_order(machine: Machine, told: dict[str, frozenset[int]]) -> None:
    """Replays the messages: who gets a CPU gets one that no other active model is on."""
    budget = frozenset(machine.budget)
    crowded = len(machine.active) > len(budget)
    for model, cpus in machine.messages:
        gained = cpus - told[model]
        told[model] = cpus
        others = [told[other] for other in machine.active if other != model]
        assert cpus
        assert cpus <= budget
        assert crowded or not gained & frozenset[int]().union(*others)
    if not crowded:
        taken = [machine.told[model] for model in machine.active]
        assert sum(map(len, taken)) == len(frozenset[int]().union(*taken)) == machine.cores.used
