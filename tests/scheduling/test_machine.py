"""The machine: models that come and go, streams that wait for memory, and the shortage of it."""

from __future__ import annotations

import asyncio
import random

import pytest

from plait.errors import ModelLoadFailed, PlaitError, ResourceNotAvailable
from plait.scheduling.machine import MachinePolicy
from plait.scheduling.pressure import Floor
from tests.scheduling.machine_rig import World
from tests.virtual_time import run_virtually, settle, virtually

TWO = {"x": 600, "y": 600}  # of 1000 only one fits


async def seconds(count: float) -> None:
    await asyncio.sleep(count)
    await settle()


@virtually
async def test_a_model_is_loaded_when_a_stream_asks_for_it_and_stays() -> None:
    world = World(1000, TWO)
    stream = world.open("x")
    assert world.models["x"].scheduler.phase(stream.ticket)[0] == "loading"  # type: ignore[arg-type]
    await seconds(1)
    assert stream.started
    assert stream.phases[0] == ("loading", 0)
    assert world.finish("x", stream)
    await seconds(1000)
    assert world.in_memory() == {"x"}


@virtually
async def test_an_open_and_its_cancel_in_one_tick_load_nothing() -> None:
    world = World(1000, TWO)
    world.cancel("x", world.open("x"))
    await seconds(1)
    assert world.in_memory() == set()
    assert world.models["x"].resident.loads == 0


@virtually
async def test_the_cancel_of_the_last_waiting_stream_stops_a_load_and_no_other_does() -> None:
    world = World(1000, TWO)
    first, second = world.open("x"), world.open("x")
    await seconds(0.1)
    world.cancel("x", first)
    await seconds(0.1)
    assert world.in_memory() == {"x"}
    world.cancel("x", second)
    await seconds(0.3)
    assert world.in_memory() == set()
    assert world.models["x"].resident.evictions == 0


@virtually
async def test_a_preloaded_model_is_loaded_whoever_cancels() -> None:
    world = World(1000, TWO)
    assert world.machine.preload(["x", "y"]) == ["y"]
    world.cancel("x", world.open("x"))
    await seconds(1)
    assert world.in_memory() == {"x"}


@virtually
async def test_the_least_recently_used_idle_model_makes_room_once_it_is_gone() -> None:
    world = World(1000, {"old": 400, "new": 400, "wanted": 450})
    for name in ("old", "new"):
        stream = world.open(name)
        await seconds(1)
        world.finish(name, stream)
    stream = world.open("wanted")
    await settle()
    assert world.in_memory() == {"old", "new"}  # its memory is back only with its exit
    await seconds(1)
    assert stream.started
    assert world.in_memory() == {"new", "wanted"}


@virtually
async def test_a_model_in_use_is_never_evicted_and_the_other_waits_until_it_ends() -> None:
    world = World(1000, TWO)
    using = world.open("x")
    await seconds(1)
    waiting = world.open("y")
    await seconds(30)
    assert world.in_memory() == {"x"}
    world.finish("x", using)
    await seconds(1)
    assert waiting.started


@virtually
async def test_a_load_that_finds_no_room_in_time_is_refused_with_the_numbers() -> None:
    world = World(1000, TWO)
    using = world.open("x", buffer_bytes=0)
    await seconds(1)
    waiting = world.open("y")
    await seconds(59)
    assert not waiting.ended
    await seconds(2)
    assert waiting.code == "resource_not_available"
    assert waiting.error is not None
    assert waiting.error.data == {"model": "y", "required_bytes": 600, "available_bytes": 300}
    assert not using.ended


@virtually
async def test_a_model_that_can_never_fit_is_refused_at_once_and_evicts_nobody() -> None:
    world = World(1000, {"x": 400, "idle": 400, "huge": 1001})
    for name in ("idle", "x"):
        stream = world.open(name)
        await seconds(1)
        if name == "idle":
            world.finish(name, stream)
    with pytest.raises(ResourceNotAvailable) as caught:
        world.open("huge")
    await seconds(1)
    assert caught.value.data == {
        "model": "huge",
        "required_bytes": 1001,
        "available_bytes": 1000,
    }
    assert world.in_memory() == {"x", "idle"}


