"""Every tensor of a Kokoro-82M checkpoint: its name in the `kokoro` package, and its shape.

One description for two ends: the converter writes exactly these tensors, the PyTorch backend takes
no others. Convolutions under weight norm are pairs `weight_g`, `weight_v`, as in the published
checkpoint. Written out by hand from the architecture's numbers, so that nothing but numbers is
needed to say that a file is whole. Imports no library; does NOT know any value.
"""

from __future__ import annotations

import re
from typing import Any

Shapes = dict[str, tuple[int, ...]]

WEIGHTS_NAME = "model.safetensors"
CONFIG_NAME = "config.json"

# The published config.json without its table of symbols, which belongs to the text front end.
CONFIG: dict[str, Any] = {
    "dim_in": 64,
    "dropout": 0.2,
    "hidden_dim": 512,
    "max_conv_dim": 512,
    "max_dur": 50,
    "multispeaker": True,
    "n_layer": 3,
    "n_mels": 80,
    "n_token": 178,
    "style_dim": 128,
    "text_encoder_kernel_size": 5,
    "istftnet": {
        "upsample_kernel_sizes": [20, 12],
        "upsample_rates": [10, 6],
        "gen_istft_hop_size": 5,
        "gen_istft_n_fft": 20,
        "resblock_dilation_sizes": [[1, 3, 5], [1, 3, 5], [1, 3, 5]],
        "resblock_kernel_sizes": [3, 7, 11],
        "upsample_initial_channel": 512,
    },
    "plbert": {
        "hidden_size": 768,
        "num_attention_heads": 12,
        "intermediate_size": 2048,
        "max_position_embeddings": 512,
        "num_hidden_layers": 12,
        "dropout": 0.1,
    },
}

STYLE = 128
HIDDEN = 512
SYMBOLS = 178
SPECTRA = 22  # what the generator predicts and its harmonic source consists of

# Instance norms of this model have no scale and shift of their own (AdaIN brings them); the package
# declares them all the same, and the published checkpoint leaves them out.
_IDENTITY_NORM = re.compile(
    r"(^|\.)norm[12]?\.norm\.(weight|bias)$|adain[12]\.\d\.norm\.(weight|bias)$"
)
# A head of BERT that the package builds and never runs.
_UNUSED = ("bert.pooler.weight", "bert.pooler.bias")


def is_identity_norm(name: str) -> bool:
    """A parameter that is 1 (`.weight`) or 0 (`.bias`) in every Kokoro checkpoint that has it."""
    return _IDENTITY_NORM.search(name) is not None


def is_unused(name: str) -> bool:
    """A parameter that no output depends on."""
    return name in _UNUSED


def state_shapes() -> Shapes:
    """Name → shape of all tensors, 688 of them, names as `KModel.state_dict()` gives them."""
    shapes: Shapes = {}
    _albert(shapes)
    _linear(shapes, "bert_encoder", HIDDEN, 768)
    _text_encoder(shapes)
    _predictor(shapes)
    _decoder(shapes)
    _generator(shapes)
    return shapes


def _albert(shapes: Shapes) -> None:
    hidden, inner, embedding = 768, 2048, 128
    for table, rows in (("word", SYMBOLS), ("position", 512), ("token_type", 2)):
        shapes[f"bert.embeddings.{table}_embeddings.weight"] = (rows, embedding)
    _affine(shapes, "bert.embeddings.LayerNorm", embedding)
    _linear(shapes, "bert.encoder.embedding_hidden_mapping_in", hidden, embedding)
    layer = "bert.encoder.albert_layer_groups.0.albert_layers.0"
    for part in ("query", "key", "value", "dense"):
        _linear(shapes, f"{layer}.attention.{part}", hidden, hidden)
    _affine(shapes, f"{layer}.attention.LayerNorm", hidden)
    _affine(shapes, f"{layer}.full_layer_layer_norm", hidden)
    _linear(shapes, f"{layer}.ffn", inner, hidden)
    _linear(shapes, f"{layer}.ffn_output", hidden, inner)
    _linear(shapes, "bert.pooler", hidden, hidden)


def _text_encoder(shapes: Shapes) -> None:
    shapes["text_encoder.embedding.weight"] = (SYMBOLS, HIDDEN)
    for layer in range(3):
        _conv(shapes, f"text_encoder.cnn.{layer}.0", HIDDEN, HIDDEN, 5)
        shapes[f"text_encoder.cnn.{layer}.1.gamma"] = (HIDDEN,)
        shapes[f"text_encoder.cnn.{layer}.1.beta"] = (HIDDEN,)
    _lstm(shapes, "text_encoder.lstm", HIDDEN)


