from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import psutil
import pytest

from plait.engines.base import (
    EngineInfo,
    Item,
    Loading,
    Prepared,
    Refused,
    Released,
    Start,
)
from plait.engines.process import EngineProcess
from plait.engines.restart import Limits
from tests.engines.recording import (
    Lost,
    RecordingListener,
    Unloaded,
    cancel_job,
    open_job,
    prepare,
    ready_engine,
    running_engine,
    scripted_spec,
)

ENDLESS = "tokens=100000 step_ms=2"


def signal_worker(engine: EngineProcess, number: signal.Signals) -> None:
    assert engine.pid is not None
    os.kill(engine.pid, number)


async def test_load_progress_comes_before_ready_with_the_info() -> None:
    async with running_engine() as (engine, told):
        percents = []
        while (loading := await told.expect(Loading)).percent != 100:
            percents.append(loading.percent)
        info = await told.expect(EngineInfo)

        assert percents == [None, 0, 25, 50, 75]
        assert (info.model, info.slots) == ("scripted", 4)
        assert (engine.state, engine.info) == ("ready", info)
        assert engine.healthy(time.monotonic())


async def test_a_job_runs_to_its_end_and_gives_everything_back() -> None:
    async with ready_engine() as (engine, told):
        open_job(engine, 1, "tokens=3 hello")

        assert (await told.expect(Prepared)).prompt_tokens == 2
        texts = [(await told.expect(Item)).data for _ in range(3)]
        released = await told.expect(Released)

        assert b"".join(texts) == b'{"content":"w0 "}{"content":"w1 "}{"content":"w2 "}'
        assert released.usage["completion_tokens"] == 3
        assert released.wasted == 0


async def test_a_cancel_in_a_long_step_releases_and_sends_nothing_more() -> None:
    async with ready_engine() as (engine, told):
        open_job(engine, 1, "tokens=100 step_ms=5000")
        await told.expect(Prepared)

        begin = time.monotonic()
        cancel_job(engine, 1)
        released = await told.expect(Released)

        assert released.at - begin < 4  # the step takes 5 s
        assert told.take_all_nowait() == []


async def test_gauges_are_down_when_the_release_is_told() -> None:
    async with ready_engine() as (engine, told):
        open_job(engine, 1, ENDLESS)
        await told.expect(Item)
        cancel_job(engine, 1)
        await told.expect(Released)

        assert (engine.stats.slots_used, engine.stats.kv_bytes) == (0, 0)
        assert engine.stats.steps > 0


async def test_what_a_deaf_engine_computes_after_the_cancel_counts_as_wasted() -> None:
    async with ready_engine() as (engine, told):
        for job in range(1, 21):
            open_job(engine, job, "tokens=100 step_ms=200 burst=7 deaf=1")
            await told.expect(Item)  # the next step begins, unless the cancel is faster still
            cancel_job(engine, job)
            if wasted := (await told.expect(Released)).wasted:
                break

        assert wasted == 7
        assert engine.stats.dead_seconds > 0


async def test_a_worker_killed_in_a_job_is_told_and_replaced() -> None:
    async with ready_engine() as (engine, told):
        open_job(engine, 1, ENDLESS)
        await told.expect(Item)

        signal_worker(engine, signal.SIGKILL)
        lost = await told.expect(Lost)

        assert lost.error.code == "engine_crashed"
        assert engine.state == "restarting"
        await told.expect(EngineInfo)
        open_job(engine, 2, "tokens=1")
        assert (await told.expect(Released)).job == 2


@pytest.mark.parametrize(
    ("script", "cause"),
    [
        ("raise_at=2", "exit status 70"),
        ("crash_at=2", "signal 9"),
        ("memory=step", "it ran out of memory"),
    ],
)
async def test_a_crash_says_how_the_worker_ended(script: str, cause: str) -> None:
    async with ready_engine() as (engine, told):
        open_job(engine, 1, script)

        lost = await told.expect(Lost)

        assert cause in lost.error.message
        assert lost.error.retry_after_ms == 100


async def test_nothing_of_the_old_worker_arrives_after_its_loss() -> None:
    async with ready_engine() as (engine, told):
        open_job(engine, 1, "tokens=100000 burst=32")
        await told.expect(Item)

        engine.kill("the test says so")
        lost = await told.expect(Lost)

        assert "the test says so" in lost.error.message
        told.passed.clear()
        await told.expect(EngineInfo)
        assert {type(call) for call in told.passed} == {Loading, EngineInfo}


async def test_a_stopped_worker_is_unhealthy_and_recovers_when_continued() -> None:
    limits = Limits(ping_seconds=0.05, unhealthy_seconds=0.3, stalled_seconds=30)
    async with ready_engine(limits) as (engine, told):
        pid = engine.pid

        signal_worker(engine, signal.SIGSTOP)
        await until_healthy(engine, False)
        signal_worker(engine, signal.SIGCONT)
        await until_healthy(engine, True)

        assert engine.pid == pid
        open_job(engine, 1, "tokens=1")
        await told.expect(Released)


