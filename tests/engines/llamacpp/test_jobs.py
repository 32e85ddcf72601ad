"""How the llama.cpp adapter treats its jobs, with a scripted library in place of the real one."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("xllamacpp")

from plait.engines.base import EngineInfo, Event, Failed, Feed, Finished, Item, Prepare, Released
from plait.engines.chat.prompt import ChatTokenizer
from plait.engines.llamacpp.chat import LlamaCpp
from plait.errors import InvalidRequest
from tests.engines.chat.tiny import content_of, tiny_tokenizer, write_tokenizer
from tests.engines.llamacpp.rig import Flags

WAIT_SECONDS = 60
CONTEXT_TOKENS = 256
Script = Iterable[dict[str, Any]]


class ScriptedLibrary:
    """Plays the n-th script for the n-th request; refuses probes as llama.cpp does."""

    def __init__(self) -> None:
        self.scripts: list[Script] = []
        self.bodies: list[dict[str, Any]] = []
        self.dropped = 0

    def handle_completions(self, raw: str, callback: Callable[[str], bool]) -> None:
        body = json.loads(raw)
        if len(body["prompt"]) > CONTEXT_TOKENS:
            return
        self.bodies.append(body)
        for chunk in self.scripts[len(self.bodies) - 1]:
            if callback(json.dumps(chunk)):
                self.dropped += 1
                return

    def handle_metrics(self) -> str:
        return "# HELP\nllamacpp:requests_processing 0\n"


def token(text: str) -> dict[str, Any]:
    """The chunk of a one-token text or of a special token."""
    number = tiny_tokenizer().token_to_id(text)
    entry = {"id": number, "bytes": list(text.encode()), "logprob": -0.1}
    return {"choices": [{"logprobs": {"content": [entry]}}]}


def progress(processed: int, cache: int = 0, total: int = 90) -> dict[str, Any]:
    return {"prompt_progress": {"total": total, "cache": cache, "processed": processed}}


def end(reason: str = "stop") -> dict[str, Any]:
    return {"choices": [{"finish_reason": reason}]}


class Desk:
    """The adapter, its scripted library, and all events it yielded."""

    def __init__(self, tokenizer: ChatTokenizer) -> None:
        info = EngineInfo(
            "llamacpp", "tiny", ["chat"], 2, CONTEXT_TOKENS, 50, 2 * CONTEXT_TOKENS, "reusable"
        )
        self.library = ScriptedLibrary()
        self.flags = Flags()
        self.engine = LlamaCpp(self.library, tokenizer, info, 1, self.flags, 2)
        self.events: list[Event] = []

    def start(self, job: int, *scripts: Script, **params: Any) -> None:
        self.library.scripts += scripts
        messages = [{"role": "user", "content": "x"}]
        self.engine.prepare(Prepare(job, "chat", {"messages": messages, **params}, "scope"))
        self.engine.start(job)

    def step_until(self, reached: Callable[[], bool]) -> None:
        limit = time.monotonic() + WAIT_SECONDS
        while not reached():
            assert time.monotonic() < limit
            self.events += self.engine.step()

    def finish(self) -> list[Event]:
        self.step_until(lambda: self.engine.idle)
        return self.events


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(ChatTokenizer.load(write_tokenizer(tmp_path)))


def kinds(events: list[Event], job: int = 1) -> list[str]:
    return [type(event).__name__ for event in events if getattr(event, "job", None) == job]


def test_an_answer_is_its_items_then_finished_then_released(desk: Desk) -> None:
    desk.start(1, [token("H"), token("i"), token("<|im_end|>"), end()])

    events = desk.finish()

    assert kinds(events) == ["Item", "Item", "Finished", "Released"]
    assert content_of(events) == "Hi"


def test_a_request_the_engine_refuses_fails_only_its_own_job(desk: Desk) -> None:
    desk.start(1, [{"error": {"code": 400, "message": "/secret/path"}}])
    desk.start(2, [token("H"), end()])

    events = desk.finish()

    assert kinds(events, 1) == ["Failed", "Released"]
    assert kinds(events, 2) == ["Item", "Finished", "Released"]
    (failed,) = (event for event in events if isinstance(event, Failed))
    assert failed.fault.code == "generation_failed"
    assert "secret" not in failed.fault.message


def test_a_request_that_breaks_off_fails_its_job_with_what_it_produced(desk: Desk) -> None:
    desk.start(1, [token("H"), token("i")])

    events = desk.finish()

    assert kinds(events) == ["Item", "Item", "Failed", "Released"]
    assert isinstance(events[-1], Released)
    assert events[-1].usage["completion_tokens"] == 2


def test_an_end_of_turn_the_engine_does_not_know_ends_the_answer_all_the_same(desk: Desk) -> None:
    forever = (token("H") for _ in range(100_000))
    desk.start(1, _chain([token("H"), token("<|endoftext|>")], forever))

    events = desk.finish()

    assert content_of(events) == "H"
    assert kinds(events) == ["Item", "Finished", "Released"]
    assert desk.library.dropped == 1


def test_nothing_of_a_job_is_yielded_once_it_is_cancelled(desk: Desk) -> None:
    forever = (token("H") for _ in range(100_000))
    desk.start(1, forever)
    desk.step_until(lambda: bool(desk.events))

    desk.flags.stamps[1] = time.monotonic()
    desk.engine.cancel(1)
    before = len(desk.events)
    events = desk.finish()

    assert kinds(events[before:]) == ["Released"]
    assert desk.library.dropped == 1


def test_a_resume_continues_from_token_ids_on_the_same_slot_and_cache(desk: Desk) -> None:
    gate = threading.Event()
    first = _chain([token("H"), token("i")], _after(gate, [token("!")]))
    desk.start(1, first, [token("!"), end()], temperature=0)
    desk.step_until(lambda: len(desk.events) == 2)
    desk.engine.pause(1)
    desk.engine.resume(1)
    gate.set()

    events = desk.finish()

    begun, resumed = desk.library.bodies
    produced = resumed["prompt"][len(begun["prompt"]) :]
    assert [tiny_tokenizer().id_to_token(number) for number in produced][:2] == ["H", "i"]
    assert (resumed["id_slot"], resumed["cache_prompt"]) == (begun["id_slot"], True)
    assert resumed["n_predict"] == begun["n_predict"] - len(produced)
    assert kinds(events)[-2:] == ["Finished", "Released"]


def test_a_start_beyond_the_slots_waits_for_one(desk: Desk) -> None:
    gates = [threading.Event() for _ in range(2)]
    for job, gate in enumerate(gates, start=1):
        desk.start(job, _after(gate, [token("H"), end()]))
    desk.start(3, [token("i"), end()])
    assert desk.engine.stats().slots_used == 2

    for gate in gates:
        gate.set()
    events = desk.finish()

    assert sorted(event.job for event in events if isinstance(event, Finished)) == [1, 2, 3]


def test_a_long_prompt_lets_a_short_one_pass_after_the_chunk_it_reads(desk: Desk) -> None:
    gate = threading.Event()
    delivered: list[dict[str, Any]] = []
    chunks = _noting(delivered, map(progress, range(4, 90)))
    first = _chain([progress(0), progress(2)], _after(gate, chunks))
    long = [{"role": "user", "content": "H" * 80}]
    desk.start(1, first, [progress(4, cache=4), token("i"), end()], messages=long)
    desk.step_until(lambda: desk.engine.stats().kv_bytes == 2)
    desk.library.scripts.insert(1, [token("H"), end()])
    desk.start(2)
    gate.set()

    desk.finish()

    bodies = desk.library.bodies
    assert len(delivered) <= 1  # none if it was told so in time
    assert [len(body["prompt"]) > 80 for body in bodies] == [True, False, True]
    assert (bodies[2]["id_slot"], bodies[2]["cache_prompt"]) == (bodies[0]["id_slot"], True)
    assert kinds(desk.events, 1) == kinds(desk.events, 2) == ["Item", "Finished", "Released"]


def test_a_chat_takes_no_further_input(desk: Desk) -> None:
    with pytest.raises(InvalidRequest):
        desk.engine.feed(Feed(1, texts=["more"]))


def test_item_units_add_up_to_the_usage(desk: Desk) -> None:
    desk.start(1, [token("H"), token("i"), end("length")])

    events = desk.finish()

    units = sum(event.units for event in events if isinstance(event, Item))
    (finished,) = (event for event in events if isinstance(event, Finished))
    assert finished.finish_reason == "length"
    assert units == finished.usage["completion_tokens"] == 2


def _chain(*parts: Script) -> Script:
    for part in parts:
        yield from part


def _noting(delivered: list[dict[str, Any]], chunks: Script) -> Script:
    for chunk in chunks:
        delivered.append(chunk)
        yield chunk


def _after(gate: threading.Event, chunks: Script) -> Script:
    gate.wait(WAIT_SECONDS)
    yield from chunks
