"""Long layers of the text and acoustic parts, run piece by piece with a look at the cancel between.

On a CPU a convolution or an LSTM over a long sentence takes a tenth of a second and more, and
nothing can stop it once it runs. Cut along time both give the same numbers: a convolution with its
neighbours on both sides, an LSTM by carrying its state. A GPU is done in a few milliseconds and is
left alone. Knows the package's layers by their kind only: one utterance, never a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn.functional import conv1d, pad
from torch.nn.utils.rnn import PackedSequence

PIECE = 192  # steps; about 25 ms of the largest layer on one core, and 2 % more work in all

Check = Callable[[], None]


def cut_long_layers(net: Any, check: Check) -> None:
    """Replace the forward of `net`'s layers. `check` runs before every piece and may raise."""
    layer: Any
    for layer in net.modules():
        kind = type(layer)
        if kind is torch.nn.LSTM:
            layer.forward = partial(_recur, _directions(layer), check)
        elif kind is torch.nn.Conv1d and _is_centred(layer):
            layer.forward = partial(_convolve, layer, check)


def _is_centred(module: Any) -> bool:
    centred = module.kernel_size[0] == 2 * module.padding[0] + 1
    plain = module.stride == module.dilation == (1,) and module.groups == 1
    return bool(centred and plain)


def _convolve(module: Any, check: Check, x: Any) -> Any:
    """x [1, C, T]."""
    length, reach = x.shape[-1], module.padding[0]
    if length <= PIECE:
        return conv1d(x, module.weight, module.bias, padding=reach)
    x = pad(x, (reach, reach))
    pieces = []
    for start in range(0, length, PIECE):
        check()
        stop = min(length, start + PIECE) + 2 * reach
        pieces.append(conv1d(x[..., start:stop], module.weight, module.bias))
    return torch.cat(pieces, dim=-1)


def _directions(module: Any) -> tuple[Any, Any]:
    """A bidirectional LSTM as two of one direction, over the same parameters."""
    assert module.bidirectional
    assert module.num_layers == 1
    parts = []
    for suffix in ("", "_reverse"):
        with torch.device("meta"):
            part = torch.nn.LSTM(module.input_size, module.hidden_size)
        for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"):
            setattr(part, name, getattr(module, name + suffix))
        parts.append(part.eval())
    return parts[0], parts[1]


def _recur(directions: tuple[Any, Any], check: Check, steps: Any) -> tuple[Any, None]:
    """steps: [1, T, C], or one sequence packed; → the same with [.., 2 * hidden]."""
    forward, backward = directions
    packed = isinstance(steps, PackedSequence)
    data = steps.data if packed else steps[0]
    ahead = _carry(forward, data, check)
    back = _carry(backward, data.flip(0), check).flip(0)
    both = torch.cat([ahead, back], dim=-1)
    return (steps._replace(data=both) if packed else both[None]), None


def _carry(lstm: Any, data: Any, check: Check) -> Any:
    """data [T, C] → [T, hidden]."""
    state, outputs = None, []
    for piece in data.split(PIECE):
        check()
        output, state = lstm(piece, state)
        outputs.append(output)
    return torch.cat(outputs)
