"""Loads an mlx-lm model directory for chat: weights, tokenizer, warm-up. See `chat`.

mlx is imported only here and below, after a fast BLAS is in place (see `blas`), and on the
thread that will compute: mlx's streams belong to threads. Every way a directory can be wrong is
`ModelLoadFailed`. Apple Silicon takes mlx's defaults; nothing here was measured on it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from plait.engines.base import CancelFlags, LoadSpec, Report
from plait.engines.chat.constraint import can_compile
from plait.engines.chat.prompt import ChatTokenizer
from plait.engines.mlx import blas
from plait.errors import ModelLoadFailed
from plait.wire.messages import ChatMessage, ChatParams

if TYPE_CHECKING:
    from plait.engines.mlx.chat import MlxChat
    from plait.engines.mlx.forced import GrammarTokens

# Freed buffers stay pooled for reuse up to here; an idle engine gives all of them back.
POOL_BYTES = 256 * 2**20
WARM_UP_TOKENS = 3


def load(spec: LoadSpec, flags: CancelFlags, report: Report) -> MlxChat:
    """Raises `ModelLoadFailed`; `spec.weights` is the model directory (or its weight file)."""
    report("libraries", None)
    mx = _import_mlx()
    if sys.platform == "linux":
        # On a CPU compiling brings nothing and starts a C++ compiler in the middle of answers.
        mx.disable_compile()
    mx.set_cache_limit(POOL_BYTES)
    directory = Path(spec.weights)
    directory = directory.parent if directory.is_file() else directory
    report("weights", 10)
    model, config = _load_weights(directory)
    report("tokenizer", 60)
    tokenizer = ChatTokenizer.load(spec.tokenizer or directory)
    tokenizer.vocabulary = tokenizer.vocabulary._replace(
        eos_ids=tokenizer.vocabulary.eos_ids | _eos_ids(config)
    )
    trained = config.get("max_position_embeddings", spec.context_tokens)
    spec = msgspec.structs.replace(spec, context_tokens=min(spec.context_tokens, trained))
    report("warm-up", 70)
    return build(spec, flags, model, tokenizer, report)


def _import_mlx() -> Any:
    if "mlx.core" not in sys.modules:
        blas.preload()
    try:
        import mlx.core
        import mlx_lm.utils  # noqa: F401 - slow, so it happens under this phase's name
    except ImportError as error:
        raise ModelLoadFailed(
            "Engine 'mlx' needs the packages mlx and mlx-lm, which are not usable here: "
            "install plait[mlx] or choose another engine."
        ) from error
    return mlx.core


def _load_weights(directory: Path) -> tuple[Any, dict[str, Any]]:
    from mlx_lm.utils import load_model

    try:
        model, config = load_model(directory)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise ModelLoadFailed(
            "The model directory is incomplete, damaged or of a kind mlx-lm does not know; "
            "verify the model or pull it again."
        ) from error
    return model, config


def _eos_ids(config: dict[str, Any]) -> frozenset[int]:
    listed = config.get("eos_token_id")
    ids = listed if isinstance(listed, list) else [listed]
    return frozenset(token for token in ids if isinstance(token, int))


def build(
    spec: LoadSpec, flags: CancelFlags, model: Any, tokenizer: ChatTokenizer, report: Report
) -> MlxChat:
    """The engine around a loaded `model`, warmed up and measured. Raises `ModelLoadFailed`."""
    from plait.engines.mlx.batch import STEP_TOKENS, Batch
    from plait.engines.mlx.chat import MlxChat
    from plait.engines.mlx.logprobs import LogprobReader

    batch = Batch(model, spec.slots, tokenizer.vocabulary.eos_ids)
    try:
        kv_bytes = _warm_up(batch, report)
    except (ValueError, TypeError, RuntimeError) as error:
        raise ModelLoadFailed(
            "The model was loaded but could not compute a token; verify it or pull it again."
        ) from error
    return MlxChat(
        spec,
        flags,
        tokenizer,
        batch,
        LogprobReader(tokenizer.token_text),
        kv_bytes_per_token=-(-kv_bytes // STEP_TOKENS),
        grammar_tokens=_grammar_tokens(tokenizer),
    )


def _grammar_tokens(tokenizer: ChatTokenizer) -> GrammarTokens | None:
    """What forcing the form of an answer needs; read now, as it takes a moment of the batch's."""
    from plait.engines.mlx.forced import GrammarTokens

    if not can_compile():
        return None
    try:
        return GrammarTokens(tokenizer.as_json(), tokenizer.vocabulary.eos_ids)
    except Exception:  # noqa: BLE001 - a vocabulary the library does not know: chats do without
        return None


def _warm_up(batch: Any, report: Report) -> int:
    """Build the kernels that answers need. -> KV bytes of one row of up to 256 tokens."""
    from plait.engines.mlx.batch import Row
    from plait.engines.mlx.sampling import RowSampling

    message = [ChatMessage("user", "")]
    kinds = [
        ChatParams(message, temperature=0),
        ChatParams(message, top_k=20, min_p=0.05, repetition_penalty=1.1),
    ]
    kv_bytes = 0
    for number, params in enumerate(kinds, start=1):
        batch.insert(Row([0] * 20, [], WARM_UP_TOKENS, RowSampling(params)))
        while len(batch):
            batch.step()
            kv_bytes = max(kv_bytes, batch.kv_bytes)
        report("warm-up", 70 + 30 * number // len(kinds))
    batch.free_unused()
    return kv_bytes
