"""What a sentence-transformers directory says of its model: pooling, normalisation, longest text.

    modules.json                which steps there are; without it mean pooling is all
    sentence_bert_config.json   max_seq_length, do_lower_case (older ones have other names)
    1_Pooling/config.json       how the tokens' vectors become one
    config.json                 the transformer; tokenizer_config.json: its tokenizer's limit
    model.safetensors, onnx/model.onnx or model.onnx

Only JSON is read here. A step that is not known is refused: a vector without it would be another.
Does NOT know: how weights are read, what a form looks like.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from plait.models.embedding.settings import Activation, EmbeddingSettings, Pooling
from plait.models.errors import ModelDamaged, UnsupportedModel

ONNX_FOLDER: Final = "onnx"
SAFETENSORS: Final = "model.safetensors"
ONNX: Final = "model.onnx"
# Of these the transformer's graph is drawn here; others need an ONNX file.
FAMILIES: Final = ("bert", "roberta", "xlm-roberta", "camembert", "distilbert", "mpnet")

# In the order in which they are put one behind the other.
_POOLING: Final[tuple[tuple[str, str, Pooling], ...]] = (
    ("pooling_mode_cls_token", "cls", "cls"),
    ("pooling_mode_max_tokens", "max", "max"),
    ("pooling_mode_mean_tokens", "mean", "mean"),
    ("pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", "mean_sqrt_len"),
    ("pooling_mode_weightedmean_tokens", "weightedmean", "weighted_mean"),
    ("pooling_mode_lasttoken", "lasttoken", "last"),
)
_ACTIVATIONS: Final[Mapping[str, Activation]] = {"Identity": "identity", "Tanh": "tanh"}
# A tokenizer without a limit has one of 10^30.
_NO_LIMIT: Final = 10**9


@dataclass(frozen=True, slots=True)
class DenseLayer:
    """A linear layer after pooling; its weights are in `folder`."""

    folder: Path
    activation: Activation


@dataclass(frozen=True, slots=True)
class SourceDirectory:
    """`transformer`: where config.json, tokenizer and weights are. `config` as it is written."""

    root: Path
    transformer: Path
    config: Mapping[str, Any]
    settings: EmbeddingSettings
    dense: tuple[DenseLayer, ...]

    @property
    def files(self) -> list[Path]:
        """All that was or will be read, but for the weights; without those that are not there."""
        names = ("config.json", "tokenizer.json", "tokenizer_config.json")
        found = [self.transformer / name for name in names]
        found += sorted(self.transformer.glob("sentence_*_config.json"))
        found += [self.root / "modules.json", self.root / "config_sentence_transformers.json"]
        found += sorted(self.root.glob("[0-9]_*/config.json"))
        found += [layer.folder / SAFETENSORS for layer in self.dense]
        return [file for file in dict.fromkeys(found) if file.is_file()]

    @property
    def drawable(self) -> bool:
        """Its graph can be drawn from its weights, if they are there."""
        return self.config.get("model_type") in FAMILIES

    def weights(self) -> Path:
        """What the form is made from: weights of a known family, else an ONNX file.

        Raises UnsupportedModel when there is neither.
        """
        safetensors = self.transformer / SAFETENSORS
        if self.drawable and safetensors.is_file():
            return safetensors
        for file in (self.root / ONNX_FOLDER / ONNX, self.root / ONNX):
            if file.is_file():
                return file
        raise not_embedding(
            f"it has no {ONNX_FOLDER}/{ONNX}, and no {SAFETENSORS} of {', '.join(FAMILIES)}"
        )


def read_directory(root: Path) -> SourceDirectory:
    """Raises ModelDamaged for files that cannot be read, UnsupportedModel for unknown steps."""
    modules = _modules(root)
    transformer = root / modules[0].get("path", "")
    if not (transformer / "tokenizer.json").is_file():
        raise not_embedding("it has no tokenizer.json")
    config = _json(transformer / "config.json", {})
    try:
        settings, dense = _settings(root, transformer, config, modules[1:])
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise _damaged(f"its settings cannot be read ({error})") from error
    return SourceDirectory(root, transformer, config, settings, dense)


def root_of(weights: Path) -> Path:
    """The directory that `weights`, as `SourceDirectory.weights` gave them, belongs to."""
    for folder in weights.parents[:2]:
        if (folder / "modules.json").is_file():
            return folder
    return weights.parents[1] if weights.parent.name == ONNX_FOLDER else weights.parent


def not_embedding(why: str) -> UnsupportedModel:
    return UnsupportedModel(
        f"This is no model for embed: {why}.",
        "Set embed_model = 'all-minilm-l6-v2', or name a sentence-transformers directory or"
        " repository (hf:org/name).",
    )


def _damaged(why: str) -> ModelDamaged:
    return ModelDamaged(
        f"This embedding model is damaged: {why}.", "Fetch it anew, or choose another."
    )


def _json(path: Path, default: Any) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return default
    except (OSError, ValueError) as error:
        raise _damaged(f"{path.name} cannot be read") from error


def _modules(root: Path) -> list[dict[str, Any]]:
    modules = _json(root / "modules.json", None)
    if modules is None:
        return [{"path": "", "type": "Transformer"}, {"path": "", "type": "Pooling"}]
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise _damaged("modules.json is no list of modules")
    if not all(_is_inside(module.get("path", "")) for module in modules):
        raise _damaged("modules.json names a folder outside of it")
    if not modules or _kind(modules[0]) != "Transformer":
        raise not_embedding("its first module is no transformer")
    return modules


def _is_inside(folder: object) -> bool:
    """What a model names is its author's word: nothing of this machine is read for it."""
    if not isinstance(folder, str):
        return False
    path = Path(folder)
    return not path.is_absolute() and ".." not in path.parts


