"""What we derive from a GGUF, held against the engines themselves.

llama.cpp tokenizes natively, so its ids are the reference for our tokenizer.json; mlx-lm must give
a sensible answer from our converted weights.
"""

from __future__ import annotations

import json
import random
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from plait.models import InstalledModel
from plait.models.gguf_file import read_gguf
from plait.models.tokenizer import tokenizer_files

from .tiny import TRICKY, write_gguf

pytestmark = pytest.mark.model


def random_texts(count: int) -> Iterator[str]:
    source = random.Random(7)
    letters = "abcXYZ  019.,'!?\n\t\r_-éßждא日本語한국\u0301\u00a0\u3000\u200d½²Ⅷ٣😀👍🏽"
    for _ in range(count):
        yield "".join(source.choice(letters) for _ in range(source.randint(0, 40)))


def native_tokenizer(path: Path) -> tuple[Any, Callable[[str], list[int]]]:
    """llama.cpp's server for `path`, and its tokenizer (reachable over its loopback port only)."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.n_parallel, parameters.n_ctx = 1, 512
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.port, parameters.verbosity, parameters.warmup = 0, -1, False
    server = xllamacpp.Server(parameters)

    def tokenize(text: str) -> list[int]:
        body = {"content": text, "add_special": False, "parse_special": True}
        request = urllib.request.Request(
            f"{server.listening_address}/tokenize",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=10) as response:
            return list(json.load(response)["tokens"])

    return server, tokenize


@pytest.mark.parametrize("pre", ["gpt-2", "smollm", "llama-bpe", "qwen2"])
def test_every_pre_tokenizer_cuts_as_llamacpp_does(tmp_path: Path, pre: str) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", pre)
    ours = Tokenizer.from_str(tokenizer_files(read_gguf(path))["tokenizer.json"])
    _server, tokenize = native_tokenizer(path)

    for text in (*TRICKY, *random_texts(60)):
        assert ours.encode(text).ids == tokenize(text), text


def test_the_starter_tokenizes_as_llamacpp_does(starter_model: InstalledModel) -> None:
    assert starter_model.gguf is not None
    ours = Tokenizer.from_file(str(starter_model.tokenizer))
    _server, tokenize = native_tokenizer(starter_model.gguf)

    for text in (*TRICKY, *random_texts(60)):
        assert ours.encode(text).ids == tokenize(text), text


def test_the_starter_converted_for_mlx_can_add(starter_model: InstalledModel) -> None:
    from mlx_lm import generate, load

    model, tokenizer = load(str(starter_model.mlx))
    question = [{"role": "user", "content": "What is 2+2?"}]
    prompt = tokenizer.apply_chat_template(question, add_generation_prompt=True)

    answer = generate(model, tokenizer, prompt=prompt, max_tokens=10)

    assert "4" in answer
    assert tokenizer.eos_token_ids == {0, 2}
