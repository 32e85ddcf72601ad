"""Several models in one budget, with real workers: they come when asked for and go when idle."""

from __future__ import annotations

import errno
import os
import random
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from plait.scheduling.pressure import Floor
from plait.scheduling.resident import RetryPolicy
from tests.live.gateway import MB, Client, Host, gateway, policy, spec

ENDLESS = "tokens=100000 step_ms=5"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PLAIT_HOME", str(tmp_path))
    return tmp_path


def pid_of(host: Host, model: str) -> int:
    (pid,) = [engine.pid for name, engine in host.gateway.hosting.engines.items() if name == model]
    assert pid is not None
    return pid


def all_idle(host: Host) -> bool:
    models = host.gateway.status()["models"]
    return all(model["active"] == model["queued"] == 0 for model in models)


async def test_an_idle_model_gives_its_process_and_memory_to_the_one_asked_for(home: Path) -> None:
    async with gateway(home, spec("a", 600), spec("b", 600), preload=["a", "b"]) as host:
        client = host.connect()
        client.ask(1, "a")
        assert (await client.hear_end(1))["type"] == "done"
        first = pid_of(host, "a")
        client.ask(2, "b")
        assert (await client.hear_of(2, "accepted"))["phase"] == "loading"
        assert (await client.hear_end(2))["type"] == "done"
        assert not psutil.pid_exists(first)
        assert (host.model("a")["state"], host.model("a")["evictions"]) == ("unloaded", 1)
        assert host.gateway.readiness() == {"a": "unloaded", "b": "ready"}
        assert host.gateway.status()["memory"]["used_bytes"] == 600 * MB
        assert host.metric("plait_model_evictions_total", model="a") == 1
        assert host.metric("plait_model_bytes", model="a") == 0
        assert (host.metric("plait_slots", model="a"), host.model("a")["slots"]) == (0, 0)
        assert host.metric("plait_model_loads_total", model="b") == 1


async def test_the_waiting_stream_sees_how_far_the_load_is(home: Path) -> None:
    async with gateway(home, spec("a", load_seconds=3.0)) as host:
        client = host.connect()
        client.ask(1, "a")
        loading = await client.hear_one(lambda m: m.get("percent") is not None)
        assert (loading["type"], loading["phase"]) == ("accepted", "loading")
        assert 0 <= loading["percent"] <= 100
        assert host.gateway.readiness() == {"a": "loading on demand"}
        client.say({"type": "cancel", "id": 1})
        await client.hear_end(1)


async def test_the_cancel_of_the_only_waiting_stream_ends_the_load(home: Path) -> None:
    async with gateway(home, spec("a", load_hang=True)) as host:
        client = host.connect()
        client.ask(1, "a")
        await client.hear_of(1, "accepted")
        await host.until(lambda: host.gateway.hosting.engines["a"].pid is not None)
        loading = pid_of(host, "a")
        client.say({"type": "cancel", "id": 1})
        assert (await client.hear_end(1))["released"] is True
        await host.until(lambda: host.model("a")["state"] == "unloaded")
        assert not psutil.pid_exists(loading)
        assert host.gateway.status()["memory"]["used_bytes"] == 0


async def test_a_load_that_failed_is_typed_and_tried_again_for_a_later_open(home: Path) -> None:
    model = spec("a", load_fail="The weights are damaged.")
    async with gateway(home, model, how=policy(retry=RetryPolicy(0.01, 0.01))) as host:
        client = host.connect()
        client.ask(1, "a")
        error = (await client.hear_end(1))["error"]
        assert error["code"] == "model_load_failed"
        assert error["message"] == "The weights are damaged."
        assert error["retry_after_ms"] == 10
        await host.until(lambda: host.gateway.status()["memory"]["used_bytes"] == 0)
        del model.options["load_fail"]
        assert (await ask_until_accepted(client, 2))["type"] == "done"


async def ask_until_accepted(client: Client, id: int) -> dict[str, Any]:
    """The end of the first stream that is not rejected for the earlier failure."""
    while True:
        client.ask(id, "a")
        end = await client.hear_end(id)
        if end["type"] != "rejected":
            return end
        id += 1


async def test_a_model_that_can_never_fit_is_refused_while_another_streams_on(home: Path) -> None:
    async with gateway(home, spec("x", 600), spec("huge", 1100)) as host:
        client = host.connect()
        client.ask(1, "x", "tokens=60 step_ms=5")
        await client.hear_of(1, "started")
        client.ask(2, "huge")
        refusal = (await client.hear_end(2))["error"]
        assert refusal["code"] == "resource_not_available"
        assert refusal["data"] == {
            "model": "huge",
            "required_bytes": 1100 * MB,
            "available_bytes": 1000 * MB,
        }
        assert (await client.hear_end(1))["usage"]["completion_tokens"] == 60
        assert host.model("x")["evictions"] == 0


