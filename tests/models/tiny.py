"""A tiny Llama as GGUF, and a wheel that carries it: a starter model without the wait."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from plait.models.sources import Starter, WheelPart

SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
HIDDEN, HEADS, KV_HEADS, CONTEXT = 64, 4, 2, 512

TRICKY = [
    "Hello world",
    " leading, trailing ",
    "two  spaces   three",
    "tab\there\n\nnew\r\nline\n",
    "1234567890 3.14 1,000,000 2026-11-30",
    "12a34b ٣٤٥ ½ ² Ⅷ ๑๒๓",
    "naïve café e\u0301 combining\u0301\u0301",
    "日本語のテキスト、漢字。中文没有空格",
    "한국어 텍스트 नमस्ते दुनिया مرحبا بالعالم",
    "👩‍👩‍👧‍👦 🏳️‍🌈 😀😀 👍🏽 𝒳𝓎",  # noqa: RUF001 - look-alikes are the point
    "def f(x):\n    return x**2  # comment\n\n\n",
    "<|im_start|>user\nhi<|im_end|>\n",
    "it's we'll I'M don't YOU'RE 's's",
    "a\u00a0b\u2003c\u200bd\u3000e\u2028f\u0085g",
    "\x01\x7f\ufeffBOM",
    "https://example.com/?q=1&b=2#x $100€£",
    "    \n  \n x\r\r\n\n\t\t ",
    "_under_score__ camelCase " + "a" * 300,
]


def vocabulary() -> tuple[list[str], list[str]]:
    """Tokens and merges of a BPE trained without a pre-tokenizer: its merges cross every border
    a pre-tokenizer could draw, so a wrong border shows as other tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=900,
        special_tokens=SPECIALS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TRICKY * 3, trainer)
    ids = tokenizer.get_vocab()
    state = json.loads(tokenizer.to_str())
    merges = [" ".join(pair) for pair in state["model"]["merges"]]
    return sorted(ids, key=lambda text: ids[text]), merges


def permute(weight: npt.NDArray[Any], heads: int) -> npt.NDArray[Any]:
    """What llama.cpp's converter does to q and k rows."""
    halves = weight.reshape(heads, 2, weight.shape[0] // heads // 2, weight.shape[1])
    return halves.swapaxes(1, 2).reshape(weight.shape)


def weights(vocab_size: int) -> dict[str, npt.NDArray[np.float32]]:
    """Random weights by GGUF name, q and k in Hugging Face's order."""
    random = np.random.default_rng(7)
    kv = HIDDEN // HEADS * KV_HEADS
    shapes = {
        "token_embd": (vocab_size, HIDDEN),
        "output_norm": (HIDDEN,),
        "blk.0.attn_norm": (HIDDEN,),
        "blk.0.ffn_norm": (HIDDEN,),
        "blk.0.attn_q": (HIDDEN, HIDDEN),
        "blk.0.attn_k": (kv, HIDDEN),
        "blk.0.attn_v": (kv, HIDDEN),
        "blk.0.attn_output": (HIDDEN, HIDDEN),
        "blk.0.ffn_gate": (HIDDEN, HIDDEN),
        "blk.0.ffn_up": (HIDDEN, HIDDEN),
        "blk.0.ffn_down": (HIDDEN, HIDDEN),
    }
    return {
        f"{name}.weight": random.normal(0, 0.05, shape).astype(np.float32)
        for name, shape in shapes.items()
    }


def write_gguf(path: Path, pre: str = "smollm", architecture: str = "llama") -> Path:
    tokens, merges = vocabulary()
    writer = gguf.GGUFWriter(str(path), architecture)
    _write_facts(writer)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in SPECIALS else 1 for token in tokens])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)
    writer.add_chat_template("{% for message in messages %}{{ message['content'] }}{% endfor %}")
    for name, array in weights(len(tokens)).items():
        if ".attn_q." in name or ".attn_k." in name:
            array = permute(array, HEADS if ".attn_q." in name else KV_HEADS)
        if array.ndim == 2:
            packed = gguf.quants.quantize(array, gguf.GGMLQuantizationType.Q8_0)
            writer.add_tensor(name, packed, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        else:
            writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _write_facts(writer: Any) -> None:
    writer.add_license("MIT")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(1)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(HIDDEN // HEADS)


def write_wheel(directory: Path, gguf_path: Path) -> Starter:
    """A wheel that carries `gguf_path`, and the catalogue entry that describes it."""
    content = gguf_path.read_bytes()
    return Starter(
        name="tiny",
        method="chat",
        parts=(carry(directory, "plait-test-weights", "tiny.gguf", content),),
        sha256=hashlib.sha256(content).hexdigest(),
        file_bytes=len(content),
        licence="MIT",
    )


def carry(
    directory: Path,
    package: str,
    member: str,
    content: bytes,
    others: Mapping[str, bytes] | None = None,
) -> WheelPart:
    """Write a wheel of `package` with the file, and `others`, which no installer would want to
    import."""
    module = package.replace("-", "_")
    wheel = directory / f"{module}-1.0-py3-none-any.whl"
    info = f"{module}-1.0.dist-info"
    about = f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n"
    kind = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{module}/{member}", content)
        for name, other in (others or {}).items():
            archive.writestr(f"{module}/{name}", other)
        archive.writestr(f"{module}/__init__.py", "raise RuntimeError('never imported')")
        archive.writestr(f"{info}/METADATA", about)
        archive.writestr(f"{info}/WHEEL", kind)
        archive.writestr(f"{info}/RECORD", "")
    return WheelPart(f"{package}==1.0", f"{module}/{member}", wheel.stat().st_size)
