"""The model's chat template, rendered in Jinja's immutable sandbox.

The template is the model author's code, the messages are a peer's data; so a failure is always
the typed `template_error` of one request and never the model's or the worker's end. A template
that refuses a role says so itself (`raise_exception`), and its words are passed on: Plait does not
rewrite a conversation to please a template. Knows nothing of tokens beyond the special ones' text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from plait.errors import TemplateError

# Noncharacters: they mean nothing in any text, so one that the peer did not send can be our mark.
_MARKS = [chr(code) for code in (*range(0xFDD0, 0xFDF0), *range(0xF0000, 0xFFFFE))]


class ChatTemplate:
    """Renders conversations; `sources` by name ("default", "tool_use") as models ship them."""

    def __init__(self, sources: dict[str, str], tokens: dict[str, str]) -> None:
        self._tokens = tokens
        self._sources = sources
        self._environment = _environment()
        self._templates: dict[str, jinja2.Template | None] = {
            name: self._compile(source) for name, source in sources.items()
        }

    @classmethod
    def load(cls, directory: Path, config: dict[str, Any]) -> ChatTemplate:
        """From chat_template.jinja beside the tokenizer, else tokenizer_config's member."""
        separate = directory / "chat_template.jinja"
        source = separate.read_text("utf-8") if separate.exists() else config.get("chat_template")
        if isinstance(source, list):
            sources = {entry["name"]: entry["template"] for entry in source}
        else:
            sources = {"default": source} if isinstance(source, str) else {}
        return cls(sources, _special_tokens(config))

    @property
    def tool_source(self) -> str | None:
        """The source of the template that is told of tools; None if none looks at them."""
        source = self._tool_source
        return source if re.search(r"\btools\b", source) else None

    @property
    def shows_calls(self) -> bool:
        """Whether it renders the calls of a message, and results, rather than leaving them out."""
        return "tool_calls" in self._tool_source

    @property
    def _tool_source(self) -> str:
        return self._sources.get("tool_use", self._sources.get("default", ""))

    def render(
        self,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]] | None,
        special: re.Pattern[str] | None,
    ) -> tuple[str, str]:
        """-> (prompt text, mark): the text is to be split at the mark before tokenizing.

        Marks stand inside each special token that came from the peer and nowhere else.
        Raises `TemplateError`.
        """
        template = self._choose(tools)
        try:
            mark = _unused_mark(messages, tools)
            guard = _guard(special, mark)
            text = template.render(
                messages=guard(messages),
                tools=guard(tools),
                add_generation_prompt=True,
                **self._tokens,
            )
        except jinja2.TemplateError as error:
            said = (error.message or "").replace(mark, "")[:300]
            raise TemplateError(
                f"The model's chat template refuses these messages: {said}", param="messages"
            ) from error
        except Exception as error:  # the author's code on a peer's data: anything may be raised
            raise TemplateError(
                "The model's chat template cannot render these messages "
                f"({type(error).__name__}). Check roles and contents.",
                param="messages",
            ) from error
        return text, mark

    def _compile(self, source: str) -> jinja2.Template | None:
        try:
            return self._environment.from_string(source)
        except jinja2.TemplateError:
            return None

    def _choose(self, tools: list[dict[str, Any]] | None) -> jinja2.Template:
        name = "tool_use" if tools and "tool_use" in self._templates else "default"
        template = self._templates.get(name)
        if template is None:
            problem = "is broken" if name in self._templates else "is missing"
            raise TemplateError(
                f"The model's chat template {problem}; chat needs another model.", param="model"
            )
        return template


class _Generation(Extension):
    """`{% generation %}` marks training spans in some templates; for prompts it is transparent."""

    tags = {"generation"}  # noqa: RUF012 - Jinja's own class attribute

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.loopcontrols", _Generation],
    )
    environment.filters["tojson"] = _to_json  # Jinja's own escapes <, > and & for HTML
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.now().astimezone().strftime(form)
    return environment


def _to_json(value: Any, indent: int | None = None, **options: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent, **options)


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _special_tokens(config: dict[str, Any]) -> dict[str, str]:
    """bos_token, eos_token … as the template's variables."""
    named = {key: value for key, value in config.items() if key.endswith("_token")}
    texts = {
        key: value["content"] if isinstance(value, dict) else value for key, value in named.items()
    }
    return {key: text for key, text in texts.items() if isinstance(text, str)}


def _unused_mark(*values: Any) -> str:
    """A character that occurs in none of the strings of `values`."""
    text = json.dumps(values, ensure_ascii=False)
    return next(mark for mark in _MARKS if mark not in text)


def _guard(special: re.Pattern[str] | None, mark: str) -> Callable[[Any], Any]:
    """Puts `mark` behind the first character of every special token in the strings of a value."""

    def guard(value: Any) -> Any:
        if isinstance(value, str):
            return special.sub(lambda m: m[0][0] + mark + m[0][1:], value) if special else value
        if isinstance(value, list):
            return [guard(entry) for entry in value]
        if isinstance(value, dict):
            return {guard(key): guard(entry) for key, entry in value.items()}
        return value

    return guard
