"""Whether this build of llama.cpp can force the form of an answer, and making it ready to.

A build without llguidance would end the process at the first such grammar. Knows no jobs.
"""

from __future__ import annotations

import json
from typing import Any

import xllamacpp

from plait.engines.chat.constraint import can_compile
from plait.engines.chat.grammar import ANY_OBJECT, HEADER
from plait.engines.llamacpp.wire import grammar_body


def ready_grammars(server: Any) -> bool:
    """-> whether grammars may be sent. The library reads the model's vocabulary for its first one,
    which takes a moment in the loop that computes: now, while nobody waits.
    """
    written = xllamacpp.json_schema_to_grammar(json.dumps(ANY_OBJECT))
    if not (can_compile() and written.startswith(HEADER)):
        return False
    server.handle_completions(grammar_body(), lambda _chunk: False)
    return True
