"""Grammars compiled, and answers held against them, by llguidance; see `grammar` for the language.

A compiler's work is bounded by its own limits and by `MAX_GRAMMAR_BYTES`, so that no schema holds
up a worker. Engines obey a grammar by themselves; `Watch` reads what comes out all the same, as
one of them goes on without it, silently, when it finds it too complex. Knows no engine.
"""

from __future__ import annotations

import functools
import importlib.util
import re
from typing import Any

from plait.engines.chat.grammar import Grammar, of_schema
from plait.errors import GenerationFailed, InvalidRequest

# Compiling takes at most some 0.1 s at this size, and a step at most 0.03 s under these limits.
MAX_GRAMMAR_BYTES = 49_152
MAX_GRAMMAR_NODES = 50_000
LEXER_FUEL = 300_000

_QUOTED = re.compile(r"\n *\d+ \||<state>")


class Watch:
    """Follows one answer, text by text. Raises `InvalidRequest` when the grammar is unusable."""

    def __init__(self, grammar: Grammar) -> None:
        if not can_compile():
            raise cannot_force(grammar.param)
        size_bytes = len(grammar.shown)
        if size_bytes > MAX_GRAMMAR_BYTES:
            raise InvalidRequest(
                f"{grammar.param}: the schemas take {size_bytes} bytes, and {MAX_GRAMMAR_BYTES} "
                "can be enforced. Send smaller ones.",
                param=grammar.param,
            )
        self._matcher = _compile(grammar.shown)
        if self._matcher.is_error():
            raise _unusable(grammar, self._matcher.get_error())

    def add(self, text: str) -> None:
        """Raises `GenerationFailed`."""
        if not self._matcher.consume_tokens(list(text.encode())):
            raise GenerationFailed(
                "The answer left the form it had to have, which the engine found too complex. "
                "Ask for a simpler schema."
            )

    def finish(self) -> None:
        """The model ended its turn. Raises `GenerationFailed` if it may not end here."""
        if not self._matcher.is_accepting():
            raise GenerationFailed(
                "The model ended before its answer had the form it had to have; try again."
            )


def can_compile() -> bool:
    return importlib.util.find_spec("llguidance") is not None


def cannot_force(param: str) -> InvalidRequest:
    return InvalidRequest(
        f"{param}: this engine cannot force the form of an answer, as its build or the package "
        "llguidance is not here. Leave the field out, or use another model.",
        param=param,
    )


def _compile(grammar: str) -> Any:
    """A matcher over bytes; it reports errors when asked, and raises none."""
    from llguidance import LLMatcher, LLParserLimits

    limits = LLParserLimits(max_grammar_size=MAX_GRAMMAR_NODES, initial_lexer_fuel=LEXER_FUEL)
    matcher = LLMatcher(_bytes_as_tokens(), grammar, log_level=0, limits=limits)
    matcher.compute_bitmask()  # some schemas are too much only for the first step
    return matcher


def _unusable(grammar: Grammar, report: str) -> InvalidRequest:
    """Names the field whose schema it is; the compiler's words without the text they quote."""
    param = grammar.param
    for field, schema in grammar.schemas.items():
        matcher = _compile(of_schema(schema))
        if matcher.is_error():
            param, report = field, matcher.get_error()
            break
    words = _QUOTED.split(report)[0].rpartition("JSON schema: ")[2]
    what = " ".join(words.split())[:200].rstrip(". ") or "it is too complex"
    return InvalidRequest(
        f"{param}: this schema cannot be enforced: {what}. Simplify it.", param=param
    )


@functools.cache
def _bytes_as_tokens() -> Any:
    from llguidance import LLTokenizer

    return LLTokenizer("byte")
