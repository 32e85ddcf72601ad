"""BERT and its relatives as an ONNX graph: token ids to one vector per token.

What a token's padding neighbours hold never reaches it, so a text's vectors do not depend on what
else is in its batch but for the last digits. Source of the arithmetic: the papers' and Hugging Face
transformers' models of these names. Does NOT pool.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from plait.models.embedding.families import Floats, Shape, Weights
from plait.models.embedding.graph import WEIGHTS_NAME, GraphDrawing
from plait.models.embedding.settings import MODEL_NAME

_BUCKETS, _FARTHEST = 32, 128  # MPNet's distances


def draw(
    shape: Shape,
    weights: Weights,
    max_tokens: int,
    form: Path,
    progress: Callable[[float], None],
) -> None:
    """Write model.onnx and its weights into the directory `form`. Raises ModelDamaged."""
    with (form / WEIGHTS_NAME).open("wb") as file:
        drawing = GraphDrawing(file)
        mask = drawing.add("Cast", "attention_mask", out="mask", to=TensorProto.INT32)
        value = _embed(drawing, shape, weights, max_tokens)
        bias = _distances(drawing, weights, max_tokens) if shape.family == "mpnet" else ""
        for layer in range(shape.layers):
            value = _layer(drawing, shape, weights, layer, value, mask, bias)
            progress(100 * (layer + 1) / (shape.layers + 1))
        drawing.write(form / MODEL_NAME, value, shape.hidden)


def _embed(drawing: GraphDrawing, shape: Shape, weights: Weights, max_tokens: int) -> str:
    """A token's type is always the first one, so that row is added to the positions'."""
    positions = weights.embedding("position_embeddings.weight")[shape.first_position :][:max_tokens]
    if weights.has("embeddings.token_type_embeddings.weight"):
        positions = positions + weights.embedding("token_type_embeddings.weight")[0]
    words = weights.embedding("word_embeddings.weight")
    return drawing.fused(
        "EmbedLayerNormalization",
        drawing.add("Cast", "input_ids", out="ids", to=TensorProto.INT32),
        "",
        drawing.constant("words", words),
        drawing.constant("positions", positions),
        "",
        drawing.constant("embedding_norm.weight", weights.embedding("LayerNorm.weight")),
        drawing.constant("embedding_norm.bias", weights.embedding("LayerNorm.bias")),
        out="embedded",
        unused="mask_index",
        epsilon=shape.epsilon,
    )


def _layer(
    drawing: GraphDrawing,
    shape: Shape,
    weights: Weights,
    layer: int,
    value: str,
    mask: str,
    distances: str,
) -> str:
    def of(part: str, kind: str) -> Floats:
        return weights.of_layer(layer, part, kind)

    def constant(part: str, kind: str) -> str:
        return drawing.constant(f"{layer}.{part}.{kind}", of(part, kind))

    def norm(inner: str, outer: str, part: str, bias: str) -> str:
        named = constant(part, "weight"), constant(part, "bias"), constant(bias, "bias")
        out = f"{layer}.{part}"
        return drawing.fused(
            "SkipLayerNormalization", inner, outer, *named, out=out, epsilon=shape.epsilon
        )

    parts = ("query", "key", "value")
    attended = drawing.fused(
        "Attention",
        value,
        drawing.constant(
            f"{layer}.qkv.weight", np.concatenate([of(p, "weight").T for p in parts], 1)
        ),
        drawing.constant(f"{layer}.qkv.bias", np.concatenate([of(p, "bias") for p in parts])),
        mask,
        *(("", distances) if distances else ()),
        out=f"{layer}.attention",
        num_heads=shape.heads,
    )
    projected = drawing.linear(attended, of("attended", "weight"), f"{layer}.attended")
    middle = norm(projected, value, "attention_norm", "attended")
    inner = drawing.linear(middle, of("inner", "weight"), f"{layer}.inner")
    active = drawing.fused(
        shape.activation, inner, constant("inner", "bias"), out=f"{layer}.active"
    )
    outer = drawing.linear(active, of("outer", "weight"), f"{layer}.outer")
    return norm(outer, middle, "output_norm", "outer")


def _distances(drawing: GraphDrawing, weights: Weights, max_tokens: int) -> str:
    """MPNet adds to each head's scores a number that depends on how far two tokens are apart:
    [1, heads, tokens, tokens], of which a batch uses the corner."""
    by_bucket = weights.array("encoder.relative_attention_bias.weight")
    table = by_bucket[_bucket_of(max_tokens)].transpose(2, 0, 1)[None]
    length = drawing.add("Shape", "input_ids", out="length", start=1, end=2)
    ends = drawing.add("Concat", length, length, out="ends", axis=0)
    starts, axes = drawing.small("starts", [0, 0]), drawing.small("axes", [2, 3])
    whole = drawing.constant("distances", np.ascontiguousarray(table))
    return drawing.add("Slice", whole, starts, ends, axes, out="distances_here")


def _bucket_of(tokens: int) -> NDArray[np.int64]:
    """[tokens, tokens]: half of the buckets are for either direction, half of those for single
    distances, the others for ever wider ranges."""
    places = np.arange(tokens)
    apart = places[:, None] - places[None, :]
    half, exact = _BUCKETS // 2, _BUCKETS // 4
    far = np.abs(apart)
    wide = exact + (
        np.log(np.maximum(far, 1).astype(np.float32) / exact)
        / math.log(_FARTHEST / exact)
        * (half - exact)
    ).astype(np.int64)
    within = np.where(far < exact, far, np.minimum(wide, half - 1))
    found: NDArray[np.int64] = np.where(apart < 0, half, 0) + within
    return found
