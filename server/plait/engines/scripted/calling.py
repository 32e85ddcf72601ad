"""Chats of the scripted engine with more than words: calls of tools, stop strings, logprobs.

Calls come after the words of the script. They are written the way Hermes does, a few characters a
token, and told from text by the parser that all chat engines share. `tool_choice` is obeyed; a form
of JSON cannot be forced here, as there is no grammar. Knows no slots and no time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from plait.engines.base import Event, Item
from plait.engines.chat.calls import CallParser
from plait.engines.chat.constraint import cannot_force
from plait.engines.chat.dialects import HERMES
from plait.engines.chat.text import AnswerText, Vocabulary
from plait.engines.chat.tools import names_of, tools_of
from plait.engines.scripted.jobs import ChatJob
from plait.engines.scripted.script import Script
from plait.wire.messages import ChatParams

CHARACTERS_A_TOKEN = 4


@dataclass(slots=True, kw_only=True)
class CallingJob(ChatJob):
    """The answer's tokens are numbered in order; the one after the last ends it."""

    answer: AnswerText

    def advance(self) -> list[Event]:
        delta = self.answer.add(self.produced)
        self.produced = len(self.answer.tokens)
        self.finish_reason = self.answer.finish_reason
        return [] if delta is None else [Item(self.job, delta.data, units=delta.tokens)]


@dataclass(slots=True)
class SureJob(ChatJob):
    """With `logprobs`: no other token was ever likely."""

    def advance(self) -> list[Event]:
        return [self._with_logprobs(event) for event in ChatJob.advance(self)]

    def _with_logprobs(self, event: Event) -> Event:
        if not isinstance(event, Item):
            return event
        data = msgspec.json.decode(event.data)
        entry = {"token": data["content"], "logprob": 0.0, "top": []}
        return Item(self.job, msgspec.json.encode(data | {"logprobs": [entry]}))


def _wants_logprobs(asked: int | bool) -> bool:
    """0 is a number: of the token chosen, and of no other."""
    return asked is not False


def chat_job(
    job: int, params: dict[str, Any], script: Script, *, prompt_tokens: int, max_tokens: int
) -> ChatJob:
    """Raises `InvalidRequest` where a form of JSON is asked for."""
    if not any(params.get(name) for name in ("tools", "response_format", "stop")):
        kind = SureJob if _wants_logprobs(params.get("logprobs", False)) else ChatJob
        return kind(job, script, prompt_tokens=prompt_tokens, max_tokens=max_tokens)
    asked = msgspec.convert(params, ChatParams)
    if (asked.response_format or {}).get("type", "text") != "text":
        raise cannot_force("response_format")
    pieces = [f"{script.say}{index} " for index in range(script.tokens)]
    calls = None
    if tools := tools_of(asked):
        calls = CallParser(HERMES, names_of(tools), parallel=asked.parallel_tool_calls)
        pieces += _cut(_calls(tools, asked.tool_choice, script))
    vocabulary = Vocabulary([piece.encode() for piece in pieces], frozenset({len(pieces)}))
    answer = AnswerText(vocabulary, asked.stop or [], max_tokens, calls)
    return CallingJob(
        job, script, prompt_tokens=prompt_tokens, max_tokens=max_tokens, answer=answer
    )


def _calls(tools: list[dict[str, Any]], choice: str | dict[str, Any], script: Script) -> str:
    name = script.call
    if isinstance(choice, dict):
        name = choice["function"]["name"]
    elif choice == "required":
        name = name or tools[0]["function"]["name"]
    body = f'{{"name": "{name}", "arguments": {script.args}}}'
    return f"<tool_call>\n{body}\n</tool_call>" * (script.calls if name else 0)


def _cut(text: str) -> list[str]:
    size = CHARACTERS_A_TOKEN
    return [text[begin : begin + size] for begin in range(0, len(text), size)]