async def until_healthy(engine: EngineProcess, wanted: bool) -> None:
    async with asyncio.timeout(60):
        while engine.healthy(time.monotonic()) is not wanted:  # noqa: ASYNC110 - asked, not told
            await asyncio.sleep(0.02)


async def test_a_hanging_worker_is_killed_and_replaced() -> None:
    limits = Limits(ping_seconds=0.05, unhealthy_seconds=0.2, stalled_seconds=2)
    async with ready_engine(limits) as (engine, told):
        open_job(engine, 1, "hang_at=1")
        await told.expect(Item)

        lost = await told.expect(Lost)

        assert "no progress for 2 s" in lost.error.message
        await told.expect(EngineInfo)


async def test_a_slow_step_is_no_reason_to_kill() -> None:
    limits = Limits(ping_seconds=0.05, unhealthy_seconds=0.1, stalled_seconds=5)
    async with ready_engine(limits) as (engine, told):
        open_job(engine, 1, "tokens=1 step_ms=700 deaf=1")

        assert (await told.expect(Released)).usage["completion_tokens"] == 1


async def test_a_load_failure_is_typed_final_and_not_retried() -> None:
    async with running_engine(load_fail="The weights are of a later format.") as (engine, told):
        lost = await told.expect(Lost)

        assert lost.error.code == "model_load_failed"
        assert lost.error.message == "The weights are of a later format."
        assert (engine.state, engine.pid) == ("failed", None)
        assert not engine.healthy(time.monotonic())


async def test_an_untyped_load_failure_leaks_nothing() -> None:
    async with running_engine(load_raise="/secret/path is broken") as (_, told):
        lost = await told.expect(Lost)

        assert lost.error.code == "model_load_failed"
        assert "secret" not in lost.error.message
        assert "RuntimeError" in lost.error.message


async def test_a_library_that_dies_while_loading_is_retried_a_few_times() -> None:
    limits = Limits(first_backoff_seconds=0.01, max_deaths_while_loading=3)
    async with running_engine(limits, load_crash=True) as (engine, told):
        codes = [(await told.expect(Lost)).error.code for _ in range(3)]

        assert codes == ["engine_crashed", "engine_crashed", "model_load_failed"]
        assert engine.state == "failed"


async def test_refusals_of_prepare_and_start_are_typed_and_hold_nothing() -> None:
    async with ready_engine() as (engine, told):
        open_job(engine, 1, "refuse=template_error")
        open_job(engine, 2, "memory=prepare")
        open_job(engine, 3, "memory=start")
        open_job(engine, 4, "tokens=1")

        faults: dict[int, str] = {}
        for _ in range(5):  # the starts of jobs 1 and 2 cross their refusals
            refused = await told.expect(Refused)
            faults.setdefault(refused.job, refused.fault.code)

        assert faults == {1: "template_error", 2: "out_of_memory", 3: "out_of_memory"}
        assert (await told.expect(Released)).job == 4


async def test_counters_run_on_over_a_restart_and_gauges_do_not() -> None:
    async with ready_engine() as (engine, told):
        open_job(engine, 1, "tokens=5")
        await told.expect(Released)
        open_job(engine, 2, ENDLESS)
        await told.expect(Item)
        steps = engine.stats.steps
        engine.kill("the test says so")
        await told.expect(EngineInfo)

        assert engine.stats.steps >= steps > 0
        assert engine.stats.slots_used == 0


async def test_close_releases_what_runs_and_ends_the_process() -> None:
    listener = RecordingListener()
    engine = EngineProcess(scripted_spec(), listener)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(engine.run())
        await listener.expect(EngineInfo)
        pid = engine.pid
        open_job(engine, 1, ENDLESS)
        await listener.expect(Item)
        await engine.close(grace_seconds=10)

    assert (await listener.expect(Released)).job == 1
    assert engine.state == "closed"
    assert pid is not None
    assert not psutil.pid_exists(pid)


async def test_close_kills_a_worker_that_does_not_listen() -> None:
    limits = Limits(ping_seconds=0.05, unhealthy_seconds=0.3, stalled_seconds=1000)
    async with ready_engine(limits) as (engine, told):
        open_job(engine, 1, "hang_at=1")
        await told.expect(Item)
        await until_healthy(engine, False)  # the next step has begun, and never returns

        await engine.close(grace_seconds=0.1)

        assert engine.state == "closed"
        assert "did not end within 0.1 s" in (await told.expect(Lost)).error.message


async def test_close_does_not_wait_for_a_load() -> None:
    async with running_engine(load_hang=True) as (engine, told):
        await told.expect(Loading)

        await engine.close(grace_seconds=1000)

        assert engine.state == "closed"
        assert told.take_all_nowait() == []


