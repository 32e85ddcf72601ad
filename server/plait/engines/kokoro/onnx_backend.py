"""Kokoro over its three ONNX graphs (`plait.models.kokoro.graphs`); `load` is for a worker.

`OnnxKokoro` satisfies `KokoroModel` and gives arrays without the graphs' batch axis. Every way the
directory can be wrong is `ModelLoadFailed`. Does NOT know jobs, windows or text, nor how a graph is
run (see `runtimes`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from plait.engines.base import CancelFlags, LoadSpec, Report
from plait.engines.kokoro.model import NORM_CHANNELS, Floats, Ints
from plait.engines.kokoro.runtimes import Graph, Inputs, Ports, Stop, graph_class
from plait.errors import ModelLoadFailed

if TYPE_CHECKING:
    from plait.engines.kokoro.engine import KokoroEngine

STYLE = 128  # of a voice's 256 numbers the first half shapes the sound
SILENT = -30.0  # log magnitude
# Inputs, then outputs, of the three graphs; sizes that are not fixed are left out.
PORTS: dict[str, Ports] = {
    "text": {"tokens": (1,), "style": (1, 256), "durations": (1,), "d": (1, 640), "t": (1, 512)},
    "acoustic": {"d": (1, 640), "t": (1, 512), "style": (1, 256), "x": (1, 512), "f0": (1, 1)},
    "generator": {"x": (1, 512), "har": (1, 22), "affine": (1, 2, 9216), "spectra": (1, 22)},
}


def load(spec: LoadSpec, flags: CancelFlags, report: Report) -> KokoroEngine:
    """Raises ModelLoadFailed. `spec.weights`: the directory that `build_graphs` wrote;
    `spec.options["runtime"]`: one of `runtimes.RUNTIMES`."""
    runtime = spec.options.get("runtime", "auto")
    report("libraries", None)
    graph_class(runtime)
    report("weights", 10)
    model = OnnxKokoro.load(Path(spec.weights), spec.threads, runtime)
    from plait.engines.kokoro.opening import open_engine

    return open_engine(spec, flags, report, model)


class OnnxKokoro:
    """One set of weights. Called by one thread, except `interrupt`."""

    def __init__(self, graphs: dict[str, Graph], norms: dict[str, Floats]) -> None:
        """`graphs` by the names in PORTS. Raises ValueError where one has other ports."""
        for name, graph in graphs.items():
            if list(graph.ports.items()) != list(PORTS[name].items()):
                raise ValueError(f"{name} has the ports {graph.ports}")
        if norms["weight"].shape != (STYLE, 2, NORM_CHANNELS):
            raise ValueError(f"the norms' style weights have the shape {norms['weight'].shape}")
        self._graphs = graphs
        self._norms = norms
        self._stop = Stop()

    @classmethod
    def load(cls, directory: Path, threads: int = 1, runtime: str = "auto") -> OnnxKokoro:
        """Raises ModelLoadFailed."""
        new_graph = graph_class(runtime)
        try:
            with np.load(directory / "norm_style.npz") as file:
                norms = {name: file[name] for name in ("weight", "bias")}
            graphs: dict[str, Graph] = {
                name: new_graph(directory / f"{name}.onnx", threads) for name in PORTS
            }
            return cls(graphs, norms)
        except Exception as error:  # neither runtime has a class for its errors
            raise ModelLoadFailed(
                "The speech model's graphs are incomplete, damaged or of another version; "
                "verify the model or install it again."
            ) from error

    def text(self, symbols: Ints, style: Floats) -> tuple[Floats, Floats, Floats]:
        inputs: Inputs = {"tokens": symbols[None], "style": style[None]}
        durations, d, t = self._stop.run(self._graphs["text"], inputs)
        return durations[0], d[0].T, t[0]

    def acoustic(self, d: Floats, t: Floats, style: Floats) -> tuple[Floats, Floats]:
        inputs = {"d": d[None], "t": t[None], "style": style[None]}
        x, f0 = self._stop.run(self._graphs["acoustic"], inputs)
        return x[0], f0[0, 0]

    def generate(self, x: Floats, har: Floats, affine: Floats) -> Floats:
        """The context's spectra, which the graph only looks at, are silence."""
        inputs = {"x": x[None], "har": har[None], "affine": affine[None]}
        (inner,) = self._stop.run(self._graphs["generator"], inputs)
        margin = (har.shape[1] - inner.shape[2]) // 2
        spectra = np.full(har.shape, SILENT, np.float32)
        spectra[:, margin:-margin] = inner[0]
        return spectra

    def norm_style(self, style: Floats) -> Floats:
        projected = np.tensordot(style[:STYLE], self._norms["weight"], axes=1)
        result: Floats = projected + self._norms["bias"]
        return result

    def interrupt(self) -> None:
        self._stop.set()

    def rearm(self) -> None:
        self._stop.clear()

    def close(self) -> None:
        """The graphs go, and their memory with them."""
        self._graphs = {}
