"""What the answer must look like, as a grammar of llguidance: forced calls, JSON, JSON of a schema.

Both chat engines take this language. A forced call is written the way the model's own family writes
calls, so that the parser of calls reads it like any other. Pure text: whether a schema can be
compiled is found out in `constraint`. Knows no engines and no tokens but the ids of markup.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from plait.engines.chat.dialects import Dialect
from plait.engines.chat.tools import tools_of
from plait.wire.messages import ChatParams

HEADER = "%llguidance {}"
MOST_CALLS = 16  # of one forced answer: a model that cannot end would go on to its last token
ANY_OBJECT = {"type": "object"}
# Space without bound is where small models get lost. `oneOf` is taken for `anyOf`.
JSON_OPTIONS = {"whitespace_pattern": r"[\x20\x0A\x0D\x09]{1,20}", "coerce_one_of": True}


class Grammar(NamedTuple):
    """`text` for an engine, where markup that is a special token is told by its id; `shown`: the
    same for the text that is parsed, where a mark stands for it. `param`: which field asked.
    `schemas`: the rules that came from the peer, by their field.
    """

    text: str
    shown: str
    param: str
    schemas: dict[str, str]


def grammar_of(params: ChatParams, dialect: Dialect, ids: Mapping[str, int]) -> Grammar | None:
    """None: the answer is free. `ids`: of markup that is a special token, by its mark."""
    tools = dict(enumerate(tools_of(params) or []))
    forced = bool(tools) and params.tool_choice != "auto"
    answer = None if forced else _answer_schema(params.response_format)
    if not forced and answer is None:
        return None
    if isinstance(params.tool_choice, dict):
        wanted = params.tool_choice["function"]["name"]
        tools = {index: t for index, t in tools.items() if t["function"]["name"] == wanted}
    schemas = {f"tools[{index}].function.parameters": _arguments(t) for index, t in tools.items()}
    names = [tool["function"]["name"] for tool in tools.values()]
    most = MOST_CALLS if params.parallel_tool_calls and params.tool_choice == "required" else 1
    calls = _Calls(dialect, dict(zip(names, schemas.values(), strict=True)), most)
    rules = (calls.rules(ids), calls.rules({})) if tools else ([], [])
    if answer is not None:
        schemas["response_format"] = answer
    text, shown = (_joined(answer, calls_rules) for calls_rules in rules)
    return Grammar(text, shown, "tool_choice" if forced else "response_format", schemas)


def of_schema(schema: str) -> str:
    """The grammar of one of `Grammar.schemas` alone."""
    return f"{HEADER}\nstart: {schema}"


def _joined(answer: str | None, calls: list[str]) -> str:
    starts = ["answer"] * (answer is not None) + ["calls"] * bool(calls)
    answers = [] if answer is None else [f"answer: {answer}"]
    return "\n".join([HEADER, f"start: {' | '.join(starts)}", *answers, *calls])


def _answer_schema(response_format: dict[str, Any] | None) -> str | None:
    match response_format:
        case {"type": "json_schema", "json_schema": {"schema": schema}}:
            return _json(schema)
        case {"type": "json_object"}:
            return _json(ANY_OBJECT)
    return None


def _arguments(tool: dict[str, Any]) -> str:
    """What a tool's schema asks beyond what the compiler knows is the tool's to check."""
    return _json(tool["function"].get("parameters") or ANY_OBJECT, lenient=True)


def _json(schema: dict[str, Any], **options: Any) -> str:
    return "%json " + json.dumps({**schema, "x-guidance": {**JSON_OPTIONS, **options}})


class _Calls(NamedTuple):
    """Calls the way a family writes them: `tools` are schemas by name, `most` the calls at most."""

    dialect: Dialect
    tools: dict[str, str]
    most: int

    def rules(self, ids: Mapping[str, int]) -> list[str]:
        def text(*parts: str) -> str:
            return " ".join(f"<[{ids[p]}]>" if p in ids else json.dumps(p) for p in parts if p)

        dialect = self.dialect
        opener, closer = text(dialect.opener), text(dialect.closer)
        match dialect.form:
            case "list":
                first, further, end = f'{opener} "[" call', '", " call', ' "]"'
            case "named":
                first, further, end = f"{opener} call", f"{opener} call", ""
            case "object" if dialect.bare:
                first, further, end = "call", '"; " call', ""
            case "object":
                first = f'{opener} "\\n" call "\\n" {closer}'
                further, end = f'"\\n" {first}', ""
        more = f" ({further}){{0,{self.most - 1}}}" if self.most > 1 else ""
        numbers = range(len(self.tools))
        rules = [f"calls: {first}{more}{end}", f"call: {' | '.join(f't{n}' for n in numbers)}"]
        for number, (name, schema) in enumerate(self.tools.items()):
            if dialect.form == "named":
                rules.append(f"t{number}: {text(name, dialect.args)} a{number}")
            else:
                head = f'{{"name": {json.dumps(name)}, "{dialect.key}": '
                rules.append(f't{number}: {text(head)} a{number} "}}"')
            rules.append(f"a{number}: {schema}")
        return rules
