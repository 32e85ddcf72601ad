"""Loads a GGUF model into llama.cpp's in-process server for chat. See `chat`."""

from __future__ import annotations

from plait.engines.base import CancelFlags, EngineInfo, LoadSpec, Report
from plait.engines.chat.prompt import ChatTokenizer, reserve_bytes
from plait.engines.llamacpp.chat import LlamaCpp
from plait.engines.llamacpp.grammars import ready_grammars
from plait.engines.llamacpp.server import open_server, read_facts, slot_context_tokens


def load(spec: LoadSpec, flags: CancelFlags, report: Report) -> LlamaCpp:
    """`spec.weights`: the GGUF file; `spec.tokenizer`: directory. Raises `ModelLoadFailed`."""
    facts = read_facts(spec.weights)
    context_tokens = slot_context_tokens(spec, facts)
    report("reading tokenizer", None)
    tokenizer = ChatTokenizer.load(spec.tokenizer)
    server, chunk_tokens = open_server(spec, context_tokens, report)
    grammars = ready_grammars(server)
    whole_bytes = spec.slots * reserve_bytes(context_tokens, facts.kv_bytes_per_token)
    info = EngineInfo(
        engine="llamacpp",
        model=spec.model,
        methods=["chat"],
        slots=spec.slots,
        context_tokens=context_tokens,
        max_tokens=spec.max_tokens,
        kv_budget_bytes=min(spec.kv_budget_bytes or whole_bytes, whole_bytes),
        kv_kind="reusable",
        cores=spec.threads,
    )
    return LlamaCpp(
        server,
        tokenizer,
        info,
        facts.kv_bytes_per_token,
        flags,
        chunk_tokens,
        prefix_cache_bytes=spec.prefix_cache_bytes,
        grammars=grammars,
    )
