"""Builds Kokoro's modules from the `kokoro` package and fills them from a checkpoint, strictly.

The package's own model falls back to `strict=False` without a word and can download; here the same
modules are built by hand, on no memory ("meta"), and every tensor is accounted for: a checkpoint
that lacks one, has one too many or one of another shape is refused. Two layouts: the converter's
model.safetensors and the published kokoro-v1_0.pth. Weight norm is folded into plain weights (a
tenth faster). Imported by the worker only. Does NOT know jobs, voices or windows.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import torch
from kokoro.istftnet import Decoder
from kokoro.modules import CustomAlbert, ProsodyPredictor, TextEncoder
from torch.nn.utils import remove_weight_norm
from transformers import AlbertConfig

from plait.errors import ModelLoadFailed
from plait.models.kokoro.torch_state import (
    CONFIG,
    CONFIG_NAME,
    WEIGHTS_NAME,
    is_identity_norm,
    is_unused,
    state_shapes,
)

PUBLISHED_NAME = "kokoro-v1_0.pth"
_PARTS = ("bert", "bert_encoder", "predictor", "text_encoder", "decoder")

State = dict[str, Any]


def load_net(weights: Path) -> Any:
    """The five modules as attributes of one, on the CPU, ready to infer. Raises ModelLoadFailed."""
    state = _folded(_checked(_read(weights)))
    net = _build(_config(weights))
    try:
        net.load_state_dict(state, strict=True, assign=True)
    except RuntimeError as error:
        raise _unusable("its tensors are not those of the architecture") from error
    _fill_buffers(net.bert)
    return net.eval().requires_grad_(False)


def _unusable(why: str) -> ModelLoadFailed:
    return ModelLoadFailed(
        f"The Kokoro weights cannot be used: {why}. Verify the model or pull it again."
    )


def _config(weights: Path) -> dict[str, Any]:
    directory = weights if weights.is_dir() else weights.parent
    path = directory / CONFIG_NAME
    if not path.exists():
        return CONFIG
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise _unusable("config.json is no JSON") from error
    if not isinstance(config, dict) or any(config.get(key) != CONFIG[key] for key in CONFIG):
        raise _unusable("config.json describes another architecture than Kokoro-82M")
    return CONFIG


def _read(weights: Path) -> State:
    """Flat state by the names of `torch_state`."""
    if weights.is_dir():
        published = weights / PUBLISHED_NAME
        weights = published if published.exists() else weights / WEIGHTS_NAME
    try:
        return _read_published(weights) if weights.suffix == ".pth" else _read_converted(weights)
    except FileNotFoundError as error:
        raise _unusable(f"{weights.name} is missing") from error


def _read_converted(path: Path) -> State:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return dict(load_file(path))
    except SafetensorError as error:
        raise _unusable(f"{path.name} is damaged") from error


def _read_published(path: Path) -> State:
    """{part: {"module." + name: tensor}}: saved from a wrapper for several GPUs."""
    from pickle import UnpicklingError

    try:
        nested = torch.load(path, map_location="cpu", weights_only=True)
        return {
            f"{part}.{name.removeprefix('module.')}": tensor
            for part, tensors in nested.items()
            for name, tensor in tensors.items()
        }
    except (UnpicklingError, RuntimeError, EOFError, AttributeError, TypeError) as error:
        raise _unusable(f"{path.name} is damaged or no checkpoint") from error


def _checked(state: State) -> State:
    """Even account or ModelLoadFailed; norms that a checkpoint may leave out are filled in."""
    shapes = state_shapes()
    for name, shape in shapes.items():
        if name not in state and (is_identity_norm(name) or is_unused(name)):
            state[name] = torch.full(shape, float(name.endswith("norm.weight")))
    missing, unknown = sorted(shapes.keys() - state.keys()), sorted(state.keys() - shapes.keys())
    wrong = [name for name in shapes if name in state and tuple(state[name].shape) != shapes[name]]
    for what, names in (("lack", missing), ("have in addition", unknown), ("misshape", wrong)):
        if names:
            raise _unusable(f"they {what} {len(names)} tensors, the first is {names[0]}")
    return {name: tensor.float() for name, tensor in state.items()}


def _folded(state: State) -> State:
    """Weight norm undone: weight = g · v / |v|, the norm over all axes but the first."""
    folded: State = {}
    for name, tensor in state.items():
        if name.endswith(".weight_v"):
            length = torch.linalg.vector_norm(tensor, dim=(1, 2), keepdim=True)
            folded[name.removesuffix("_v")] = tensor * (state[name[:-1] + "g"] / length)
        elif not name.endswith(".weight_g"):
            folded[name] = tensor
    return folded


def _build(config: dict[str, Any]) -> Any:
    hidden, style = config["hidden_dim"], config["style_dim"]
    net = torch.nn.Module()
    with warnings.catch_warnings(), torch.device("meta"):
        warnings.simplefilter("ignore")  # the package builds on a deprecated form of weight norm
        albert = AlbertConfig(vocab_size=config["n_token"], **config["plbert"])
        net.bert = CustomAlbert(albert)
        net.bert_encoder = torch.nn.Linear(albert.hidden_size, hidden)
        net.predictor = ProsodyPredictor(
            style, hidden, config["n_layer"], config["max_dur"], config["dropout"]
        )
        net.text_encoder = TextEncoder(
            hidden, config["text_encoder_kernel_size"], config["n_layer"], config["n_token"]
        )
        net.decoder = Decoder(
            dim_in=hidden, style_dim=style, dim_out=config["n_mels"], **config["istftnet"]
        )
        for module in net.modules():
            if hasattr(module, "weight_g"):
                remove_weight_norm(module)
    return net


def _fill_buffers(bert: Any) -> None:
    """BERT counts positions in buffers that no checkpoint holds."""
    embeddings = bert.embeddings
    positions = bert.config.max_position_embeddings
    embeddings.position_ids = torch.arange(positions).expand((1, -1))
    embeddings.token_type_ids = torch.zeros((1, positions), dtype=torch.long)
