"""Apps on one server: rights, limits over all of an app's connections, turns in its name."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from plait.engines.base import Prepare
from plait.sessions.caller import AppAccount, Caller
from tests.fakes import MemorySocket
from tests.sessions.rig import Rig, rig
from tests.virtual_time import run_virtually, settle, virtually


def app(r: Rig, name: str = "notes", **limits: Any) -> Caller:
    return Caller(name, r.models, ("chat",), AppAccount(**limits), name)


def refusal(peer: MemorySocket, id: int) -> dict[str, Any]:
    message = peer.last(id)
    assert message["type"] == "rejected", message
    error: dict[str, Any] = message["error"]
    return error


@virtually
async def test_the_welcome_says_whose_connection_it_is_and_only_what_it_may() -> None:
    async with rig() as r:
        models = r.models.restricted((), ())
        peer = await r.connect(Caller("notes", models, ("metrics",), AppAccount(), "notes"))
        welcome = peer.received[0]
        assert (welcome["app"], welcome["methods"]) == ("notes", {})
        assert welcome["capabilities"] == ["metrics"]


@virtually
async def test_a_capability_that_is_missing_is_named_and_the_connection_goes_on() -> None:
    async with rig() as r:
        denied = Caller("a", r.models.restricted((), ()), (), AppAccount(), "a")
        peer = await r.connect(denied)
        peer.open(1)
        peer.transcribe(2)
        await settle()
        error = refusal(peer, 1)
        assert (error["code"], error["data"]) == ("capability_denied", {"capability": "chat"})
        assert refusal(peer, 2)["code"] == "unsupported_method"
        assert r.engine.sent == []


@virtually
async def test_streams_of_an_app_are_counted_over_all_its_connections() -> None:
    async with rig() as r:
        caller, other = app(r, max_streams=2), app(r, "other")
        one, two, stranger = [await r.connect(who) for who in (caller, caller, other)]
        one.open(1)
        two.open(1)
        await settle()
        two.open(2)
        stranger.open(1)
        await settle()
        assert refusal(two, 2)["code"] == "too_many_streams"
        assert refusal(two, 2)["data"] == {"limit": 2}
        assert stranger.last(1)["type"] != "rejected"
        one.say({"type": "cancel", "id": 1})
        await settle()
        two.open(3)
        await settle()
        assert two.types(3)[0] == "accepted"


@virtually
async def test_opens_beyond_an_apps_rate_wait_and_are_then_taken() -> None:
    async with rig() as r:
        caller = app(r, opens_per_second=2)
        one, two = await r.connect(caller), await r.connect(caller)
        for id in range(1, 4):
            one.open(id)
            two.open(id)
        await settle()
        refused = [m for peer in (one, two) for m in peer.received if m["type"] == "rejected"]
        assert [m["error"]["code"] for m in refused] == ["rate_limited"] * 2
        wait_ms = refused[0]["error"]["retry_after_ms"]
        assert 0 < wait_ms <= 500
        await asyncio.sleep(wait_ms / 1000)
        one.open(9)
        await settle()
        assert one.types(9)[0] == "accepted"


@virtually
async def test_turns_and_kept_prefixes_are_the_apps_and_else_the_connections() -> None:
    async with rig(slots=4) as r:
        caller = app(r)
        for peer in (await r.connect(caller), await r.connect(caller), await r.connect()):
            peer.open(1)
            await settle()
        scopes = [command.scope for command in r.engine.sent if isinstance(command, Prepare)]
        assert scopes == ["notes", "notes", "s2"]


@virtually
async def test_a_revoked_connection_is_closed_4401_and_its_streams_are_given_back() -> None:
    async with rig() as r:
        peer = await r.connect(app(r))
        for id in range(1, 5):
            peer.open(id)
        await settle()
        r.sessions[0].revoke()
        r.sessions[0].revoke()
        await settle()
        assert peer.closed is not None
        assert peer.closed[0] == 4401
        r.assert_nothing_held()
        assert r.gauge("plait_cancelled_total", by="disconnect") == 4


@virtually
async def test_what_a_revoked_connection_still_says_is_not_heard() -> None:
    async with rig() as r:
        peer = await r.connect(app(r))
        peer.stop_reading()
        peer.open(1)
        await settle()
        r.sessions[0].revoke()
        peer.open(2)
        await settle()
        assert peer.of(2) == []
        assert sum(isinstance(command, Prepare) for command in r.engine.sent) == 1


STEPS = ["open", "cancel", "items", "finish", "fail", "crash", "hang_up", "revoke", "tick"]
Step = tuple[str, int, int]


@pytest.mark.parametrize("max_streams", [1, 3])
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 3), st.integers(0, 3))))
def test_no_life_of_an_apps_streams_leaks_a_place_or_exceeds_its_limit(
    max_streams: int, steps: list[Step]
) -> None:
    async def live() -> None:
        async with rig() as r:
            caller = app(r, max_streams=max_streams)
            peers = [await r.connect(caller), await r.connect(caller)]
            for id, step in enumerate(steps, 1):
                await _take(r, caller, peers, id, step)
                await settle()
                assert 0 <= caller.account.queued + caller.account.active <= max_streams
                assert caller.account.connections <= 2
            for peer in peers:
                peer.hang_up()
            await asyncio.sleep(1)
            account = caller.account
            assert (account.queued, account.active, account.connections) == (0, 0, 0)

    run_virtually(live)


async def _take(r: Rig, caller: Caller, peers: list[MemorySocket], id: int, step: Step) -> None:
    kind, a, b = step
    peer, jobs = peers[a % 2], list(r.engine.running)
    if kind == "open":
        peer.open(id, window=0)
    elif kind == "cancel":
        peer.say({"type": "cancel", "id": max(1, id - 1 - b)})
    elif kind in ("items", "finish", "fail") and jobs:
        getattr(r.engine, kind)(jobs[b % len(jobs)])
    elif kind == "crash":
        r.engine.crash()
    elif kind == "hang_up":
        peer.hang_up()
        await asyncio.sleep(1)
        peers[a % 2] = await r.connect(caller)
    elif kind == "revoke":
        r.sessions[-1].revoke()
    elif kind == "tick":
        await asyncio.sleep(0.05)