@virtually
async def test_a_stream_that_waits_for_memory_has_an_idle_model_evicted() -> None:
    world = World(1000, {"x": 400, "idle": 400})
    idle = world.open("idle")
    await seconds(1)
    world.finish("idle", idle)
    large = world.open("x", buffer_bytes=200)
    await seconds(0.5)
    assert (large.started, world.in_memory()) == (False, {"x", "idle"})
    await seconds(0.5)
    assert large.ended is False
    assert world.in_memory() == {"x"}
    assert world.finish("x", large)


@virtually
async def test_no_small_stream_of_another_model_overtakes_one_that_waits_for_memory() -> None:
    world = World(1000, {"x": 300, "y": 300})
    first = [world.open(name, buffer_bytes=0) for name in ("x", "y")]
    await seconds(1)
    large = world.open("x", buffer_bytes=290)
    await settle()
    small = world.open("y", buffer_bytes=0)
    await seconds(1)
    assert [stream.started for stream in (*first, large, small)] == [True, True, False, False]
    world.finish("y", first[1])
    await seconds(1)
    assert [stream.started for stream in (large, small)] == [False, False]
    world.finish("x", first[0])
    await seconds(1)
    assert large.started


@virtually
async def test_a_stream_that_can_never_fit_beside_its_model_is_refused_at_once() -> None:
    world = World(1000, {"x": 400})
    stream = world.open("x", buffer_bytes=501)
    await seconds(1)
    assert stream.code == "resource_not_available"
    assert stream.error is not None
    assert stream.error.data == {"model": "x", "required_bytes": 601, "available_bytes": 600}


@virtually
async def test_an_app_beyond_its_budget_waits_for_its_own_streams_only() -> None:
    world = World(10_000, {"x": 400}, app_limits={"small": 150})
    mine = [world.open("x", "small") for _ in range(2)]
    await seconds(1)
    other = world.open("x", "other")
    await settle()
    assert [stream.started for stream in (*mine, other)] == [True, False, True]
    world.finish("x", mine[0])
    await settle()
    assert mine[1].started


@virtually
async def test_what_exceeds_the_whole_budget_of_its_app_is_refused_at_once() -> None:
    world = World(10_000, {"x": 400}, app_limits={"small": 109})
    stream = world.open("x", "small")
    await seconds(1)
    assert stream.code == "resource_not_available"


@virtually
async def test_a_failed_load_is_tried_again_for_an_open_after_its_back_off() -> None:
    world = World(1000, TWO)
    world.models["x"].fails = True
    lost = world.open("x")
    await seconds(1)
    assert (lost.code, lost.error and lost.error.retry_after_ms) == ("model_load_failed", 5000)
    with pytest.raises(ModelLoadFailed):
        world.open("x")
    assert world.in_memory() == set()
    await seconds(5)
    world.models["x"].fails = False
    stream = world.open("x")
    await seconds(1)
    assert stream.started


@virtually
async def test_a_crashed_model_comes_back_and_keeps_its_charge() -> None:
    world = World(1000, TWO)
    stream = world.open("x")
    await seconds(1)
    world.models["x"].crash()
    assert stream.code == "engine_crashed"
    again = world.open("x")
    await settle()
    assert world.ledger.used_bytes == 600
    await seconds(1)
    assert again.started


@virtually
async def test_a_model_larger_than_thought_is_charged_as_measured_and_idle_ones_pay() -> None:
    world = World(1000, {"idle": 300, "x": 400})
    idle = world.open("idle")
    await seconds(1)
    world.finish("idle", idle)
    world.models["x"].loaded_bytes = 800
    stream = world.open("x")
    await seconds(1)
    assert stream.started
    assert world.ledger.models == {"x": 800}


