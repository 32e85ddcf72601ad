"""embedding.json of the form `onnx`: how the model beside it makes a vector of a text.

Written when the form is made, read by the engine and by whoever lists models. Importing this module
imports no numpy. Does NOT know: where the model came from, how it is run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

import msgspec

from plait.models.errors import ModelDamaged

FILE_NAME: Final = "embedding.json"
MODEL_NAME: Final = "model.onnx"
TOKENIZER_NAME: Final = "tokenizer.json"
DENSE_NAME: Final = "dense.npz"

Pooling = Literal["cls", "max", "mean", "mean_sqrt_len", "weighted_mean", "last"]
Activation = Literal["identity", "tanh"]


class EmbeddingSettings(msgspec.Struct, frozen=True):
    """`pooling`: of the tokens' vectors; several are put one behind the other. `dense`: the
    activations of the layers in dense.npz (`weight0`, `bias0`, …), which follow. `normalize`: its
    vectors have unit length, whoever asks. `max_tokens` counts the special ones. `prefix`: put
    before every text. `pad_id`: of the token that fills up a batch, and stands for no token at all.
    """

    dims: int
    max_tokens: int
    pooling: tuple[Pooling, ...] = ("mean",)
    dense: tuple[Activation, ...] = ()
    normalize: bool = False
    lower_case: bool = False
    prefix: str = ""
    pad_id: int = 0

    def write(self, form: Path) -> None:
        (form / FILE_NAME).write_bytes(msgspec.json.format(msgspec.json.encode(self)))


def read_settings(form: Path) -> EmbeddingSettings:
    """Raises ModelDamaged."""
    try:
        return msgspec.json.decode((form / FILE_NAME).read_bytes(), type=EmbeddingSettings)
    except (OSError, msgspec.DecodeError) as error:
        raise ModelDamaged(
            f"{FILE_NAME} of an embedding model cannot be read.",
            "Remove the model and pull it again.",
        ) from error
