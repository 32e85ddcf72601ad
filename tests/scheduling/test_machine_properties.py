"""Random lives of models and streams: never over budget, never an eviction of what is in use,
nothing leaked, and everybody who can be served is served in the end."""

from __future__ import annotations

import asyncio
import contextlib

from hypothesis import given, settings, strategies as st

from plait.errors import PlaitError
from plait.scheduling.machine import MachinePolicy
from plait.scheduling.pressure import Floor
from plait.scheduling.resident import RetryPolicy
from tests.scheduling.machine_rig import World
from tests.virtual_time import run_virtually, settle

LIMIT = 1200
SIZES = {"a": 300, "b": 500, "c": 700, "d": 1300}  # d can never fit
NAMES = list(SIZES)
NEVER = 10**6  # nobody is to be served by his time-out

actions = st.tuples(
    st.sampled_from(
        ["open", "open", "open", "cancel", "finish", "crash", "fail", "press", "relax"]
    ),
    st.integers(0, 50),
    st.sampled_from([0, 0, 10, 150]),
    st.sampled_from([0.0, 0.0, 0.1, 0.3, 1.0]),
)


def build() -> World:
    policy = MachinePolicy(NEVER, RetryPolicy(0.5, 2.0), Floor(100, 150))
    return World(LIMIT, SIZES, policy, app_limits={"app": 250})


def act(world: World, name: str, which: int, size: int) -> None:
    """What may happen now; anything else is skipped."""
    model = NAMES[which % len(NAMES)]
    live = [(m, s) for m, s in world.streams if not s.ended]
    match name:
        case "open":
            with contextlib.suppress(PlaitError):
                world.open(model, "app" if which % 3 else f"s{which}", buffer_bytes=size)
        case "cancel" if live:
            world.cancel(*live[which % len(live)])
        case "finish" if live:
            world.finish(*live[which % len(live)])
        case "crash" if world.models[model].resident.place == "in":
            world.models[model].crash()
        case "fail":
            world.models[model].fails = not world.models[model].fails
        case "press":
            world.machine.observe_memory(99)
        case "relax":
            world.machine.observe_memory(150)


async def live(script: list[tuple[str, int, int, float]]) -> None:
    world = build()
    for name, which, size, seconds in script:
        act(world, name, which, size)
        await settle()
        world.check()
        await asyncio.sleep(seconds)
    await end_well(world)


async def end_well(world: World) -> None:
    """Let whatever runs end, and no more: all others get their turn."""
    world.machine.observe_memory(150)
    for model in world.models.values():
        model.fails = False
    for _ in range(4 * len(world.streams) + 4):
        await asyncio.sleep(1)
        await settle()
        world.check()
        for name, stream in world.streams:
            if not stream.ended:
                world.finish(name, stream)
    assert all(stream.ended for _, stream in world.streams), world.machine
    await settle()
    assert world.ledger.streams_bytes == 0
    assert world.ledger.app_used_bytes("app") == 0
    assert world.ledger.holds == {}
    assert "d" not in world.in_memory()
    assert world.models["d"].resident.loads == 0


@settings(max_examples=60, deadline=None)
@given(st.lists(actions, max_size=40))
def test_random_lives_of_models_and_streams(script: list[tuple[str, int, int, float]]) -> None:
    run_virtually(lambda: live(script))