async def test_streams_of_two_models_that_exclude_each_other_all_end_whole(home: Path) -> None:
    """B11 on real processes: no stream is caught by an eviction."""
    dice = random.Random(11)
    async with gateway(home, spec("x", 600), spec("y", 600)) as host:
        client = host.connect()
        for id in range(1, 31):
            client.ask(id, dice.choice("xxxy"), f"tokens={dice.randint(1, 9)} step_ms=2")
            await client.hear_of(dice.randint(1, id), "done", "started", "accepted")
        ends = [await client.hear_end(id) for id in range(1, 31)]
        assert {end["type"] for end in ends} == {"done"}
        assert host.model("x")["evictions"] + host.model("y")["evictions"] >= 1
        await host.until(lambda: all_idle(host))


async def test_short_of_memory_new_streams_are_refused_running_ones_go_on_and_it_recovers(
    home: Path,
) -> None:
    left = [1000]
    short = policy(floor=Floor(100, 150), available_bytes=lambda: left[0], sample_seconds=0.02)
    async with gateway(home, spec("x"), spec("idle"), preload=["x", "idle"], how=short) as host:
        client = host.connect()
        client.ask(1, "x", ENDLESS)
        await client.hear_of(1, "started")
        await host.until(lambda: host.model("idle")["state"] == "ready")
        left[0] = 99
        await host.until(lambda: host.model("idle")["state"] == "unloaded")
        client.ask(2, "x")
        refusal = (await client.hear_end(2))["error"]
        assert (refusal["code"], refusal["retryable"]) == ("resource_not_available", True)
        assert refusal["data"] == {"model": "x", "required_bytes": 150, "available_bytes": 99}
        left[0] = 150
        await host.until(lambda: not host.gateway.status()["memory"]["pressure"])
        client.ask(3, "idle")
        assert (await client.hear_end(3))["type"] == "done"
        client.say({"type": "cancel", "id": 1})
        assert (await client.hear_end(1))["by"] == "client"
        await host.until(lambda: all_idle(host))


async def test_a_reading_of_the_memory_that_fails_is_missed_and_nothing_else(home: Path) -> None:
    failing = iter([OSError(errno.EMFILE, "Too many open files")])

    def available_bytes() -> int:
        for error in failing:
            raise error
        return 99

    how = policy(available_bytes=available_bytes, sample_seconds=0.02)
    async with gateway(home, how=how) as host:
        await host.until(lambda: host.gateway.status()["memory"]["pressure"] is True)


async def test_a_worker_that_the_system_kills_for_memory_is_told_as_such_and_replaced(
    home: Path,
) -> None:
    kills = [3]
    watched = policy(oom_kills=lambda: kills[0], sample_seconds=1000)
    async with gateway(home, spec("x"), how=watched) as host:
        client = host.connect()
        client.ask(1, "x", ENDLESS)
        await client.hear_of(1, "started")
        kills[0] = 4
        os.kill(pid_of(host, "x"), signal.SIGKILL)
        error = (await client.hear_end(1))["error"]
        assert error["code"] == "engine_crashed"
        assert "ran out of memory" in error["message"]
        client.ask(2, "x")
        assert (await client.hear_end(2))["type"] == "done"


async def test_out_of_memory_ends_one_stream_and_no_other(home: Path) -> None:
    async with gateway(home, spec("x"), preload=["x"]) as host:
        client = host.connect()
        client.ask(1, "x", ENDLESS)
        await client.hear_of(1, "started")
        for id, script in ((2, "memory=prepare"), (3, "memory=start")):
            client.ask(id, "x", script)
            assert (await client.hear_end(id))["error"]["code"] == "out_of_memory"
        client.ask(4, "x")
        assert (await client.hear_end(4))["type"] == "done"
        client.say({"type": "cancel", "id": 1})
        assert (await client.hear_end(1))["by"] == "client"
        await host.until(lambda: all_idle(host))


async def test_an_apps_status_and_a_models_are_what_they_are(home: Path) -> None:
    async with gateway(home, spec("x"), preload=["x"]) as host:
        client = host.connect()
        client.ask(1, "x", ENDLESS)
        await client.hear_of(1, "started")
        model, status = host.model("x"), host.gateway.status()
        assert (model["slots"], model["slots_used"], model["active"]) == (4, 1, 1)
        assert model["kv_reserved_bytes"] > 0
        assert (model["loads"], model["loaded_bytes"]) == (1, 400 * MB)
        assert status["memory"]["used_bytes"] > 400 * MB + model["kv_reserved_bytes"]
        assert status["memory"]["budget_bytes"] == 1000 * MB
        client.say({"type": "cancel", "id": 1})
        await client.hear_end(1)
        assert b"plait_model_loads_total" in host.gateway.render_metrics()
