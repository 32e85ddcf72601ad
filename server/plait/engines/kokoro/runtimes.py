"""Two ways to run an ONNX graph on a CPU that can be cut short: onnxruntime, and OpenVINO.

onnxruntime is what `auto` means: on the redrawn graphs OpenVINO was as fast in float32 (generator
165 against 155 ms of CPU, acoustic 148 against 162, text 211 against 178), but it takes some ten
seconds a graph to compile. Its half precision is not used: transforms of tiles do not bear it.
Threads do not spin when they wait, so a busy machine is not made busier. Does NOT know Kokoro.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from plait.engines.kokoro.model import Floats, Interrupted
from plait.errors import ModelLoadFailed

RUNTIMES = ("auto", "onnxruntime", "openvino")

Ports = dict[str, tuple[int, ...]]
Inputs = Mapping[str, NDArray[Any]]


class Stop:
    """Whether runs are to be cut short. Set from any thread."""

    def __init__(self) -> None:
        self._told = threading.Event()
        self._running: Graph | None = None

    def set(self) -> None:
        self._told.set()
        running = self._running
        if running is not None:
            running.cancel()

    def clear(self) -> None:
        self._told.clear()

    def __bool__(self) -> bool:
        return self._told.is_set()

    def run(self, graph: Graph, inputs: Inputs) -> Sequence[Floats]:
        """Raises Interrupted when told to stop before or in the run."""
        self._running = graph
        try:
            return graph.run(inputs, self)
        except Exception:  # neither library has a class for its errors
            if self:
                raise Interrupted from None
            raise
        finally:
            self._running = None


class Graph(Protocol):
    @property
    def ports(self) -> Ports:
        """Inputs, then outputs, and of their sizes those that are fixed."""

    def run(self, inputs: Inputs, stop: Stop) -> Sequence[Floats]:
        """Outputs in order. Raises anything when `stop` is set, or is set while it runs."""

    def cancel(self) -> None:
        """From any thread: end the run under way."""


class OnnxRuntimeGraph:
    def __init__(self, path: Path, threads: int) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._new_options = onnxruntime.RunOptions
        self._session: Any = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
        self._options: Any = None

    @property
    def ports(self) -> Ports:
        ports = [*self._session.get_inputs(), *self._session.get_outputs()]
        return {p.name: tuple(n for n in p.shape if isinstance(n, int)) for p in ports}

    def run(self, inputs: Inputs, stop: Stop) -> Sequence[Floats]:
        # Options of its own for each run, as those told to terminate stay so. They are in place
        # before `stop` is asked: a stop is seen here, or it reaches the run.
        self._options = options = self._new_options()
        if stop:
            raise Interrupted
        outputs: Sequence[Floats] = self._session.run(None, dict(inputs), options)
        return outputs

    def cancel(self) -> None:
        if self._options is not None:
            self._options.terminate = True


class OpenVinoGraph:
    def __init__(self, path: Path, threads: int) -> None:
        import openvino

        core = openvino.Core()
        settings = {
            "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": "f32",
            "PERFORMANCE_HINT": "LATENCY",
            "ENABLE_CPU_PINNING": False,  # its threads stay where the worker is told to compute
        }
        self._model: Any = core.compile_model(core.read_model(str(path)), "CPU", settings)
        self._request: Any = self._model.create_infer_request()

    @property
    def ports(self) -> Ports:
        ports = [*self._model.inputs, *self._model.outputs]
        return {
            port.any_name: tuple(n.get_length() for n in port.partial_shape if n.is_static)
            for port in ports
        }

    def run(self, inputs: Inputs, stop: Stop) -> Sequence[Floats]:
        self._request.start_async(dict(inputs), share_inputs=True)
        if stop:  # it came before there was a run to cancel
            self._request.cancel()
        self._request.wait()
        if stop:  # a cancelled run may end without an error
            raise Interrupted
        return [np.array(output.data) for output in self._request.output_tensors]

    def cancel(self) -> None:
        self._request.cancel()


def graph_class(runtime: str) -> type[OnnxRuntimeGraph] | type[OpenVinoGraph]:
    """Raises ModelLoadFailed where the library cannot be imported."""
    if runtime not in RUNTIMES:
        raise ModelLoadFailed(
            f"There is no speech runtime '{runtime}'; choose one of {', '.join(RUNTIMES)}."
        )
    try:
        if runtime == "openvino":
            import openvino  # noqa: F401 - whether it is there

            return OpenVinoGraph
        import onnxruntime  # noqa: F401 - slow, so it happens under the libraries' phase
    except ImportError as error:
        package = "openvino" if runtime == "openvino" else "onnxruntime"
        raise ModelLoadFailed(
            f"Engine 'kokoro-onnx' needs the package {package}, which is not usable here: "
            "install it or choose another runtime or engine."
        ) from error
    return OnnxRuntimeGraph
