"""GGUF vocabulary → tokenizer.json and tokenizer_config.json, as Hugging Face tokenizers read them.

Byte-level BPE only (`tokenizer.ggml.model` = gpt2). The pre-tokenizers are those of llama.cpp's
table, so both engines cut the same text into the same tokens; a test compares them. Every
end-of-turn token of the vocabulary is listed in `eos_token_ids`, because a model that ends a turn
with another token than its `eos` would otherwise run on.
Does NOT know: files, chat templates' meaning.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from plait.models.errors import UnsupportedModel
from plait.models.gguf_file import GgufFile

_CONTROL = 3
_USER_DEFINED = 4

# The names under which llama.cpp knows tokens that end a turn or a text.
END_OF_TURN: Final = (
    "<|im_end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<end_of_turn>",
    "<end_of_utterance>",
    "<EOT>",
    "</s>",
)


def _byte_level(use_regex: bool) -> dict[str, Any]:
    return {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": use_regex,
    }


def _split_by(pattern: str) -> dict[str, Any]:
    split = {
        "type": "Split",
        "pattern": {"Regex": pattern},
        "behavior": "Isolated",
        "invert": False,
    }
    return {"type": "Sequence", "pretokenizers": [split, _byte_level(use_regex=False)]}


_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_SMOLLM = {
    "type": "Sequence",
    "pretokenizers": [{"type": "Digits", "individual_digits": True}, _byte_level(use_regex=True)],
}
_PRE_TOKENIZERS: Final[Mapping[str, dict[str, Any]]] = {
    "gpt-2": _byte_level(use_regex=True),
    "smollm": _SMOLLM,
    "llama-bpe": _split_by(_WORDS % r"\p{N}{1,3}"),
    "qwen2": _split_by(_WORDS % r"\p{N}"),
}
# llama.cpp looks a whole word up in the vocabulary before merging for these.
_IGNORES_MERGES: Final = frozenset({"llama-bpe"})


def tokenizer_files(gguf: GgufFile) -> dict[str, str]:
    """The two files' contents by file name. Raises UnsupportedModel for any other kind of
    vocabulary than byte-level BPE with a known pre-tokenizer."""
    return {
        "tokenizer.json": json.dumps(_tokenizer(gguf), ensure_ascii=False),
        "tokenizer_config.json": json.dumps(_config(gguf), ensure_ascii=False, indent=1),
    }


def end_of_turn_ids(gguf: GgufFile) -> list[int]:
    """Every token that ends a turn, the vocabulary's own `eos` first."""
    metadata = gguf.metadata
    named = [metadata.get(f"tokenizer.ggml.{key}_token_id") for key in ("eos", "eot", "eom")]
    ids = {text: number for number, text in enumerate(metadata["tokenizer.ggml.tokens"])}
    types = metadata["tokenizer.ggml.token_type"]
    listed = [ids[text] for text in END_OF_TURN if text in ids and types[ids[text]] != 1]
    return list(dict.fromkeys(number for number in (*named, *listed) if number is not None))


def _tokenizer(gguf: GgufFile) -> dict[str, Any]:
    metadata = gguf.metadata
    kind = metadata.get("tokenizer.ggml.model")
    pre = metadata.get("tokenizer.ggml.pre", "gpt-2")
    if kind != "gpt2" or pre not in _PRE_TOKENIZERS:
        raise UnsupportedModel(
            f"{gguf.path.name} has a {kind}/{pre} vocabulary, which cannot be converted"
            f" (known: gpt2 with {', '.join(_PRE_TOKENIZERS)}).",
            "Use the model's MLX repository, which carries its tokenizer: hf:org/name.",
        )
    tokens = metadata["tokenizer.ggml.tokens"]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added_tokens(tokens, metadata["tokenizer.ggml.token_type"]),
        "normalizer": None,
        "pre_tokenizer": _PRE_TOKENIZERS[pre],
        "post_processor": None,
        "decoder": _byte_level(use_regex=True) | {"add_prefix_space": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": pre in _IGNORES_MERGES,
            "vocab": {text: number for number, text in enumerate(tokens)},
            "merges": [merge.split(" ") for merge in metadata["tokenizer.ggml.merges"]],
        },
    }


def _added_tokens(tokens: list[str], types: list[int]) -> list[dict[str, Any]]:
    return [
        {
            "id": number,
            "content": text,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": kind == _USER_DEFINED,
            "special": kind == _CONTROL,
        }
        for number, (text, kind) in enumerate(zip(tokens, types, strict=True))
        if kind in (_CONTROL, _USER_DEFINED)
    ]


def _config(gguf: GgufFile) -> dict[str, Any]:
    metadata = gguf.metadata
    tokens = metadata["tokenizer.ggml.tokens"]
    named = {
        f"{ours}_token": tokens[metadata[f"tokenizer.ggml.{theirs}_token_id"]]
        for ours, theirs in (
            ("bos", "bos"),
            ("eos", "eos"),
            ("unk", "unknown"),
            ("pad", "padding"),
        )
        if f"tokenizer.ggml.{theirs}_token_id" in metadata
    }
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": gguf.hyperparameter("context_length"),
        "add_bos_token": bool(metadata.get("tokenizer.ggml.add_bos_token", False)),
        "chat_template": metadata.get("tokenizer.chat_template"),
        "eos_token_ids": end_of_turn_ids(gguf),
        **named,
    }
