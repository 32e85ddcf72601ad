"""GGUF weights → an mlx-lm model directory, dequantized tensor by tensor.

One tensor is in memory at a time (a 7B model at 16 bit would be 14 GB otherwise), so the
safetensors file is written here: its header is known before the data. q and k rows are put back
into the order of Hugging Face checkpoints, which llama.cpp's converter interleaves for its rotary
embedding. Imports no mlx: conversion runs in the command line's process.
Does NOT know: where models are kept, tokenizers.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from plait.models.errors import UnsupportedModel
from plait.models.gguf_file import GgufFile, TensorInfo, damaged
from plait.models.tokenizer import end_of_turn_ids

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Dtype = Literal["float16", "float32"]
_SAFETENSORS_NAME = {"float16": "F16", "float32": "F32"}
_ITEM_BYTES = {"float16": 2, "float32": 4}

_RENAMES = (
    (r"token_embd\.", "model.embed_tokens."),
    (r"output_norm\.", "model.norm."),
    (r"output\.", "lm_head."),
    (r"blk\.(\d+)\.attn_norm\.", r"model.layers.\1.input_layernorm."),
    (r"blk\.(\d+)\.ffn_norm\.", r"model.layers.\1.post_attention_layernorm."),
    (r"blk\.(\d+)\.attn_output\.", r"model.layers.\1.self_attn.o_proj."),
    (r"blk\.(\d+)\.attn_([qkv])\.", r"model.layers.\1.self_attn.\2_proj."),
    (r"blk\.(\d+)\.ffn_(gate|up|down)\.", r"model.layers.\1.mlp.\2_proj."),
)


def convert(
    gguf: GgufFile, directory: Path, dtype: Dtype, progress: Callable[[float], None]
) -> None:
    """Write config.json and model.safetensors into `directory`; `progress` gets percent.

    Raises UnsupportedModel for anything but a plain Llama, ModelDamaged for a truncated file.
    """
    config = _model_config(gguf)
    names = {tensor.name: _rename(gguf, tensor.name) for tensor in gguf.tensors}
    config["tie_word_embeddings"] = "lm_head.weight" not in names.values()
    (directory / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
    with (directory / "model.safetensors").open("wb") as file:
        file.write(_header(gguf.tensors, names, dtype))
        for percent, array in _arrays(gguf, config):
            file.write(array.astype(dtype).tobytes())
            progress(percent)


def _model_config(gguf: GgufFile) -> dict[str, Any]:
    if gguf.architecture != "llama" or "llama.rope.scaling.type" in gguf.metadata:
        scaled = " with scaled rotary embeddings" if gguf.architecture == "llama" else ""
        raise _unsupported(gguf, f"it is of architecture {gguf.architecture}{scaled}")
    heads = gguf.hyperparameter("attention.head_count")
    hidden = gguf.hyperparameter("embedding_length")
    return {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": hidden,
        "num_hidden_layers": gguf.hyperparameter("block_count"),
        "intermediate_size": gguf.hyperparameter("feed_forward_length"),
        "num_attention_heads": heads,
        "num_key_value_heads": gguf.hyperparameter("attention.head_count_kv", heads),
        "head_dim": gguf.hyperparameter("attention.key_length", hidden // heads),
        "rms_norm_eps": gguf.hyperparameter("attention.layer_norm_rms_epsilon"),
        "rope_theta": gguf.hyperparameter("rope.freq_base", 10000.0),
        "max_position_embeddings": gguf.hyperparameter("context_length"),
        "vocab_size": len(gguf.metadata["tokenizer.ggml.tokens"]),
        "bos_token_id": gguf.metadata.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": end_of_turn_ids(gguf),
    }


def _rename(gguf: GgufFile, name: str) -> str:
    for pattern, replacement in _RENAMES:
        renamed, count = re.subn("^" + pattern, replacement, name)
        if count:
            return renamed
    raise _unsupported(gguf, f"its tensor {name} has no place in a Llama")


def _unsupported(gguf: GgufFile, why: str) -> UnsupportedModel:
    return UnsupportedModel(
        f"{gguf.path.name} cannot be converted for mlx: {why}.",
        "Use --chat-engine llamacpp, or the model's MLX repository: hf:org/name.",
    )


def _header(tensors: tuple[TensorInfo, ...], names: dict[str, str], dtype: Dtype) -> bytes:
    entries: dict[str, Any] = {"__metadata__": {"format": "mlx"}}
    offset = 0
    for tensor in tensors:
        end = offset + math.prod(tensor.shape) * _ITEM_BYTES[dtype]
        entries[names[tensor.name]] = {
            "dtype": _SAFETENSORS_NAME[dtype],
            "shape": tensor.shape,
            "data_offsets": [offset, end],
        }
        offset = end
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)  # the data starts aligned
    return struct.pack("<Q", len(text)) + text


def _arrays(
    gguf: GgufFile, config: dict[str, Any]
) -> Iterator[tuple[float, npt.NDArray[np.float32]]]:
    import numpy as np  # a tenth of a second that `plait --help` need not pay

    data = np.memmap(gguf.path, dtype=np.uint8, mode="r")
    total = sum(math.prod(tensor.shape) for tensor in gguf.tensors)
    done = 0
    for tensor in gguf.tensors:
        array = _dequantize(gguf, tensor, data)
        if ".attn_q." in tensor.name:
            array = _unpermute(array, config["num_attention_heads"])
        elif ".attn_k." in tensor.name:
            array = _unpermute(array, config["num_key_value_heads"])
        done += array.size
        yield 100 * done / total, array


def _dequantize(
    gguf: GgufFile, tensor: TensorInfo, data: npt.NDArray[np.uint8]
) -> npt.NDArray[np.float32]:
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
    from gguf.quants import dequantize

    try:
        kind = GGMLQuantizationType(tensor.kind)
        block, block_bytes = GGML_QUANT_SIZES[kind]
    except (ValueError, KeyError):
        raise _unsupported(gguf, f"tensor type {tensor.kind} is unknown") from None
    columns = tensor.shape[-1]
    size = math.prod(tensor.shape) // block * block_bytes
    raw = data[tensor.offset : tensor.offset + size]
    if raw.size != size or columns % block:
        raise damaged(gguf.path, f"tensor {tensor.name} breaks off")
    rows = raw.reshape(*tensor.shape[:-1], columns // block * block_bytes)
    array: npt.NDArray[np.float32] = dequantize(rows, kind)
    return array.reshape(tensor.shape)


def _unpermute(array: npt.NDArray[np.float32], heads: int) -> npt.NDArray[np.float32]:
    """Interleaved rotary pairs → the two halves of a head, rows only."""
    split = array.reshape(heads, array.shape[0] // heads // 2, 2, *array.shape[1:])
    return split.swapaxes(1, 2).reshape(array.shape)
