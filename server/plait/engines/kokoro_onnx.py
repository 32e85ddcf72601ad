"""Kokoro over onnxruntime: the three graphs of `plait.models.kokoro_graphs`; `load` for a worker.

`OnnxKokoro` satisfies `KokoroModel`. Threads do not spin when they wait, so a busy machine is not
made busier. Each run has its own RunOptions, because one that was told to terminate stays so.
Every way the directory can be wrong is `ModelLoadFailed`. Does NOT know jobs, windows or text.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from plait.engines.base import CancelFlags, LoadSpec, Report
from plait.engines.kokoro_model import NORM_CHANNELS, Floats, Interrupted, Ints
from plait.errors import ModelLoadFailed

if TYPE_CHECKING:
    from plait.engines.kokoro import KokoroEngine

STYLE = 128  # of a voice's 256 numbers the first half shapes the sound
SILENT = -30.0  # log magnitude
# Inputs, then outputs, of the three graphs; sizes that are not fixed are left out.
PORTS: tuple[dict[str, tuple[int, ...]], ...] = (
    {"tokens": (1,), "style": (1, 256), "durations": (1,), "d": (1, 640), "t": (1, 512)},
    {"d": (1, 640), "t": (1, 512), "style": (1, 256), "x": (1, 512), "f0": (1, 1)},
    {"x": (1, 512), "har": (1, 22), "affine": (1, 2, 9216), "spectra": (1, 22)},
)


def load(spec: LoadSpec, flags: CancelFlags, report: Report) -> KokoroEngine:
    """Raises ModelLoadFailed. `spec.weights`: the directory that `build_graphs` wrote."""
    report("libraries", None)
    _import_onnxruntime()
    report("weights", 10)
    model = OnnxKokoro.load(Path(spec.weights), threads=spec.threads)
    from plait.engines.kokoro_opening import open_engine

    return open_engine(spec, flags, report, model)


def _import_onnxruntime() -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise ModelLoadFailed(
            "Engine 'kokoro-onnx' needs the package onnxruntime, which is not usable here: "
            "install it or choose another engine."
        ) from error
    return onnxruntime


class OnnxKokoro:
    """One set of weights. Called by one thread, except `interrupt`."""

    def __init__(self, text: Any, acoustic: Any, generator: Any, norms: dict[str, Floats]) -> None:
        self._ort = _import_onnxruntime()
        self._text = text
        self._acoustic = acoustic
        self._generator = generator
        self._norms = norms
        self._stopped = threading.Event()
        self._running: Any = None

    @classmethod
    def load(cls, directory: Path, threads: int = 1) -> OnnxKokoro:
        """Raises ModelLoadFailed."""
        ort = _import_onnxruntime()
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            text, acoustic, generator = (
                ort.InferenceSession(
                    str(directory / f"{part}.onnx"), options, providers=["CPUExecutionProvider"]
                )
                for part in ("text", "acoustic", "generator")
            )
            _check_ports(text, acoustic, generator)
            norms = _read_norms(directory / "norm_style.npz")
        except Exception as error:  # onnxruntime's own errors share no base class
            raise ModelLoadFailed(
                "The speech model's graphs are incomplete, damaged or of another version; "
                "verify the model or install it again."
            ) from error
        return cls(text, acoustic, generator, norms)

    def text(self, symbols: Ints, style: Floats) -> tuple[Floats, Floats, Floats]:
        durations, d, t = self._run(self._text, tokens=symbols[None], style=style[None])
        return durations[0], d[0].T, t[0]

    def acoustic(self, d: Floats, t: Floats, style: Floats) -> tuple[Floats, Floats]:
        x, f0 = self._run(self._acoustic, d=d[None], t=t[None], style=style[None])
        return x[0], f0[0, 0]

    def generate(self, x: Floats, har: Floats, affine: Floats) -> Floats:
        """The context's spectra, which the graph only looks at, are silence."""
        (inner,) = self._run(self._generator, x=x[None], har=har[None], affine=affine[None])
        margin = (har.shape[1] - inner.shape[2]) // 2
        spectra = np.full(har.shape, SILENT, np.float32)
        spectra[:, margin:-margin] = inner[0]
        return spectra

    def norm_style(self, style: Floats) -> Floats:
        projected = np.tensordot(style[:STYLE], self._norms["weight"], axes=1)
        result: Floats = projected + self._norms["bias"]
        return result

    def interrupt(self) -> None:
        self._stopped.set()
        running = self._running
        if running is not None:
            running.terminate = True

    def rearm(self) -> None:
        self._stopped.clear()

    def close(self) -> None:
        """The sessions go, and their memory with them."""
        self._text = self._acoustic = self._generator = None

    def _run(self, session: Any, **inputs: Any) -> Sequence[Floats]:
        options = self._ort.RunOptions()
        self._running = options
        # Asked after `_running` is set: an interrupt is seen here, or it ends the run.
        if self._stopped.is_set():
            raise Interrupted
        try:
            outputs: Sequence[Floats] = session.run(None, inputs, options)
        except Exception:  # onnxruntime's own errors share no base class
            if self._stopped.is_set():
                raise Interrupted from None
            raise
        return outputs


def _check_ports(*sessions: Any) -> None:
    """Raises ValueError where a graph has other inputs or outputs than this version's."""
    for session, expected in zip(sessions, PORTS, strict=True):
        ports = [*session.get_inputs(), *session.get_outputs()]
        found = tuple(tuple(n for n in port.shape if isinstance(n, int)) for port in ports)
        if (names := tuple(port.name for port in ports)) != tuple(expected):
            raise ValueError(f"a graph has the ports {names}")
        if found != tuple(expected.values()):
            raise ValueError(f"a graph's ports have the shapes {found}")


def _read_norms(path: Path) -> dict[str, Floats]:
    with np.load(path) as file:
        norms = {"weight": file["weight"], "bias": file["bias"]}
    if norms["weight"].shape != (STYLE, 2, NORM_CHANNELS):
        raise ValueError("norm_style.npz has another shape")
    return norms