def pressed_world() -> World:
    policy = MachinePolicy(floor=Floor(100, 150))
    return World(2000, {"idle": 400, "x": 400}, policy, prefix_cache_bytes=50)


@virtually
async def test_under_pressure_running_streams_go_on_and_new_ones_are_refused_with_numbers() -> None:
    world = pressed_world()
    running = world.open("x")
    await seconds(1)
    queued = [world.open("x") for _ in range(2)]  # one of them runs: there are two slots
    await settle()
    world.machine.observe_memory(99)
    with pytest.raises(ResourceNotAvailable) as caught:
        world.open("x")
    assert caught.value.data == {"model": "x", "required_bytes": 150, "available_bytes": 99}
    world.finish("x", running)
    await settle()
    assert [stream.started for stream in queued] == [True, False]


@virtually
async def test_pressure_drops_prefixes_evicts_idle_models_one_a_reading_and_recovers() -> None:
    world = pressed_world()
    for name in ("idle", "x"):
        stream = world.open(name)
        await seconds(1)
        world.finish(name, stream)
    world.models["x"].keep(50)
    world.machine.observe_memory(99)
    await seconds(1)
    assert (world.models["x"].caps, world.in_memory()) == ([0], {"x"})
    world.machine.observe_memory(149)
    await seconds(1)
    assert world.in_memory() == set()
    world.machine.observe_memory(150)
    stream = world.open("x")
    await seconds(1)
    assert stream.started


@virtually
async def test_kept_prefixes_go_before_a_stream_waits() -> None:
    world = World(620, {"x": 400}, prefix_cache_bytes=200)
    first = world.open("x")
    await seconds(1)
    world.models["x"].keep(110)
    await settle()
    second = world.open("x")
    await settle()
    assert first.started
    assert second.started
    assert world.models["x"].caps == [0]
    world.models["x"].keep(0)
    await settle()
    assert world.models["x"].caps == [0, 200]


@virtually
async def test_a_stream_that_waited_for_memory_too_long_is_told_so_and_not_of_slots() -> None:
    world = World(620, {"x": 400})
    world.open("x")
    await seconds(1)
    waiting = world.open("x", buffer_bytes=100)
    await seconds(61)
    assert waiting.code == "resource_not_available"
    assert isinstance(waiting.error, PlaitError)
    assert waiting.error.data == {"model": "x", "required_bytes": 200, "available_bytes": 110}


@virtually
async def test_models_without_room_for_their_streams_do_not_lock_each_other_out() -> None:
    world = World(1000, {"x": 500, "y": 490})
    first, second = (world.open(name, buffer_bytes=0) for name in ("x", "y"))
    await seconds(1)
    assert second.code == "resource_not_available"
    await seconds(1)
    assert first.started
    assert world.in_memory() == {"x"}
    third = world.open("y", buffer_bytes=0)  # by now it is known what a stream takes
    world.finish("x", first)
    await seconds(2)
    assert third.started


@pytest.mark.parametrize("seed", range(100))
def test_in_any_interleaving_no_stream_is_caught_by_an_eviction(seed: int) -> None:
    """B11: streams on one model while others ask for another, and only one of them fits."""
    run_virtually(lambda: interleave(random.Random(seed)))


async def interleave(dice: random.Random) -> None:
    world = World(1000, TWO)
    for _ in range(20):
        if dice.random() < 0.5:
            world.open(dice.choice("xxy"))
        for name, stream in world.streams:
            if dice.random() < 0.3:
                world.finish(name, stream)
        await asyncio.sleep(dice.choice((0.0, 0.0, 0.1, 0.3)))
        world.check()
    for _ in range(4 * len(world.streams)):
        await seconds(1)
        for name, stream in world.streams:
            if not stream.ended:
                world.finish(name, stream)
    assert all(stream.ended and stream.started for _, stream in world.streams)
    assert all(stream.error is None for _, stream in world.streams)
