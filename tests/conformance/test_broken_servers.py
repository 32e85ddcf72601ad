"""The suite can fail: a server that breaks a promise is found out by the case that asks for it."""

from __future__ import annotations

import pytest

from plait.conformance.cases import Case, chosen
from plait.conformance.lab import Settings
from plait.conformance.report import Outcome
from plait.conformance.running import run_case, welcome_of
from plait.conformance.target import Target
from tests.conformance.small_server import small_server

FOUND_BY = {
    "any subprotocol": "handshake.no_subprotocol",
    "any origin": "handshake.foreign_origin",
    "tokens in URLs": "handshake.token_in_url",
    "deflate": "handshake.no_compression",
    "a pong before welcome": "handshake.welcome",
    "limits without window": "handshake.welcome",
    "pongs of another n": "handshake.pings",
    "another code for an old id": "ids.reuse",
    "errors of another class": "chatting.unsupported_method",
    "rejected after accepted": "terminals.length",
    "a gap": "terminals.text",
    "two terminals": "terminals.text",
    "an item after the terminal": "cancelling.streaming_chat",
    "a terminal of another seq": "terminals.text",
    "a terminal without usage": "cancelling.streaming_chat",
    "started at once": "pending.same_segment",
    "no cancels": "cancelling.streaming_chat",
    "items after a cancel": "cancelling.paused_chat",
    "cancelled by another": "cancelling.streaming_chat",
    "stop_ms of what was not released": "cancelling.streaming_chat",
    "windows exceeded": "flow.one_by_one",
    "acks of anything": "flow.ack_beyond",
    "an error for a late ack": "flow.late_ack",
    "no deadlines": "deadlines.paused",
    "a bad open closes": "faults.bad_open",
    "frames of any size": "frames.text_too_large",
    "no end of a flood": "floods.flood",
}
PATIENT_SECONDS = 20.0
SHORT_SECONDS = 0.6  # for a server that will never do it


def case_named(name: str) -> Case:
    (found,) = (case for case in chosen() if case.name == name)
    return found


async def verdict_on(quirk: str, name: str, seconds: float) -> Outcome:
    async with small_server(quirk) as url:
        target = Target.of(url, seconds=seconds)
        welcome = await welcome_of(Target.of(url)) if quirk != "limits without window" else {}
        welcome = welcome or {"methods": {"chat": {"models": ["small"]}}, "limits": {}}
        return await run_case(case_named(name), target, Settings(), welcome)


@pytest.mark.parametrize("quirk", FOUND_BY)
async def test_a_broken_promise_is_found_by_its_case(quirk: str) -> None:
    outcome = await verdict_on(quirk, FOUND_BY[quirk], SHORT_SECONDS)

    assert outcome.verdict == "broken", outcome
    assert outcome.faults[0].section.startswith(("§", "R", "S"))


@pytest.mark.parametrize("name", sorted(set(FOUND_BY.values())))
async def test_the_same_server_with_no_promise_broken_holds(name: str) -> None:
    outcome = await verdict_on("", name, PATIENT_SECONDS)

    assert outcome.verdict == "holds", outcome
