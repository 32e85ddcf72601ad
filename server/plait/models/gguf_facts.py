"""What a GGUF file says of the memory its model needs: no library, only the header.

Does NOT know: slots, budgets, what else a worker takes.
"""

from __future__ import annotations

from dataclasses import dataclass

from plait.models.gguf_file import GgufFile

F16_BYTES = 2


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """`context_tokens`: what the model was trained for. `kv_bytes_per_token`: one cell, f16."""

    context_tokens: int
    kv_bytes_per_token: int

    @classmethod
    def of(cls, gguf: GgufFile) -> ModelFacts:
        """Raises StoreError, TypeError or ValueError where the header lacks or garbles a value."""
        layers = int(gguf.hyperparameter("block_count"))
        heads = gguf.hyperparameter("attention.head_count")
        kv_heads = gguf.hyperparameter("attention.head_count_kv", heads)
        per_layer = kv_heads if isinstance(kv_heads, list) else [kv_heads] * layers
        most_heads = max(heads) if isinstance(heads, list) else heads
        head_size = int(gguf.hyperparameter("embedding_length")) // int(most_heads)
        key = int(gguf.hyperparameter("attention.key_length", head_size))
        value = int(gguf.hyperparameter("attention.value_length", head_size))
        cell_bytes = sum(per_layer) * (key + value) * F16_BYTES
        return cls(int(gguf.hyperparameter("context_length")), cell_bytes)
