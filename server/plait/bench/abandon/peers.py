"""Foreign targets by name: `llama-server`, `mlx_lm.server`, or the URL of somebody's server.

The two named ones run in a child of ours, with the model, slots, context and threads Plait's own
worker would load. `llama-server:8` computes at most 8 tokens at once, as does a server that wants
to hear of hang-ups soon; without a number its own default counts. A URL's server is measured as it
is. All do the same work: see `openai_target`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Literal

from plait.bench.abandon.http_exchange import Address
from plait.bench.abandon.llama_server import NAME as LLAMA_SERVER, llama_server
from plait.bench.abandon.mlx_server import NAME as MLX_SERVER, mlx_server
from plait.bench.abandon.openai_target import OpenAITarget
from plait.bench.abandon.somebodys import somebodys
from plait.bench.serving import BenchError
from plait.engines.base import LoadSpec

PEERS = (LLAMA_SERVER, MLX_SERVER)


@contextlib.asynccontextmanager
async def open_target(
    name: str,
    *,
    slots: int = 4,
    context_tokens: int = 4096,
    max_tokens: int = 1024,
    api_key: str | None = None,
) -> AsyncIterator[OpenAITarget]:
    """Ready until the block ends. `name`: one of `PEERS`, llama-server:N or http://host:port.

    The other settings are for the named ones; `api_key` is for a URL. Raises BenchError.
    """
    if base_of(name) == LLAMA_SERVER:
        batch_tokens = _batch_tokens(name, slots)
        spec = await asyncio.to_thread(peer_spec, "llamacpp", slots, context_tokens, max_tokens)
        async with llama_server(spec, batch_tokens) as target:
            yield target
    elif name == MLX_SERVER:
        spec = await asyncio.to_thread(peer_spec, "mlx", slots, context_tokens, max_tokens)
        async with mlx_server(spec) as target:
            yield target
    elif "://" in name:
        async with somebodys(Address.of(name, api_key)) as target:
            yield target
    else:
        known = ", ".join(PEERS)
        raise BenchError(f"'{name}' is no server to measure: use {known} or http://host:port")


def base_of(name: str) -> str:
    """The server without the tokens of its batches."""
    return LLAMA_SERVER if name.startswith(f"{LLAMA_SERVER}:") else name


def _batch_tokens(name: str, slots: int) -> int | None:
    """None: its own default. Raises BenchError; each slot needs a place in a batch."""
    _, colon, tokens = name.partition(":")
    if not colon:
        return None
    if not tokens.isdecimal() or int(tokens) < slots:
        raise BenchError(
            f"'{name}': after the colon comes how many tokens it computes at once, at least one "
            f"for each of its {slots} slots"
        )
    return int(tokens)


def peer_spec(
    engine: Literal["llamacpp", "mlx"], slots: int, context_tokens: int, max_tokens: int
) -> LoadSpec:
    """What Plait's own worker would load."""
    from plait.config import Config
    from plait.models import ModelStore
    from plait.specs import chat_spec

    config = Config(
        chat_engine=engine,
        slots=slots,
        context_tokens=context_tokens,
        max_tokens=max_tokens,
    )
    return chat_spec(config, ModelStore().ensure(config.chat_model, engine))
