"""What a model on mlx offers the gateway: its slots, its context, and the KV memory of its jobs.

Where no budget is set it is what all slots can take at their longest. Knows no jobs and no batch.
"""

from __future__ import annotations

from plait.engines.base import EngineInfo, LoadSpec
from plait.engines.mlx.batch import cells
from plait.errors import ResourceNotAvailable


def offer_of(spec: LoadSpec, kv_bytes_per_token: int) -> EngineInfo:
    """`kv_bytes_per_token`: of one cache cell."""
    full_bytes = spec.slots * cells(spec.context_tokens) * kv_bytes_per_token
    return EngineInfo(
        engine=spec.engine,
        model=spec.model,
        methods=["chat"],
        slots=spec.slots,
        context_tokens=spec.context_tokens,
        max_tokens=spec.max_tokens,
        kv_budget_bytes=spec.kv_budget_bytes or full_bytes,
        kv_kind="freed",
    )


def require_fit(info: EngineInfo, required_bytes: int) -> None:
    """Raises `ResourceNotAvailable` for a chat that does not fit the budget even by itself."""
    if required_bytes <= info.kv_budget_bytes:
        return
    raise ResourceNotAvailable(
        f"This chat needs {required_bytes} bytes of KV cache and the engine may use "
        f"{info.kv_budget_bytes}; lower max_tokens or shorten the messages.",
        data={
            "model": info.model,
            "required_bytes": required_bytes,
            "available_bytes": info.kv_budget_bytes,
        },
    )