def _predictor(shapes: Shapes) -> None:
    for layer in (0, 2, 4):
        _lstm(shapes, f"predictor.text_encoder.lstms.{layer}", HIDDEN + STYLE)
        _linear(shapes, f"predictor.text_encoder.lstms.{layer + 1}.fc", 2 * HIDDEN, STYLE)
    _lstm(shapes, "predictor.lstm", HIDDEN + STYLE)
    _lstm(shapes, "predictor.shared", HIDDEN + STYLE)
    _linear(shapes, "predictor.duration_proj.linear_layer", 50, HIDDEN)
    for curve in ("F0", "N"):
        _block(shapes, f"predictor.{curve}.0", 512, 512)
        _block(shapes, f"predictor.{curve}.1", 512, 256, upsamples=True)
        _block(shapes, f"predictor.{curve}.2", 256, 256)
        shapes[f"predictor.{curve}_proj.weight"] = (1, 256, 1)
        shapes[f"predictor.{curve}_proj.bias"] = (1,)


def _decoder(shapes: Shapes) -> None:
    _block(shapes, "decoder.encode", 514, 1024)
    for layer in range(3):
        _block(shapes, f"decoder.decode.{layer}", 1090, 1024)
    _block(shapes, "decoder.decode.3", 1090, 512, upsamples=True)
    _conv(shapes, "decoder.F0_conv", 1, 1, 3)
    _conv(shapes, "decoder.N_conv", 1, 1, 3)
    _conv(shapes, "decoder.asr_res.0", 64, 512, 1)


def _generator(shapes: Shapes) -> None:
    name = "decoder.generator"
    _linear(shapes, f"{name}.m_source.l_linear", 1, 9)
    stages = ((256, 512, 20, 12, 7), (128, 256, 12, 1, 11))
    for stage, (channels, channels_in, kernel, source_kernel, noise_kernel) in enumerate(stages):
        _normed(shapes, f"{name}.ups.{stage}", (channels_in, channels, kernel), channels)
        shapes[f"{name}.noise_convs.{stage}.weight"] = (channels, SPECTRA, source_kernel)
        shapes[f"{name}.noise_convs.{stage}.bias"] = (channels,)
        _snake_block(shapes, f"{name}.noise_res.{stage}", channels, noise_kernel)
        for number, block_kernel in enumerate((3, 7, 11)):
            _snake_block(shapes, f"{name}.resblocks.{3 * stage + number}", channels, block_kernel)
    _conv(shapes, f"{name}.conv_post", SPECTRA, 128, 7)


def _snake_block(shapes: Shapes, name: str, channels: int, kernel: int) -> None:
    for layer in range(3):
        for half in (1, 2):
            _conv(shapes, f"{name}.convs{half}.{layer}", channels, channels, kernel)
            _adain(shapes, f"{name}.adain{half}.{layer}", channels)
            shapes[f"{name}.alpha{half}.{layer}"] = (1, channels, 1)


def _block(shapes: Shapes, name: str, before: int, after: int, upsamples: bool = False) -> None:
    _conv(shapes, f"{name}.conv1", after, before, 3)
    _conv(shapes, f"{name}.conv2", after, after, 3)
    _adain(shapes, f"{name}.norm1", before)
    _adain(shapes, f"{name}.norm2", after)
    if before != after:
        _normed(shapes, f"{name}.conv1x1", (after, before, 1), bias=None)
    if upsamples:
        _normed(shapes, f"{name}.pool", (before, 1, 3), before)


def _adain(shapes: Shapes, name: str, channels: int) -> None:
    _affine(shapes, f"{name}.norm", channels)
    _linear(shapes, f"{name}.fc", 2 * channels, STYLE)


def _conv(shapes: Shapes, name: str, after: int, before: int, kernel: int) -> None:
    _normed(shapes, name, (after, before, kernel), after)


def _normed(shapes: Shapes, name: str, weight: tuple[int, int, int], bias: int | None) -> None:
    shapes[f"{name}.weight_g"] = (weight[0], 1, 1)
    shapes[f"{name}.weight_v"] = weight
    if bias is not None:
        shapes[f"{name}.bias"] = (bias,)


def _linear(shapes: Shapes, name: str, after: int, before: int) -> None:
    shapes[f"{name}.weight"] = (after, before)
    shapes[f"{name}.bias"] = (after,)


def _affine(shapes: Shapes, name: str, channels: int) -> None:
    shapes[f"{name}.weight"] = (channels,)
    shapes[f"{name}.bias"] = (channels,)


def _lstm(shapes: Shapes, name: str, before: int) -> None:
    hidden = HIDDEN // 2
    for direction in ("", "_reverse"):
        shapes[f"{name}.weight_ih_l0{direction}"] = (4 * hidden, before)
        shapes[f"{name}.weight_hh_l0{direction}"] = (4 * hidden, hidden)
        shapes[f"{name}.bias_ih_l0{direction}"] = (4 * hidden,)
        shapes[f"{name}.bias_hh_l0{direction}"] = (4 * hidden,)
