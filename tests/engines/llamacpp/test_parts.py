"""The llama.cpp adapter's parts without a model: requests, hidden tokens, load checks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import gguf
import pytest

pytest.importorskip("xllamacpp")

from plait.engines.base import LoadSpec, Prepare
from plait.engines.chat.text import AnswerText, Vocabulary
from plait.engines.llamacpp.engine import load
from plait.engines.llamacpp.job import Job, TokenNames
from plait.engines.llamacpp.request import Arrival, Gone, Inbox, Patience, Request
from plait.engines.llamacpp.server import fitting_chunk, slot_context_tokens
from plait.engines.llamacpp.wire import Chunk, TokenEntry, completion_body, decode_chunk
from plait.errors import ModelLoadFailed, TemplateError
from plait.models.gguf_facts import ModelFacts
from tests.engines.chat.tiny import chat, write_tokenizer
from tests.engines.llamacpp.rig import Flags
from tests.models.tiny import CONTEXT, write_gguf

WAIT_SECONDS = 60


# --- requests ------------------------------------------------------------------------------------


class ScriptedServer:
    """Delivers chunks until it is told to stop; remembers the bodies it got."""

    def __init__(self, chunks: Iterable[str], *, error: Exception | None = None) -> None:
        self.bodies: list[str] = []
        self.delivered = 0
        self._chunks = chunks
        self._error = error

    def handle_completions(self, body: str, callback: Callable[[str], bool]) -> None:
        self.bodies.append(body)
        if body == "probe":
            return
        for chunk in self._chunks:
            self.delivered += 1
            if callback(chunk):
                return
        if self._error is not None:
            raise self._error


def token_chunk(token: int = 1, **more: Any) -> str:
    entry = {"id": token, "bytes": [97], "logprob": -0.1}
    return json.dumps({"choices": [{"logprobs": {"content": [entry]}}], **more})


def run(server: ScriptedServer, *, stop_after: int | None = None) -> tuple[list[Chunk], Gone]:
    inbox: Inbox = SimpleQueue()
    request = Request(server, "body", "probe", inbox, job=1)
    request.start()
    chunks: list[Chunk] = []
    while True:
        arrived = inbox.get(timeout=WAIT_SECONDS)
        match arrived:
            case Arrival():
                chunks.append(arrived.chunk)
                if len(chunks) == stop_after:
                    request.stop()
            case Gone():
                request.join(WAIT_SECONDS)
                return chunks, arrived


def test_a_request_that_ends_by_itself_is_gone_when_its_slot_takes_the_next_task() -> None:
    server = ScriptedServer([token_chunk()] * 3)

    chunks, gone = run(server)

    assert len(chunks) == 3
    assert (gone.stopped, gone.error, server.bodies) == (False, None, ["body", "probe"])


def test_a_stopped_request_is_gone_when_its_slot_takes_the_next_task() -> None:
    server = ScriptedServer(token_chunk() for _ in range(100_000))

    _, gone = run(server, stop_after=3)

    assert gone.stopped
    assert server.delivered < 100_000
    assert server.bodies == ["body", "probe"]


@pytest.mark.parametrize(("at_once", "delivered"), [(True, 1), (False, 2)])
def test_a_request_that_gives_way_has_read_a_chunk_unless_it_is_to_at_once(
    at_once: bool, delivered: int
) -> None:
    chunks = (
        json.dumps({"prompt_progress": {"total": 900, "cache": 5, "processed": 5 + number}})
        for number in range(100)
    )
    server = ScriptedServer(chunks)
    inbox: Inbox = SimpleQueue()
    request = Request(server, "body", "probe", inbox, job=1)
    request.give_way(at_once=at_once)
    request.start()
    request.join(WAIT_SECONDS)

    assert server.delivered == delivered
    assert request.gave_way


def progress(processed: int) -> Chunk:
    return decode_chunk(
        json.dumps({"prompt_progress": {"total": 8, "cache": 0, "processed": processed}})
    )


def test_the_callback_stays_for_most_of_a_step_and_never_where_more_follows_at_once() -> None:
    token, end = decode_chunk(token_chunk()), decode_chunk('{"choices":[{"finish_reason":"stop"}]}')
    times = [(progress(0), 10.0), (progress(4), 10.2), (progress(8), 10.4), (token, 10.4)]
    times += [(token, 10.5), (token, 60.0), (end, 60.1)]
    patience = Patience()

    seconds = [patience.seconds_after(chunk, now) for chunk, now in times]

    assert seconds == pytest.approx([0, 0.18, 0, 0, 0.09, 1, 0])


def test_what_the_library_raises_and_what_cannot_be_read_arrives_as_an_error() -> None:
    raising = ScriptedServer([], error=RuntimeError("boom"))
    garbled = ScriptedServer(["{", token_chunk()])

    assert isinstance(run(raising)[1].error, RuntimeError)
    assert run(garbled)[1].error is not None
    assert garbled.delivered == 1


def test_the_body_leaves_no_sampler_setting_to_the_library() -> None:
    body = json.loads(
        completion_body(
            chat("x", temperature=0.5, top_k=9, min_p=0.1, seed=4),
            prompt=[1, 2],
            max_tokens=5,
            seed=4,
            slot=2,
            cache_prompt=False,
            context_tokens=128,
        )
    )

    assert body["samplers"] == ["penalties", "top_k", "top_p", "min_p", "temperature"]
    expected = {"temperature": 0.5, "top_k": 9, "top_p": 0.95, "min_p": 0.1, "seed": 4}
    assert expected.items() <= body.items()
    assert (body["repeat_last_n"], body["cache_prompt"], body["id_slot"]) == (128, False, 2)
    assert (body["dry_multiplier"], body["xtc_probability"], body["mirostat"]) == (0, 0, 0)


@pytest.mark.parametrize("temperature", [0.0, 5e-324, 1e-40, 5e-5])
def test_a_temperature_of_about_zero_is_greedy(temperature: float) -> None:
    params = chat("x", temperature=temperature)
    body = json.loads(
        completion_body(
            params,
            prompt=[1],
            max_tokens=5,
            seed=4,
            slot=0,
            cache_prompt=True,
            context_tokens=128,
        )
    )

    assert (body["temperature"], body["top_k"]) == (0, 1)


# --- hidden tokens -------------------------------------------------------------------------------

PIECES = [b"", b"\xe6", b"\xbc", b"\xa2", b"\xe6\xbc", b"a"]  # 漢 is e6 bc a2


def job_of(max_tokens: int = 9) -> Job:
    answer = AnswerText(Vocabulary(PIECES, frozenset({0})), [], max_tokens)
    return Job(1, "scope", chat("x"), [7, 7], answer, max_tokens)


def names() -> TokenNames:
    return TokenNames(PIECES, lambda token: f"<{token}>")


def character(predicted: int) -> Chunk:
    """The chunk that completes 漢, as the n-th token."""
    entry = {"id": 3, "bytes": [0xE6, 0xBC, 0xA2], "logprob": -0.1}
    choices = [{"logprobs": {"content": [entry]}}]
    return decode_chunk(json.dumps({"choices": choices, "timings": {"predicted_n": predicted}}))


@pytest.mark.parametrize(("predicted", "tokens"), [(3, [1, 2, 3]), (2, [4, 3])])
def test_tokens_the_library_hides_are_found_again_by_bytes_and_count(
    predicted: int, tokens: list[int]
) -> None:
    job = job_of()

    (delta,) = job.add(character(predicted), names())

    assert job.answer.tokens == tokens
    assert json.loads(delta.data) == {"content": "漢"}
    assert delta.tokens == predicted


def plain(text: str, predicted: int, **more: Any) -> Chunk:
    """A chunk without logprobs that brings token 3, as the n-th."""
    told = {"choices": [{"text": text}], "timings": {"predicted_n": predicted}}
    return decode_chunk(json.dumps({**told, "__verbose": {"tokens": [3]}, **more}))


@pytest.mark.parametrize(("predicted", "tokens"), [(3, [1, 2, 3]), (2, [4, 3])])
def test_without_logprobs_tokens_are_told_by_their_details(
    predicted: int, tokens: list[int]
) -> None:
    job = job_of()

    (delta,) = job.add(plain("漢", predicted), names())

    assert job.answer.tokens == tokens
    assert json.loads(delta.data) == {"content": "漢"}


def test_what_the_library_cannot_show_as_text_is_not_guessed() -> None:
    entry = plain("\ufffd漢", 2).token

    assert entry is not None
    assert names().find_hidden(entry, 1) == []


def test_progress_of_a_prompt_brings_no_token() -> None:
    progress = {"total": 9, "cache": 0, "processed": 4}

    assert plain("", 0, prompt_progress=progress).token is None


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        (False, {"verbose": True, "response_fields": ["tokens"]}),
        (True, {"logprobs": 1}),
        (3, {"logprobs": 3}),
    ],
)
def test_logprobs_cost_time_and_are_asked_for_only_when_somebody_wants_them(
    asked: bool | int, sent: dict[str, Any]
) -> None:
    body = json.loads(
        completion_body(
            chat("x", logprobs=asked),
            prompt=[1],
            max_tokens=5,
            seed=4,
            slot=0,
            cache_prompt=True,
            context_tokens=128,
        )
    )

    ways = {"verbose", "response_fields", "logprobs"}
    assert {name: body[name] for name in body.keys() & ways} == sent


def test_tokens_that_stay_unknown_still_count() -> None:
    job = job_of()

    job.add(character(predicted=4), names())

    assert job.usage["completion_tokens"] == 4


def test_an_end_in_the_middle_of_a_character_counts_its_tokens_and_shows_nothing() -> None:
    job = job_of()
    end = {"choices": [{"finish_reason": "length"}], "timings": {"predicted_n": 2}}

    assert job.add(decode_chunk(json.dumps(end)), names()) == []
    assert job.answer.finish_reason == "length"
    assert job.usage["completion_tokens"] == 2


def test_a_resumed_job_continues_with_all_its_tokens_and_another_seed() -> None:
    job = job_of()
    fresh = job.begin_request()
    job.add(character(predicted=3), names())

    resumed = job.begin_request()

    assert fresh == ([7, 7], job.seed)
    assert resumed == ([7, 7, 1, 2, 3], (job.seed + 3) % 0xFFFFFFFF)
    assert job.usage["reseeded"] == 1


def test_a_split_that_does_not_exist_is_not_invented() -> None:
    entry = TokenEntry(id=3, bytes=[0x41, 0xA2])

    assert names().find_hidden(entry, 1) == []


# --- load ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "chunk"), [(0.05, 8), (0.5, 4), (0.005, 80), (0.0, 512), (1e-9, 512)]
)
def test_a_chunk_takes_one_step_but_holds_at_least_every_slot(seconds: float, chunk: int) -> None:
    assert fitting_chunk(8, seconds, least=4, most=512) == chunk


def spec(**options: Any) -> LoadSpec:
    return LoadSpec("llamacpp", "tiny", slots=2, context_tokens=1000, max_tokens=10, **options)


def test_the_context_of_a_slot_is_what_is_asked_trained_and_paid_for() -> None:
    assert slot_context_tokens(spec(), ModelFacts(4096, 10)) == 1000
    assert slot_context_tokens(spec(), ModelFacts(512, 10)) == 512
    assert slot_context_tokens(spec(kv_budget_bytes=4000), ModelFacts(4096, 10)) == 200
    with pytest.raises(ModelLoadFailed, match="50 tokens"):
        slot_context_tokens(spec(kv_budget_bytes=1000), ModelFacts(4096, 10))


@pytest.mark.parametrize("content", [None, b"", b"GGUF", b"PK\x03\x04" * 100, b"GGUF" * 1000])
def test_missing_and_damaged_weights_are_a_typed_error(
    tmp_path: Path, content: bytes | None
) -> None:
    weights = tmp_path / "model.gguf"
    if content is not None:
        weights.write_bytes(content)

    with pytest.raises(ModelLoadFailed, match="pull the model again") as caught:
        load(spec(weights=str(weights)), Flags(), lambda _phase, _percent: None)

    assert str(tmp_path) not in caught.value.message


def test_a_model_with_a_broken_template_loads_because_prompts_come_as_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_template = gguf.GGUFWriter.add_chat_template
    broken = "{% for x in %} {{ broken"
    monkeypatch.setattr(
        gguf.GGUFWriter, "add_chat_template", lambda writer, _: write_template(writer, broken)
    )
    weights = write_gguf(tmp_path / "tiny.gguf")

    engine = load(
        spec(weights=str(weights), tokenizer=str(write_tokenizer(tmp_path, broken))),
        Flags(),
        lambda _phase, _percent: None,
    )

    assert engine.info.context_tokens == CONTEXT
    with pytest.raises(TemplateError):
        engine.prepare(Prepare(1, "chat", {"messages": [{"role": "user", "content": "x"}]}, "s"))
    engine.close()
