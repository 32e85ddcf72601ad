"""Where CTranslate2 keeps what a ggml file calls `encoder.blocks.0.attn.query.weight`.

CTranslate2 joins the projections that are computed together, row by row: query, key and value of
self-attention, key and value of cross-attention. Whisper's keys have no bias; the joined arrays
have zeros for it. Does NOT know: files, how a tensor is kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]

_OUTSIDE_LAYERS: Final = {
    "encoder.positional_embedding": "encoder/position_encodings/encodings",
    "encoder.conv1.weight": "encoder/conv1/weight",
    "encoder.conv1.bias": "encoder/conv1/bias",
    "encoder.conv2.weight": "encoder/conv2/weight",
    "encoder.conv2.bias": "encoder/conv2/bias",
    "encoder.ln_post.weight": "encoder/layer_norm/gamma",
    "encoder.ln_post.bias": "encoder/layer_norm/beta",
    "decoder.positional_embedding": "decoder/position_encodings/encodings",
    "decoder.token_embedding.weight": "decoder/embeddings/weight",
    "decoder.ln.weight": "decoder/layer_norm/gamma",
    "decoder.ln.bias": "decoder/layer_norm/beta",
}
_ATTENTIONS: Final = {"attn": "self_attention", "cross_attn": "attention"}
_NORMS: Final = {**{f"{ours}_ln": theirs for ours, theirs in _ATTENTIONS.items()}, "mlp_ln": "ffn"}
_NORM_PARTS: Final = {"weight": "gamma", "bias": "beta"}
_MLP: Final = {"mlp.0": "linear_0", "mlp.2": "linear_1"}
# (array, which of so many equal parts of its rows)
_PARTS: Final[Mapping[str, tuple[str, int, int]]] = {
    "attn.query": ("linear_0", 0, 3),
    "attn.key": ("linear_0", 1, 3),
    "attn.value": ("linear_0", 2, 3),
    "attn.out": ("linear_1", 0, 1),
    "cross_attn.query": ("linear_0", 0, 1),
    "cross_attn.key": ("linear_1", 0, 2),
    "cross_attn.value": ("linear_1", 1, 2),
    "cross_attn.out": ("linear_2", 0, 1),
}
_IN_LAYER = re.compile(r"(encoder|decoder)\.blocks\.(\d+)\.(.+)\.(weight|bias)")


def array_of(name: str, arrays: Arrays) -> NDArray[Any]:
    """The array of ggml tensor `name`. Raises KeyError when there is none, ValueError when its
    rows cannot be parted."""
    if name in _OUTSIDE_LAYERS:
        return arrays[_OUTSIDE_LAYERS[name]]
    match = _IN_LAYER.fullmatch(name)
    if match is None:
        raise KeyError(name)
    side, layer, module, part = match.groups()
    return _in_layer(f"{side}/layer_{layer}", module, part, arrays)


def _in_layer(layer: str, module: str, part: str, arrays: Arrays) -> NDArray[Any]:
    if module in _NORMS:
        return arrays[f"{layer}/{_NORMS[module]}/layer_norm/{_NORM_PARTS[part]}"]
    if module in _MLP:
        return arrays[f"{layer}/ffn/{_MLP[module]}/{part}"]
    joined, index, count = _PARTS[module]
    attention = _ATTENTIONS[module.split(".")[0]]
    return _nth(arrays[f"{layer}/{attention}/{joined}/{part}"], index, count)


def _nth(array: NDArray[Any], index: int, count: int) -> NDArray[Any]:
    rows, rest = divmod(len(array), count)
    if rest:
        raise ValueError(f"{len(array)} rows are not {count} equal parts")
    return array[index * rows : (index + 1) * rows]
