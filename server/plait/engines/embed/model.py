"""A transformer on onnxruntime: token ids of some texts to one vector each, cut short on demand.

Threads do not spin when they wait, so a busy machine is not made busier. A vector does not depend
on what else is in its batch but for the last digits: activations are float32, also of models whose
weights are stored in 8 bits. Does NOT know jobs, texts or tokenizers.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from plait.engines.embed.pooling import DenseLayer, pool
from plait.models.embedding.settings import DENSE_NAME, MODEL_NAME, EmbeddingSettings

Floats = NDArray[np.float32]
TokenIds = Sequence[int]


class Interrupted(Exception):
    """The run was cut short; call `rearm` before the next."""


class EmbeddingModel(Protocol):
    """What the engine asks of `OnnxModel`, which says more."""

    def embed(self, texts: Sequence[TokenIds]) -> Floats: ...

    def interrupt(self) -> None: ...

    def rearm(self) -> None: ...

    def close(self) -> None: ...


class OnnxModel:
    """Used by one thread at a time, except `interrupt`."""

    def __init__(self, form: Path, settings: EmbeddingSettings, threads: int) -> None:
        """`form`: the directory that `models.embedding.convert` made. Raises what onnxruntime and
        numpy raise, and ValueError for a graph that is no such transformer."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3  # an interrupted run is no error
        self._new_options = onnxruntime.RunOptions
        self._session: Any = onnxruntime.InferenceSession(
            str(form / MODEL_NAME), options, providers=["CPUExecutionProvider"]
        )
        self._settings = settings
        self._dense = _dense_layers(form, settings)
        self._inputs = {port.name: _dtype(port) for port in self._session.get_inputs()}
        self._output = _output_name(self._session)
        self._told = threading.Event()
        self._options: Any = None

    def embed(self, texts: Sequence[TokenIds]) -> Floats:
        """[texts, dims], neither normalised nor checked. Raises Interrupted."""
        mask = _mask(texts)
        hidden = self._run(self._feeds(texts, mask))
        vectors = pool(hidden, mask, self._settings.pooling)
        for layer in self._dense:
            vectors = layer.apply(vectors)
        return vectors

    def interrupt(self) -> None:
        """From any thread: the run under way, or the next one, raises Interrupted."""
        self._told.set()
        options = self._options
        if options is not None:
            options.terminate = True

    def rearm(self) -> None:
        self._told.clear()

    def close(self) -> None:
        self._session = None

    def _run(self, feeds: dict[str, NDArray[Any]]) -> Floats:
        # Options of its own for each run, as those told to terminate stay so. They are in place
        # before the flag is asked: an interrupt is seen here, or it reaches the run.
        self._options = options = self._new_options()
        if self._told.is_set():
            raise Interrupted
        try:
            (hidden,) = self._session.run([self._output], feeds, options)
        except Exception:  # onnxruntime has no class for a run that was terminated
            if self._told.is_set():
                raise Interrupted from None
            raise
        finally:
            self._options = None
        found: Floats = np.asarray(hidden, np.float32)
        return found

    def _feeds(self, texts: Sequence[TokenIds], mask: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        ids = np.full(mask.shape, self._settings.pad_id, np.int64)
        for row, text in zip(ids, texts, strict=True):
            row[: len(text)] = text
        known = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(ids),
            "position_ids": np.broadcast_to(np.arange(mask.shape[1]), mask.shape),
        }
        return {
            name: np.ascontiguousarray(known[name], dtype) for name, dtype in self._inputs.items()
        }


def _mask(texts: Sequence[TokenIds]) -> NDArray[np.int64]:
    lengths = np.array([len(text) for text in texts])
    return (np.arange(lengths.max())[None, :] < lengths[:, None]).astype(np.int64)


def _dtype(port: Any) -> type[np.integer[Any]]:
    kinds: dict[str, type[np.integer[Any]]] = {
        "tensor(int64)": np.int64,
        "tensor(int32)": np.int32,
    }
    if port.name not in ("input_ids", "attention_mask", "token_type_ids", "position_ids"):
        raise ValueError(f"the graph has an input {port.name}")
    return kinds[port.type]


def _output_name(session: Any) -> str:
    """The tokens' vectors: the first output of three axes."""
    for port in session.get_outputs():
        if len(port.shape) == 3:
            return str(port.name)
    raise ValueError("the graph has no output of one vector per token")


def _dense_layers(form: Path, settings: EmbeddingSettings) -> list[DenseLayer]:
    if not settings.dense:
        return []
    with np.load(form / DENSE_NAME) as file:
        return [
            DenseLayer(file[f"weight{number}"], file[f"bias{number}"], activation)
            for number, activation in enumerate(settings.dense)
        ]
