"""How models write tool calls: which markup begins one, by the model's own template.

Three families cover what is in use: Hermes (Qwen, SmolLM, Granite and many more), Llama 3, Mistral.
Markup that is a special token has no text; where it matters it is told by a noncharacter instead
(`MARKS`), which the parser never shows. Knows no text of an answer (see `calls`) and no grammar.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Form: TypeAlias = Literal["object", "list", "named"]

# Special tokens that are markup of calls, and what stands for them in the text that is parsed.
MARKS = {
    name: chr(0xFDD0 + index)
    for index, name in enumerate(
        ("<tool_call>", "</tool_call>", "<|python_tag|>", "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]")
    )
}


class Dialect(NamedTuple):
    """`opener` comes before a call, `closer` after it ("": none).

    `bare`: an answer that begins with a call's object is one, without any opener. `between` may
    stand between calls, beside space. A call forced by a grammar has the form `form` and its
    arguments under `key`; all forms are understood. `args` and `call_id`: markup of form "named".
    """

    opener: str
    closer: str = ""
    bare: bool = False
    between: str = ""
    form: Form = "object"
    key: str = "arguments"
    args: str = "[ARGS]"
    call_id: str = "[CALL_ID]"


HERMES = Dialect("<tool_call>", "</tool_call>")
LLAMA = Dialect("<|python_tag|>", bare=True, between=";", key="parameters")
MISTRAL = Dialect("[TOOL_CALLS]", form="list")
UNKNOWN = HERMES._replace(bare=True)
"""Of a template that shows tools in a way we do not know: most answer in one of these two ways."""


def dialect_of(template: str | None, special: frozenset[str]) -> Dialect:
    """By the source of the template that shows tools, None if there is none; `special`: tokens."""
    if template is None or HERMES.opener in template:
        dialect = HERMES
    elif MISTRAL.opener in template or MISTRAL.opener in special:
        dialect = MISTRAL._replace(form="named" if "[ARGS]" in special else "list")
    elif LLAMA.opener in template or LLAMA.opener in special:
        dialect = LLAMA
    else:
        dialect = UNKNOWN
    return dialect._replace(
        opener=_in_text(dialect.opener, special),
        closer=_in_text(dialect.closer, special),
        args=_in_text(dialect.args, special),
        call_id=_in_text(dialect.call_id, special),
    )


def _in_text(markup: str, special: frozenset[str]) -> str:
    return MARKS[markup] if markup in special else markup
