"""The tensors of a Whisper model by their names in a ggml file, and how each is kept.

The big matrices are float16 or quantized as a whole; convolutions are float16; what is small or
added to (biases, norms, positions) is float32. Shapes are row-major, as numpy has them; the file
has them the other way round. Does NOT know: files, values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from plait.models.whisper.ggml_file import GgmlHeader


@dataclass(frozen=True, slots=True)
class TensorKind:
    """`number` is ggml's; a row is cut into blocks of `block` values, `block_bytes` each."""

    name: str
    number: int
    block: int
    block_bytes: int


F32: Final = TensorKind("F32", 0, 1, 4)
F16: Final = TensorKind("F16", 1, 1, 2)
Q8_0: Final = TensorKind("Q8_0", 8, 32, 34)
# By the number that a file's header has for them, which is another than a tensor's.
KINDS: Final[Mapping[int, TensorKind]] = {
    1: F16,
    2: TensorKind("Q4_0", 2, 32, 18),
    3: TensorKind("Q4_1", 3, 32, 20),
    7: Q8_0,
    8: TensorKind("Q5_0", 6, 32, 22),
    9: TensorKind("Q5_1", 7, 32, 24),
    10: TensorKind("Q2_K", 10, 256, 84),
    11: TensorKind("Q3_K", 11, 256, 110),
    12: TensorKind("Q4_K", 12, 256, 144),
    13: TensorKind("Q5_K", 13, 256, 176),
    14: TensorKind("Q6_K", 14, 256, 210),
}


@dataclass(frozen=True, slots=True)
class TensorShape:
    shape: tuple[int, ...]
    kind: TensorKind

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) // self.kind.block * self.kind.block_bytes


def expected_tensors(header: GgmlHeader) -> dict[str, TensorShape]:
    """All of them, in the order in which Plait writes them."""
    return dict(_tensors(header))


def _tensors(header: GgmlHeader) -> Iterator[tuple[str, TensorShape]]:
    state, kind = header.state, header.kind
    yield "encoder.positional_embedding", TensorShape((header.audio_context, state), F32)
    for name, width in (("conv1", header.mels), ("conv2", state)):
        yield f"encoder.{name}.weight", TensorShape((state, width, 3), F16)
        yield f"encoder.{name}.bias", TensorShape((state, 1), F32)
    for layer in range(header.audio_layers):
        yield from _layer(f"encoder.blocks.{layer}", ("attn",), state, kind)
    yield from _norm("encoder.ln_post", state)
    yield "decoder.positional_embedding", TensorShape((header.text_context, state), F32)
    yield "decoder.token_embedding.weight", TensorShape((header.vocabulary, state), kind)
    for layer in range(header.text_layers):
        yield from _layer(f"decoder.blocks.{layer}", ("attn", "cross_attn"), state, kind)
    yield from _norm("decoder.ln", state)


def _layer(
    name: str, attentions: tuple[str, ...], state: int, kind: TensorKind
) -> Iterator[tuple[str, TensorShape]]:
    for attention in attentions:
        yield from _norm(f"{name}.{attention}_ln", state)
        for part in ("query", "key", "value", "out"):
            has_bias = part != "key"
            yield from _linear(f"{name}.{attention}.{part}", (state, state), kind, has_bias)
    yield from _norm(f"{name}.mlp_ln", state)
    yield from _linear(f"{name}.mlp.0", (4 * state, state), kind)
    yield from _linear(f"{name}.mlp.2", (state, 4 * state), kind)


def _linear(
    name: str, shape: tuple[int, int], kind: TensorKind, has_bias: bool = True
) -> Iterator[tuple[str, TensorShape]]:
    yield f"{name}.weight", TensorShape(shape, kind)
    if has_bias:
        yield f"{name}.bias", TensorShape(shape[:1], F32)


def _norm(name: str, state: int) -> Iterator[tuple[str, TensorShape]]:
    yield f"{name}.weight", TensorShape((state,), F32)
    yield f"{name}.bias", TensorShape((state,), F32)