async def test_close_without_run_returns() -> None:
    engine = EngineProcess(scripted_spec(), RecordingListener())

    await engine.close(grace_seconds=0)

    engine.send(Start(1))
    assert engine.pid is None


async def test_a_cancelled_run_leaves_no_process() -> None:
    listener = RecordingListener()
    engine = EngineProcess(scripted_spec(), listener)
    async with asyncio.TaskGroup() as tasks:
        run = tasks.create_task(engine.run())
        await listener.expect(EngineInfo)
        pid = engine.pid
        run.cancel()

    assert pid is not None
    assert not psutil.pid_exists(pid)
    assert engine.state == "closed"


async def test_what_a_worker_may_see_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_TOKEN", "CANARY")
    async with ready_engine() as (engine, _):
        assert engine.pid is not None
        worker = psutil.Process(engine.pid)
        assert "CANARY" not in str(worker.environ())
        assert os.getpgid(worker.pid) != os.getpgid(os.getpid())


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors in /proc")
async def test_thirty_restarts_leak_no_descriptor_and_no_process() -> None:
    limits = Limits(first_backoff_seconds=0.001, max_backoff_seconds=0.001)
    async with ready_engine(limits) as (engine, told):
        descriptors, children = count_held()
        for job in range(30):
            engine.send(prepare(job, ENDLESS))
            engine.kill("the test says so")
            await told.expect(EngineInfo)

        assert count_held() == (descriptors, children)


def count_held() -> tuple[int, int]:
    me = psutil.Process()
    return me.num_fds(), len(me.children(recursive=True))


async def test_an_unloaded_engine_has_no_process_and_can_be_loaded_again() -> None:
    async with ready_engine() as (engine, told):
        for _ in range(2):
            pid = engine.pid
            assert pid is not None
            engine.unload()
            assert engine.state == "unloading"
            await told.expect(Unloaded)
            assert (engine.state, engine.pid) == ("unloaded", None)
            assert not psutil.pid_exists(pid)
            engine.load()
            await told.expect(EngineInfo)
        open_job(engine, 1, "tokens=1")
        assert (await told.expect(Released)).job == 1
        assert not any(isinstance(call, Lost) for call in told.passed)


async def test_what_its_worker_takes_of_the_machine_is_measured() -> None:
    async with running_engine() as (engine, told):
        info = await told.expect(EngineInfo)
        assert engine.pid is not None
        resident = psutil.Process(engine.pid).memory_info().rss
        assert 1_000_000 < info.loaded_bytes < 2 * resident


async def test_a_load_can_be_taken_back_and_is_not_a_loss() -> None:
    async with running_engine(load_hang=True) as (engine, told):
        await told.expect(Loading)
        engine.unload()
        await told.expect(Unloaded)
        assert engine.state == "unloaded"
        assert not any(isinstance(call, Lost) for call in told.passed)


async def test_a_load_taken_back_before_it_began_is_told_too() -> None:
    async with running_engine() as (engine, told):
        engine.unload()
        await told.expect(Unloaded)
        engine.load()
        engine.unload()
        await told.expect(Unloaded)
        engine.load()
        await told.expect(EngineInfo)


async def test_an_unload_ends_the_wait_for_a_restart() -> None:
    limits = Limits(first_backoff_seconds=1000)
    async with ready_engine(limits) as (engine, told):
        engine.kill("the test says so")
        await told.expect(Lost)
        engine.unload()
        await told.expect(Unloaded)
        engine.load()
        await told.expect(EngineInfo)


async def test_an_engine_that_does_not_hear_that_it_is_unloaded_is_killed() -> None:
    async with ready_engine(Limits(unload_seconds=0.2)) as (engine, told):
        signal_worker(engine, signal.SIGSTOP)
        engine.unload()
        await told.expect(Unloaded)
        assert not any(isinstance(call, Lost) for call in told.passed)


async def test_a_load_has_a_deadline_and_the_next_load_is_a_new_one() -> None:
    limits = Limits(load_seconds=0.3)
    async with running_engine(limits, load_hang=True) as (engine, told):
        lost = await told.expect(Lost)
        assert lost.error.code == "model_load_failed"
        assert "was not loaded within 0.3 s" in lost.error.message
        await told.expect(Unloaded)
        assert (engine.state, engine.pid) == ("failed", None)
        engine.load()
        await told.expect(Lost)


async def test_a_worker_that_was_killed_for_memory_says_so_only_when_the_system_did_it() -> None:
    killed = [True, False]

    async def killed_for_memory() -> bool:
        return killed.pop(0)

    listener = RecordingListener()
    engine = EngineProcess(scripted_spec(), listener, killed_for_memory=killed_for_memory)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(engine.run())
        for cause in ("the system ran out of memory and killed it", "signal 9"):
            await listener.expect(EngineInfo)
            signal_worker(engine, signal.SIGKILL)
            assert cause in (await listener.expect(Lost)).error.message
        await engine.close(grace_seconds=5)
