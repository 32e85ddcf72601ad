"""A chat of the scripted engine that calls tools: the words of its script, then the calls.

They are written the way Hermes does, a few characters a token, and told from text by the parser
that all chat engines share. `tool_choice` is obeyed; a form of JSON cannot be forced here, as there
is no grammar. Knows no slots and no time.
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


def chat_job(
    job: int, params: dict[str, Any], script: Script, *, prompt_tokens: int, max_tokens: int
) -> ChatJob:
    """Raises `InvalidRequest` where a form of JSON is asked for."""
    if not params.get("tools") and not params.get("response_format"):
        return ChatJob(job, script, prompt_tokens=prompt_tokens, max_tokens=max_tokens)
    asked = msgspec.convert(params, ChatParams)
    if (asked.response_format or {}).get("type", "text") != "text":
        raise cannot_force("response_format")
    pieces = [f"{script.say}{index} " for index in range(script.tokens)]
    calls = None
    if tools := tools_of(asked):
        calls = CallParser(HERMES, names_of(tools), parallel=asked.parallel_tool_calls)
        pieces += _cut(_calls(tools, asked.tool_choice, script))
    vocabulary = Vocabulary([piece.encode() for piece in pieces], frozenset({len(pieces)}))
    answer = AnswerText(vocabulary, asked.stop, max_tokens, calls)
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
