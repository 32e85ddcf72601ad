"""A random two-layer model whose tokens are bytes, and a rig that drives the mlx adapter with it.

A step takes about a millisecond and nothing has to be downloaded, so behaviour and stress are
tested here; what needs a model that can talk is tested on the starter model. The byte `POISON` in
a message makes that row's logits NaN and no other row's.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from plait.engines.base import (
    Engine,
    Event,
    Failed,
    Finished,
    Item,
    LoadSpec,
    Prepare,
    Prepared,
    Released,
)
from plait.engines.mlx import blas
from plait.engines.mlx.engine import load
from tests.engines.flags import Flags as Flags

if "mlx.core" not in sys.modules:
    blas.preload()

POISON = "\x01"
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "<|im_start|>assistant\n"
)
SPECIAL = ["<|im_start|>", "<|im_end|>"]


def build_tiny_model(directory: Path) -> Path:
    """An mlx-lm model directory: config, weights, tokenizer, template."""
    tokenizer = _byte_tokenizer()
    tokenizer.save(str(directory / "tokenizer.json"))
    settings = {"eos_token": "<|im_end|>", "chat_template": TEMPLATE}
    (directory / "tokenizer_config.json").write_text(json.dumps(settings))
    _write_weights(directory, tokenizer)
    return directory


def _byte_tokenizer() -> Tokenizer:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in SPECIAL])
    return tokenizer


def _write_weights(directory: Path, tokenizer: Tokenizer) -> None:
    import mlx.core as mx
    from mlx.utils import tree_flatten
    from mlx_lm.models.llama import Model, ModelArgs

    config = {
        "model_type": "llama",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-5,
        "vocab_size": tokenizer.get_vocab_size(),
        "rope_theta": 1e4,
        "max_position_embeddings": 8192,
        "tie_word_embeddings": False,
    }
    mx.random.seed(0)
    weights = dict(tree_flatten(Model(ModelArgs.from_dict(config)).parameters()))
    (poison,) = tokenizer.encode(POISON).ids
    weights["model.embed_tokens.weight"][poison] = float("nan")
    mx.save_safetensors(str(directory / "model.safetensors"), weights)
    (directory / "config.json").write_text(json.dumps(config))


class Rig:
    """Drives one engine as the worker loop does and sorts its events by job."""

    def __init__(self, engine: Engine, flags: Flags) -> None:
        self.engine = engine
        self.flags = flags
        self.items: dict[int, list[dict[str, Any]]] = {}
        self.ends: dict[int, Finished | Failed] = {}
        self.released: dict[int, Released] = {}
        self._last_job = 0

    def prepare(self, text: str, *, scope: str = "s", **params: Any) -> tuple[int, Prepared]:
        """Greedy unless told otherwise. Raises what `prepare` raises."""
        self._last_job += 1
        asked = {"temperature": 0, **params, "messages": [{"role": "user", "content": text}]}
        return self._last_job, self.engine.prepare(Prepare(self._last_job, "chat", asked, scope))

    def start(self, text: str, **params: Any) -> int:
        job, _ = self.prepare(text, **params)
        self.engine.start(job)
        return job

    def step(self) -> list[Event]:
        events = self.engine.step()
        for event in events:
            if isinstance(event, Item):
                self.items.setdefault(event.job, []).append(json.loads(event.data))
            elif isinstance(event, Finished | Failed):
                self.ends[event.job] = event
            elif isinstance(event, Released):
                assert event.job not in self.released, "released twice"
                self.released[event.job] = event
        return events

    def step_until(self, done: Callable[[], bool], most: int = 2000) -> None:
        for _ in range(most):
            if done():
                return
            self.step()
        raise AssertionError(f"not done after {most} steps")

    def finish(self) -> None:
        self.step_until(lambda: self.engine.idle)

    def talk(self, text: str, **params: Any) -> str:
        """One chat by itself: its whole answer."""
        job = self.start(text, **params)
        self.finish()
        return self.text(job)

    def step_to(self, job: int, items: int) -> None:
        self.step_until(lambda: len(self.items.get(job, [])) >= items)

    def click_stop(self, job: int) -> None:
        """A cancel arrives: first its flag, then the command."""
        self.flags.stamps[job] = time.monotonic()
        self.engine.cancel(job)

    def text(self, job: int) -> str:
        return "".join(item["content"] for item in self.items.get(job, []))


def tiny_spec(directory: Path, **fields: Any) -> LoadSpec:
    asked = {"slots": 4, "context_tokens": 2048, "max_tokens": 512, **fields}
    return LoadSpec("mlx", "tiny", weights=str(directory), **asked)


def make_rig(directory: Path, **fields: Any) -> Rig:
    flags = Flags()
    return Rig(load(tiny_spec(directory, **fields), flags, say_nothing), flags)


def say_nothing(phase: str, percent: int | None) -> None:
    """The load report that nobody reads."""
