"""Kokoro over the `kokoro` package (PyTorch): on Apple's and NVIDIA's GPUs, and on any CPU.

`TorchKokoro` satisfies `KokoroModel`; statistics, harmonic source, windows and the inverse STFT
are the shared numpy code, so with one seed it sounds as the ONNX backend does. `load` is the
worker's entry. A running call is cut short by hooks before every layer that raise `Interrupted`:
layers have no state, so the call can be repeated. Never touches a hub. Does NOT know jobs.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from plait.engines.base import CancelFlags, LoadSpec, Report
from plait.engines.kokoro.model import NORM_CHANNELS, Floats, Interrupted, Ints
from plait.errors import ModelLoadFailed

if TYPE_CHECKING:
    from plait.engines.kokoro.engine import KokoroEngine

STYLE = 128  # of a voice's 256 numbers the first half shapes the sound, the second the prosody
DEVICES = ("auto", "cpu", "cuda", "mps")


def load(spec: LoadSpec, flags: CancelFlags, report: Report) -> KokoroEngine:
    """Raises `ModelLoadFailed`. `spec.weights`: a directory with model.safetensors or the published
    kokoro-v1_0.pth; `spec.options["device"]`: one of DEVICES."""
    report("libraries", None)
    _import_libraries()
    report("weights", 10)
    model = TorchKokoro.load(
        Path(spec.weights), spec.options.get("device", "auto"), threads=spec.threads
    )
    from plait.engines.kokoro.opening import open_engine

    return open_engine(spec, flags, report, model)


def _import_libraries() -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"  # before the import: it is read once
    os.environ.setdefault("PYTORCH_ENABLE_MPS_FALLBACK", "1")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its own dependencies, nothing we could mend
            import kokoro  # noqa: F401 - slow, so it happens under this phase's name
    except ImportError as error:
        raise ModelLoadFailed(
            "Engine 'kokoro-torch' needs the packages torch and kokoro, which are not usable "
            "here: install plait[kokoro] or choose engine kokoro-onnx."
        ) from error


class TorchKokoro:
    """One set of weights on one device. Called by one thread, except `interrupt`."""

    def __init__(self, net: Any, device: str) -> None:
        import torch

        from plait.engines.kokoro.torch_generator import WindowedGenerator
        from plait.engines.kokoro.torch_pieces import cut_long_layers

        self._torch = torch
        self._device = torch.device(device)
        self._stopped = threading.Event()
        self._net = net.to(self._device)
        self._generator = WindowedGenerator(net.decoder.generator, self._raise_if_stopped)
        self._norm_style = _NormStyle(self._generator.norms)
        # The package's decoder ends by calling the vocoder; here it ends with what it hands over.
        del net.decoder.generator
        net.decoder.generator = lambda x, style, f0: x
        if self._device.type == "cpu":
            cut_long_layers(net, self._raise_if_stopped)
        for module in net.modules():
            if not any(module.children()):
                module.register_forward_pre_hook(lambda *layer: self._raise_if_stopped())

    @classmethod
    def load(cls, weights: Path, device: str = "auto", threads: int = 1) -> TorchKokoro:
        """`device`: one of DEVICES. Raises ModelLoadFailed."""
        _import_libraries()
        import torch

        from plait.engines.kokoro.torch_net import load_net

        torch.set_num_threads(threads)
        return cls(load_net(weights), _choose_device(torch, device))

    @property
    def device(self) -> str:
        return str(self._device)

    def text(self, symbols: Ints, style: Floats) -> tuple[Floats, Floats, Floats]:
        with self._call():
            ids = self._tensor(symbols)[None]
            prosody = self._tensor(style)[None, STYLE:]
            lengths = self._torch.tensor([len(symbols)])
            padding = self._torch.zeros_like(ids, dtype=self._torch.bool)
            predictor = self._net.predictor
            hidden = self._net.bert(ids, attention_mask=(~padding).int())
            encoded = self._net.bert_encoder(hidden).transpose(-1, -2)
            d = predictor.text_encoder(encoded, prosody, lengths, padding)
            per_unit = predictor.duration_proj(predictor.lstm(d)[0])
            durations = self._torch.sigmoid(per_unit).sum(dim=-1)
            t = self._net.text_encoder(ids, lengths, padding)
            return self._array(durations), self._array(d.transpose(-1, -2)), self._array(t)

    def acoustic(self, d: Floats, t: Floats, style: Floats) -> tuple[Floats, Floats]:
        with self._call():
            voice = self._tensor(style)[None]
            f0, energy = self._net.predictor.F0Ntrain(self._tensor(d)[None], voice[:, STYLE:])
            x = self._net.decoder(self._tensor(t)[None], f0, energy, voice[:, :STYLE])
            return self._array(x), self._array(f0)

    def generate(self, x: Floats, har: Floats, affine: Floats) -> Floats:
        with self._call():
            window = self._tensor(x)[None], self._tensor(har)[None], self._tensor(affine)
            return self._array(self._generator(*window))

    def norm_style(self, style: Floats) -> Floats:
        return self._norm_style(style[:STYLE])

    def interrupt(self) -> None:
        self._stopped.set()

    def rearm(self) -> None:
        self._stopped.clear()

    def close(self) -> None:
        """Nothing runs any more; the memory goes with the object."""

    @contextmanager
    def _call(self) -> Iterator[None]:
        with self._torch.inference_mode():
            yield

    def _raise_if_stopped(self) -> None:
        if self._stopped.is_set():
            raise Interrupted

    def _tensor(self, array: Any) -> Any:
        return self._torch.from_numpy(np.ascontiguousarray(array)).to(self._device)

    def _array(self, tensor: Any) -> Floats:
        """Without the batch dimension; waits for a GPU."""
        array: Floats = tensor[0].float().cpu().numpy()
        return array


class _NormStyle:
    """What a style asks of every norm: one matrix instead of 48 small layers."""

    def __init__(self, norms: list[Any]) -> None:
        weights = [norm.fc.weight.cpu().numpy() for norm in norms]
        biases = [norm.fc.bias.cpu().numpy() for norm in norms]
        halves = [(0, 2), (1, 2)]
        self._weight = np.stack(
            [np.concatenate([_half(weight, *half) for weight in weights]) for half in halves]
        )
        self._bias = np.stack(
            [np.concatenate([_half(bias, *half) for bias in biases]) for half in halves]
        )
        # 1 and 0 in Kokoro's own checkpoint; a fine-tuned one may have learned others.
        self._scale = np.concatenate([norm.norm.weight.cpu().numpy() for norm in norms])
        self._shift = np.concatenate([norm.norm.bias.cpu().numpy() for norm in norms])
        assert self._bias.shape == (2, NORM_CHANNELS)

    def __call__(self, style: Floats) -> Floats:
        """style [128] -> [2, 9216]: gamma, beta."""
        gamma, beta = self._weight @ style + self._bias
        stacked: Floats = np.stack(
            [(1 + gamma) * self._scale - 1, (1 + gamma) * self._shift + beta]
        ).astype(np.float32)
        return stacked


def _half(array: Floats, number: int, of: int) -> Floats:
    size = len(array) // of
    return array[number * size : (number + 1) * size]


def _choose_device(torch: Any, wanted: str) -> str:
    if wanted not in DEVICES:
        raise ModelLoadFailed(
            f"Device {wanted!r} is unknown to kokoro-torch; use one of {', '.join(DEVICES)}."
        )
    present = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if wanted == "auto":
        return next(device for device, is_there in present.items() if is_there)
    if not present[wanted]:
        raise ModelLoadFailed(
            f"Device {wanted!r} is not usable by this machine's PyTorch; use auto or cpu."
        )
    return wanted
