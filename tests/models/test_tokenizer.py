"""The derived tokenizer: lossless, complete about ends of turn, and honest about its limits."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from plait.models import UnsupportedModel
from plait.models.gguf_file import read_gguf
from plait.models.tokenizer import end_of_turn_ids, tokenizer_files

from .tiny import TRICKY


@pytest.fixture(scope="module")
def tokenizer(tiny_gguf: Path) -> Tokenizer:
    return Tokenizer.from_str(tokenizer_files(read_gguf(tiny_gguf))["tokenizer.json"])


@pytest.mark.parametrize("text", TRICKY)
def test_decoding_gives_the_text_back(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text).ids

    assert tokenizer.decode(ids, skip_special_tokens=False) == text


def test_a_special_token_is_one_token_and_can_be_hidden(tokenizer: Tokenizer) -> None:
    encoding = tokenizer.encode("<|im_start|>x<|im_end|>")

    assert encoding.ids[0] == 1
    assert encoding.ids[-1] == 2
    assert tokenizer.decode(encoding.ids) == "x"


def test_every_end_of_turn_token_is_listed_eos_first(tiny_gguf: Path) -> None:
    assert end_of_turn_ids(read_gguf(tiny_gguf)) == [2, 0]


def test_an_ordinary_word_that_looks_like_an_end_of_turn_is_not_one(tiny_gguf: Path) -> None:
    gguf = read_gguf(tiny_gguf)
    types = [1] * len(gguf.metadata["tokenizer.ggml.token_type"])
    plain = replace(gguf, metadata={**gguf.metadata, "tokenizer.ggml.token_type": types})

    assert end_of_turn_ids(plain) == [2]


def test_the_configuration_carries_template_limits_and_special_tokens(tiny_gguf: Path) -> None:
    config = json.loads(tokenizer_files(read_gguf(tiny_gguf))["tokenizer_config.json"])

    assert config["chat_template"].startswith("{% for message")
    assert config["model_max_length"] == 512
    assert (config["bos_token"], config["eos_token"]) == ("<|im_start|>", "<|im_end|>")
    assert config["eos_token_ids"] == [2, 0]


@pytest.mark.parametrize(
    ("key", "value"),
    [("tokenizer.ggml.model", "llama"), ("tokenizer.ggml.pre", "deepseek-coder")],
)
def test_another_kind_of_vocabulary_is_refused_with_a_way_out(
    tiny_gguf: Path, key: str, value: str
) -> None:
    gguf = read_gguf(tiny_gguf)
    other = replace(gguf, metadata={**gguf.metadata, key: value})

    with pytest.raises(UnsupportedModel, match="hf:org/name"):
        tokenizer_files(other)
