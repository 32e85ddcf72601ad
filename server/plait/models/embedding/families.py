"""How BERT and its relatives call their weights, and where they differ.

Each is embeddings and a stack of equal layers: attention, and two linear layers with an activation
between, each with its residual and layer norm after it. `Weights` gives an array by our name for
it; a missing one is a ModelDamaged. Does NOT know graphs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import safetensors
from numpy.typing import NDArray

from plait.models.errors import ModelDamaged, UnsupportedModel

Floats = NDArray[np.float32]

_BERT: Final = {
    "layer": "encoder.layer.{}.",
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attended": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "inner": "intermediate.dense",
    "outer": "output.dense",
    "output_norm": "output.LayerNorm",
}
_MPNET: Final = _BERT | {
    "query": "attention.attn.q",
    "key": "attention.attn.k",
    "value": "attention.attn.v",
    "attended": "attention.attn.o",
    "attention_norm": "attention.LayerNorm",
}
_DISTILBERT: Final = {
    "layer": "transformer.layer.{}.",
    "query": "attention.q_lin",
    "key": "attention.k_lin",
    "value": "attention.v_lin",
    "attended": "attention.out_lin",
    "attention_norm": "sa_layer_norm",
    "inner": "ffn.lin1",
    "outer": "ffn.lin2",
    "output_norm": "output_layer_norm",
}
_NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "bert": _BERT,
    "roberta": _BERT,
    "xlm-roberta": _BERT,
    "camembert": _BERT,
    "mpnet": _MPNET,
    "distilbert": _DISTILBERT,
}
_GELU: Final = {"gelu": "BiasGelu", "gelu_new": "FastGelu", "gelu_pytorch_tanh": "FastGelu"}


@dataclass(frozen=True, slots=True)
class Shape:
    """Of a transformer, from its config.json. `activation` is an operator that adds a bias too.
    `first_position`: the row of the position table that is the first token's."""

    family: str
    hidden: int
    layers: int
    heads: int
    activation: str
    epsilon: float
    first_position: int

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Shape:
        """Raises UnsupportedModel, and KeyError or ValueError where the config is no such."""
        family = str(config["model_type"])
        distil = family == "distilbert"
        activation = str(config.get("activation" if distil else "hidden_act", "gelu"))
        positions = config.get("position_embedding_type", "absolute")
        if activation not in _GELU or positions != "absolute":
            raise UnsupportedModel(
                f"This {family} has the activation {activation!r} and {positions} positions, which"
                " cannot be drawn here.",
                "Name a model that has onnx/model.onnx, or another one.",
            )
        offset = family in ("roberta", "xlm-roberta", "camembert", "mpnet")
        return cls(
            family=family,
            hidden=int(config["dim" if distil else "hidden_size"]),
            layers=int(config["n_layers" if distil else "num_hidden_layers"]),
            heads=int(config["n_heads" if distil else "num_attention_heads"]),
            activation=_GELU[activation],
            epsilon=1e-12 if distil else float(config.get("layer_norm_eps", 1e-12)),
            first_position=int(config.get("pad_token_id") or 1) + 1 if offset else 0,
        )


class Weights:
    """The arrays of a model.safetensors, as float32."""

    def __init__(self, path: Path, family: str) -> None:
        """Raises ModelDamaged."""
        try:
            found = read_tensors(path)
        except safetensors.SafetensorError as error:
            raise _damaged(f"it is no safetensors file ({error})") from error
        self._found = {_bare(name): entry for name, entry in found.items()}
        self._names = _NAMES[family]

    def embedding(self, name: str) -> Floats:
        return self._array(f"embeddings.{name}")

    def has(self, name: str) -> bool:
        return name in self._found

    def array(self, name: str) -> Floats:
        return self._array(name)

    def of_layer(self, layer: int, part: str, kind: str) -> Floats:
        """`part`: as in the tables above. `kind`: weight or bias."""
        return self._array(f"{self._names['layer'].format(layer)}{self._names[part]}.{kind}")

    def _array(self, name: str) -> Floats:
        entry = self._found.get(name)
        if entry is None:
            raise _damaged(f"it has no {name}")
        return to_float32(entry)


def read_tensors(path: Path) -> dict[str, Mapping[str, Any]]:
    """Of a safetensors file, as `to_float32` takes them. Raises SafetensorError, OSError."""
    deserialize: Any = safetensors.deserialize  # it has no types
    return dict(deserialize(path.read_bytes()))


def to_float32(entry: Mapping[str, Any]) -> Floats:
    """An entry of `safetensors.deserialize`. Raises ModelDamaged for other kinds of numbers."""
    kinds = {"F32": np.float32, "F16": np.float16, "F64": np.float64}
    shape, kind = entry["shape"], entry["dtype"]
    if kind == "BF16":
        halves = np.frombuffer(entry["data"], np.uint16).astype(np.uint32) << 16
        return halves.view(np.float32).reshape(shape)
    if kind not in kinds:
        raise _damaged(f"it holds numbers of kind {kind}")
    return np.frombuffer(entry["data"], kinds[kind]).astype(np.float32).reshape(shape)


def _bare(name: str) -> str:
    """Without the name of the model around it; old checkpoints call a norm's weights otherwise."""
    for prefix in ("bert.", "roberta.", "mpnet.", "distilbert."):
        name = name.removeprefix(prefix)
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace(
        "LayerNorm.beta", "LayerNorm.bias"
    )


def _damaged(why: str) -> ModelDamaged:
    return ModelDamaged(
        f"model.safetensors of this embedding model cannot be used: {why}.",
        "Fetch it anew, or choose another model.",
    )
