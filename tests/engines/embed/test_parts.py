"""Poolings, frames of rows, and texts into tokens: the arithmetic around the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer as Library, models, normalizers, pre_tokenizers, processors

from plait.engines.embed.encoding import PIECE_CHARACTERS, Encoded, TextEncoder, Tokenizer
from plait.engines.embed.output import Answer, items
from plait.engines.embed.pooling import DenseLayer, normalized, pool
from plait.errors import GenerationFailed
from plait.models.embedding.settings import EmbeddingSettings, Pooling
from plait.wire.frames import HEADER_BYTES, MAX_SERVER_FRAME_BYTES

HIDDEN = np.array([[[1, -2], [3, 4], [np.nan, np.inf]], [[5, 6], [0, 0], [1, -1]]], np.float32)
MASK = np.array([[1, 1, 0], [1, 1, 1]])


# --- pooling -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cls", [[1, -2], [5, 6]]),
        ("last", [[3, 4], [1, -1]]),
        ("max", [[3, 4], [5, 6]]),
        ("mean", [[2, 1], [2, 5 / 3]]),
        ("mean_sqrt_len", [[4 / 2**0.5, 2 / 2**0.5], [6 / 3**0.5, 5 / 3**0.5]]),
        ("weighted_mean", [[7 / 3, 2], [8 / 6, 3 / 6]]),
    ],
)
def test_poolings_count_a_texts_own_tokens_alone(name: Pooling, expected: list[Any]) -> None:
    assert pool(HIDDEN, MASK, [name]) == pytest.approx(np.array(expected))


def test_several_poolings_are_put_one_behind_the_other() -> None:
    found = pool(HIDDEN, MASK, ["cls", "max"])

    assert found.tolist() == [[1, -2, 3, 4], [5, 6, 5, 6]]


def test_a_dense_layer_follows() -> None:
    layer = DenseLayer(np.array([[1, 1]], np.float32), np.array([0.5], np.float32), "tanh")

    assert layer.apply(np.array([[1, 2]], np.float32)) == pytest.approx(np.tanh(3.5))


def test_unit_length_neither_overflows_nor_divides_by_nothing() -> None:
    huge, nothing = np.full(2, 3e38, np.float32), np.zeros(2, np.float32)

    assert normalized(huge) == pytest.approx(np.full(2, 0.5**0.5))
    assert normalized(nothing).tolist() == [0, 0]


# --- output --------------------------------------------------------------------------------------


def answer(index: int, dims: int = 384, truncated: bool = False) -> Answer:
    return Answer(index, np.full(dims, index, np.float32), 3, truncated, 20)


def test_rows_go_into_frames_of_at_most_64_kib() -> None:
    found = list(items(1, [answer(i) for i in range(100)], as_json=False))

    assert [(item.aux, item.units) for item in found] == [(0, 42), (42, 42), (84, 16)]
    assert all(len(item.data) == item.units * 384 * 4 for item in found)
    assert all(len(item.data) + HEADER_BYTES <= MAX_SERVER_FRAME_BYTES for item in found)


def test_rows_of_cut_texts_are_in_frames_apart() -> None:
    found = list(items(1, [answer(i, truncated=i in (1, 2)) for i in range(4)], as_json=False))

    assert [(item.aux, item.units, item.flags) for item in found] == [
        (0, 1, 0),
        (1, 2, 4),
        (3, 1, 0),
    ]


def test_an_error_stands_between_the_rows() -> None:
    failed = Answer(1, GenerationFailed("no", data={"index": 1}), 0, False, 20)

    found = list(items(1, [answer(0), failed, answer(2)], as_json=False))

    assert [(item.kind, item.aux, item.units) for item in found] == [
        (3, 0, 1),
        (0, 1, 1),
        (3, 2, 1),
    ]


def test_json_numbers_are_the_same_float32s() -> None:
    numbers = np.random.default_rng(0).normal(size=384).astype(np.float32)

    (item,) = items(1, [Answer(0, numbers, 3, False, 20)], as_json=True)

    text = item.data.split(b"[")[1].split(b"]")[0]
    assert np.array(text.split(b","), np.float32).tolist() == numbers.tolist()


# --- encoding ------------------------------------------------------------------------------------


def encoder(path: Path, max_tokens: int = 5000, **options: Any) -> TextEncoder:
    """Of words, each a token; [CLS] 0, [SEP] 1."""
    words = {word: number for number, word in enumerate(["[CLS]", "[SEP]", "[UNK]", "a", "b", "c"])}
    library = Library(models.WordLevel(words, unk_token="[UNK]"))
    library.normalizer = normalizers.Lowercase()
    library.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    library.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 0), ("[SEP]", 1)]
    )
    library.enable_truncation(4)
    library.enable_padding(length=128)
    library.save(str(path / "tokenizer.json"))
    settings = EmbeddingSettings(dims=3, max_tokens=max_tokens, **options)
    return TextEncoder(Tokenizer(path, settings), settings)


def encode_long(encoder: TextEncoder, text: str, *, to_the_end: bool) -> tuple[Encoded, int]:
    """And how many pieces it took."""
    long, pieces = encoder.begin(text), 1
    while (encoded := long.advance(to_the_end=to_the_end)) is None:
        pieces += 1
    return encoded, pieces


def test_the_tokenizers_own_truncation_and_padding_do_not_count(tmp_path: Path) -> None:
    (encoded,) = encoder(tmp_path).encode_short(["a b c a b c"])

    assert encoded == Encoded([0, 3, 4, 5, 3, 4, 5, 1], 8, truncated=False)


def test_a_text_too_long_keeps_its_beginning_and_the_special_tokens(tmp_path: Path) -> None:
    (encoded,) = encoder(tmp_path, max_tokens=5).encode_short(["a b c a b c"])

    assert encoded == Encoded([0, 3, 4, 5, 1], 8, truncated=True)


def test_an_empty_text_is_the_special_tokens(tmp_path: Path) -> None:
    found = encoder(tmp_path).encode_short(["", "  \n"])

    assert found == [Encoded([0, 1], 2, truncated=False)] * 2


def test_a_prefix_stands_before_each_text(tmp_path: Path) -> None:
    (encoded,) = encoder(tmp_path, prefix="c ").encode_short(["a"])

    assert encoded.ids == [0, 5, 3, 1]


def test_a_long_text_is_the_same_in_pieces(tmp_path: Path) -> None:
    text = "a b c  " * 1500

    encoded, pieces = encode_long(encoder(tmp_path), text, to_the_end=True)

    assert encoded == Encoded([0, *[3, 4, 5] * 1500, 1], 4502, truncated=False)
    assert pieces == -(-len(text) // PIECE_CHARACTERS)


def test_a_text_too_long_is_counted_to_the_end_or_read_as_far_as_the_model_reads(
    tmp_path: Path,
) -> None:
    small, text = encoder(tmp_path, max_tokens=10), "a b c " * 100_000

    whole, _ = encode_long(small, text, to_the_end=True)
    cut, pieces = encode_long(small, text, to_the_end=False)

    assert whole.tokens == 300_002
    assert whole.ids == cut.ids == [0, 3, 4, 5, 3, 4, 5, 3, 4, 1]
    assert (cut.truncated, pieces) == (True, 1)


def test_a_word_without_an_end_is_cut(tmp_path: Path) -> None:
    encoded, pieces = encode_long(encoder(tmp_path), "x" * 100_000, to_the_end=True)

    assert pieces == encoded.tokens - 2 == 7