def _kind(module: Mapping[str, Any]) -> str:
    return str(module.get("type", "")).rsplit(".", 1)[-1]


def _settings(
    root: Path, transformer: Path, config: Mapping[str, Any], modules: list[dict[str, Any]]
) -> tuple[EmbeddingSettings, tuple[DenseLayer, ...]]:
    pooling: tuple[Pooling, ...] = ()
    dims, normalize, dense = 0, False, []
    for module in modules:
        folder = root / str(module.get("path", ""))
        kind = _kind(module)
        options = _json(folder / "config.json", {}) if folder != root else {}
        if kind == "Pooling":
            pooling = _pooling(options)
            dims = int(options.get("word_embedding_dimension") or _hidden(config)) * len(pooling)
        elif kind == "Dense":
            activation = _activation(options)
            dims = int(options["out_features"])
            dense.append(DenseLayer(folder, activation))
        elif kind == "Normalize":
            normalize = True
        else:
            raise not_embedding(f"its module {kind!r} is not known here")
    if not pooling:
        raise not_embedding("it does not say how the tokens' vectors become one")
    transformer_options = _transformer_options(transformer)
    return (
        EmbeddingSettings(
            dims=dims,
            max_tokens=_max_tokens(transformer, config, transformer_options),
            pooling=pooling,
            dense=tuple(layer.activation for layer in dense),
            normalize=normalize,
            lower_case=bool(transformer_options.get("do_lower_case", False)),
            prefix=_prefix(root),
            pad_id=int(config.get("pad_token_id") or 0),
        ),
        tuple(dense),
    )


def _hidden(config: Mapping[str, Any]) -> int:
    return int(config.get("hidden_size") or config["dim"])


def _pooling(options: Mapping[str, Any]) -> tuple[Pooling, ...]:
    named = options.get("pooling_mode")
    names = [named] if isinstance(named, str) else list(named or ())
    if unknown := set(names) - {name for _, name, _ in _POOLING}:
        raise not_embedding(f"its pooling {sorted(unknown)} is not known here")
    found = tuple(mode for flag, name, mode in _POOLING if options.get(flag) or name in names)
    return found or ("mean",)


def _activation(options: Mapping[str, Any]) -> Activation:
    name = str(options.get("activation_function", "Tanh")).rsplit(".", 1)[-1]
    if name not in _ACTIVATIONS:
        raise not_embedding(f"its activation {name} is not known here")
    return _ACTIVATIONS[name]


def _transformer_options(transformer: Path) -> Mapping[str, Any]:
    for file in sorted(transformer.glob("sentence_*_config.json")):
        found: Mapping[str, Any] = _json(file, {})
        return found
    return {}


def _max_tokens(transformer: Path, config: Mapping[str, Any], options: Mapping[str, Any]) -> int:
    positions = int(config.get("max_position_embeddings") or _NO_LIMIT)
    if config.get("model_type") in ("roberta", "xlm-roberta", "camembert", "mpnet"):
        positions -= int(config.get("pad_token_id") or 1) + 1  # those before the first token's
    limit = options.get("max_seq_length")
    if not limit:
        limit = _json(transformer / "tokenizer_config.json", {}).get("model_max_length")
    found = min(positions, int(limit or 512))
    if found < 3:
        raise ValueError(f"a text may have {found} tokens")
    return min(found, 512) if found >= _NO_LIMIT else found


def _prefix(root: Path) -> str:
    """What sentence-transformers puts before a text when it is told nothing."""
    options = _json(root / "config_sentence_transformers.json", {})
    name = options.get("default_prompt_name")
    return str((options.get("prompts") or {}).get(name) or "") if name else ""
