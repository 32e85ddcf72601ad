"""Our own server keeps every promise the suite asks for, all four methods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from plait.conformance.cases import Case, chosen
from plait.conformance.lab import STORY, Settings
from plait.conformance.report import lines_of
from plait.conformance.running import run_case, welcome_of
from plait.conformance.target import Target
from tests.live.server import LiveServer, live_server

TOKEN = "conformance-token"
LONG = "tokens=2000 step_ms=3"
EXPECTED_SKIPS = {"chatting.json_answer", "pending.preparing"}  # no grammars; no time to prepare
FEW = 5  # a machine that stalls may finish an answer before it can be cancelled
TEST_SECONDS = 600  # beside another suite on two cores
QUICK = (
    "cancelling.streaming_chat",
    "cancelling.paused_chat",
    "pending.prefill",
    "pending.same_segment",
    "terminals.length",
)


@pytest.fixture(scope="module")
def scripted() -> Iterator[LiveServer]:
    every = dict.fromkeys(("speech", "transcribe", "embed"), "scripted")
    with live_server(
        **every, token=TOKEN, slots=2, max_streams=12, max_queued=16, opens_per_second=50
    ) as running:
        yield running


async def broken(
    server: LiveServer, cases: Sequence[Case], prompt: str, token: str = ""
) -> tuple[list[str], set[str]]:
    """The report's lines of what is broken, and what was skipped."""
    target = Target.of(server.url, token)
    welcome = await welcome_of(target)
    outcomes = [await run_case(case, target, Settings(prompt), welcome) for case in cases]
    lines = [line for o in outcomes if o.verdict == "broken" for line in lines_of(o)]
    return lines, {o.name for o in outcomes if o.verdict == "skipped"}


@pytest.mark.slow
@pytest.mark.waits
@pytest.mark.timeout(TEST_SECONDS)
async def test_our_server_conforms(scripted: LiveServer) -> None:
    lines, skipped = await broken(scripted, chosen(), LONG, TOKEN)

    assert lines == [], "\n".join(lines)
    assert len(skipped - EXPECTED_SKIPS) <= FEW, skipped


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.timeout(TEST_SECONDS)
async def test_a_real_model_conforms_too() -> None:
    with live_server("llamacpp", slots=2, context_tokens=2048) as server:
        lines, skipped = await broken(server, chosen(QUICK), STORY)

    assert lines == [], "\n".join(lines)
    assert "cancelling.streaming_chat" not in skipped
