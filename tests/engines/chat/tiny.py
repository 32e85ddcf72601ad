"""A tokenizer directory as models ship it: tiny byte-level BPE, ChatML template, special tokens."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from plait.engines.base import Event, Item
from plait.wire.messages import ChatMessage, ChatParams

SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TEXTS = ["Hello world, how are you?", "user assistant system", "漢字 👩‍👩‍👧‍👦 שלום"]


@functools.cache
def tiny_tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=SPECIALS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.add_tokens([AddedToken("<think>", special=False)])
    return tokenizer


def write_tokenizer(directory: Path, template: Any = CHATML, **config: Any) -> Path:
    tiny_tokenizer().save(str(directory / "tokenizer.json"))
    content = {"eos_token": "<|im_end|>", "chat_template": template, **config}
    (directory / "tokenizer_config.json").write_text(json.dumps(content))
    return directory


def chat(*contents: str, **params: Any) -> ChatParams:
    """Params of a conversation of user turns."""
    messages = [ChatMessage(role="user", content=content) for content in contents]
    return ChatParams(messages=messages, **params)


def content_of(events: list[Event]) -> str:
    return "".join(json.loads(e.data)["content"] for e in events if isinstance(e, Item))
