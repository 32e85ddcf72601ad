"""A form `onnx` of an embedding model becomes an engine; `load` is for a worker.

Every way the directory can be wrong is `ModelLoadFailed`. Does NOT know jobs or batches.
"""

from __future__ import annotations

import time
from pathlib import Path

from plait.engines.base import CancelFlags, LoadSpec, Report
from plait.engines.embed.encoding import TextEncoder, Tokenizer
from plait.engines.embed.engine import EmbedEngine
from plait.engines.embed.model import OnnxModel
from plait.engines.embed.packing import Pace
from plait.errors import ModelLoadFailed
from plait.models.embedding.settings import EmbeddingSettings, read_settings
from plait.models.errors import StoreError

WARM_UP = ("A few words, to begin with.", "Some more of them follow, so that it is a batch.")


def load(spec: LoadSpec, flags: CancelFlags, report: Report) -> EmbedEngine:
    """Raises ModelLoadFailed. `spec.weights`: the directory that `models.embedding.convert` made.
    A batch is embedded at once: the first one plans memory, and the second tells the pace."""
    form = Path(spec.weights)
    report("libraries", None)
    import onnxruntime  # noqa: F401 - slow, so it happens under this phase

    report("weights", 20)
    settings = _settings_in(form)
    try:
        encoder = TextEncoder(Tokenizer(form, settings), settings)
        model = OnnxModel(form, settings, spec.threads)
        report("warm-up", 70)
        engine = EmbedEngine(spec, flags, model, encoder, pace=_warm_up(model, encoder))
    except Exception as error:  # neither library has a class for its errors
        raise ModelLoadFailed(
            f"The embedding model '{spec.model}' could not be loaded: its graph or its tokenizer is"
            " incomplete, damaged or of another kind; verify the model or install it again."
        ) from error
    report("warm-up", 100)
    return engine


def _settings_in(form: Path) -> EmbeddingSettings:
    try:
        return read_settings(form)
    except StoreError as error:
        raise ModelLoadFailed(
            "The embedding model's settings cannot be read; verify it or install it again."
        ) from error


def _warm_up(model: OnnxModel, encoder: TextEncoder) -> Pace:
    """Raises ValueError where the vectors are not what the settings say."""
    texts = [encoded.ids for encoded in encoder.encode_short(WARM_UP * 4)]
    vectors = model.embed(texts)
    if vectors.shape != (len(texts), encoder.settings.dims):
        raise ValueError(f"the vectors have the shape {vectors.shape}")
    pace = Pace()
    begin = time.monotonic()
    model.embed(texts)
    pace.took(len(texts) * max(map(len, texts)), time.monotonic() - begin)
    return pace
