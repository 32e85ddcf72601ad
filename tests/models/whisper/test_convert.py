"""CTranslate2 to ggml: every value where whisper.cpp looks for it, and what is no such source."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from numpy.typing import NDArray

from plait.models import ModelDamaged
from plait.models.whisper.convert import convert
from plait.models.whisper.ct2_file import read_ct2
from plait.models.whisper.ggml_file import check
from plait.models.whisper.mel import mel_filters
from plait.models.whisper.packing import packed
from plait.models.whisper.tensors import F16, F32, Q8_0, expected_tensors
from plait.models.whisper.vocabulary import read_vocabulary

from .tiny import (
    ENGLISH,
    ODD_WORDS,
    STATE,
    Arrays,
    ct2_arrays,
    front_bytes,
    write_ct2,
    write_model,
    write_tokenizer,
)


def silent(percent: float) -> None:
    pass


@pytest.fixture(scope="module")
def converted(ct2_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("converted") / "ggml.bin"
    convert(ct2_model, out, silent)
    return out


@pytest.fixture(scope="module")
def tensors(converted: Path) -> Arrays:
    """Read back as whisper.cpp does: one after the other."""
    content = converted.read_bytes()
    position, found = front_bytes(converted), {}
    while position < len(content):
        rank, length, kind = struct.unpack_from("<3i", content, position)
        dims = struct.unpack_from(f"<{rank}i", content, position + 12)
        start = position + 12 + 4 * rank + length
        dtype = np.dtype("<f2" if kind else "<f4")
        count = int(np.prod(dims))
        array = np.frombuffer(content, dtype, count, start).reshape(dims[::-1])
        found[content[start - length : start].decode()] = array
        position = start + count * dtype.itemsize
    return found


# --- where things go -------------------------------------------------------------------------


def test_the_result_is_in_order_and_complete(converted: Path, tensors: Arrays) -> None:
    assert check(converted) == ENGLISH
    assert list(tensors) == list(expected_tensors(ENGLISH))


@pytest.mark.parametrize(
    ("ggml", "ct2"),
    [
        ("encoder.positional_embedding", "encoder/position_encodings/encodings"),
        ("encoder.conv2.weight", "encoder/conv2/weight"),
        ("encoder.ln_post.weight", "encoder/layer_norm/gamma"),
        ("decoder.ln.bias", "decoder/layer_norm/beta"),
        ("encoder.blocks.0.attn_ln.weight", "encoder/layer_0/self_attention/layer_norm/gamma"),
        ("decoder.blocks.0.cross_attn_ln.bias", "decoder/layer_0/attention/layer_norm/beta"),
        ("decoder.blocks.0.cross_attn.query.weight", "decoder/layer_0/attention/linear_0/weight"),
        ("decoder.blocks.0.cross_attn.out.bias", "decoder/layer_0/attention/linear_2/bias"),
        ("decoder.blocks.0.attn.out.weight", "decoder/layer_0/self_attention/linear_1/weight"),
        ("encoder.blocks.0.mlp.0.bias", "encoder/layer_0/ffn/linear_0/bias"),
        ("decoder.blocks.0.mlp.2.weight", "decoder/layer_0/ffn/linear_1/weight"),
        ("decoder.blocks.0.mlp_ln.weight", "decoder/layer_0/ffn/layer_norm/gamma"),
    ],
)
def test_an_array_keeps_its_values(tensors: Arrays, ggml: str, ct2: str) -> None:
    assert np.array_equal(tensors[ggml], ct2_arrays()[ct2])


@pytest.mark.parametrize(
    ("attention", "ct2", "parts"),
    [
        ("encoder.blocks.0.attn", "encoder/layer_0/self_attention/linear_0", "query key value"),
        ("decoder.blocks.0.attn", "decoder/layer_0/self_attention/linear_0", "query key value"),
        ("decoder.blocks.0.cross_attn", "decoder/layer_0/attention/linear_1", "key value"),
    ],
)
def test_joined_projections_are_parted_by_rows(
    tensors: Arrays, attention: str, ct2: str, parts: str
) -> None:
    arrays = ct2_arrays()
    for index, part in enumerate(parts.split()):
        rows = slice(index * STATE, (index + 1) * STATE)
        weight, bias = (
            tensors[f"{attention}.{part}.weight"],
            tensors.get(f"{attention}.{part}.bias"),
        )
        assert np.array_equal(weight, arrays[f"{ct2}/weight"][rows])
        assert (bias is None) == (part == "key")
        assert bias is None or np.array_equal(bias, arrays[f"{ct2}/bias"][rows])


def test_a_convolutions_bias_is_a_column(tensors: Arrays) -> None:
    assert tensors["encoder.conv1.bias"].shape == (STATE, 1)
    assert np.array_equal(tensors["encoder.conv1.bias"][:, 0], ct2_arrays()["encoder/conv1/bias"])


def test_the_filters_are_openais_bit_for_bit(converted: Path) -> None:
    front = converted.read_bytes()[48 : 48 + 8 + 4 * 80 * 201]

    assert struct.unpack_from("<2i", front) == (80, 201)
    # Of the same bytes in whisper.cpp's models/for-tests-ggml-tiny.en.bin.
    official = "85818f156f7e189453901a515e4726d270d307f976e161cf9403e8caab405498"
    assert hashlib.sha256(front[8:]).hexdigest() == official


@pytest.mark.parametrize("bands", [80, 128])
def test_a_filter_is_a_triangle_of_unit_area(bands: int) -> None:
    filters = mel_filters(bands)

    hertz_per_bin = 40
    areas = filters[10:].sum(axis=1) * hertz_per_bin
    assert filters.shape == (bands, 201)
    assert np.all(np.diff(filters.argmax(axis=1)) >= 0)
    assert np.all(np.abs(areas[bands // 2 :] - 1) < 0.1)


def test_words_are_bytes_in_the_order_of_their_ids(ct2_model: Path) -> None:
    words = read_vocabulary(ct2_model.with_name("tokenizer.json"))

    assert len(words) == ENGLISH.end_of_text
    assert words[: len(ODD_WORDS)] == list(ODD_WORDS.values())
    assert words[len(ODD_WORDS)] == b"w0"


def test_q8_0_is_laid_down_as_ggml_does() -> None:
    array = np.random.default_rng(1).normal(0, 3, (5, 96)).astype(np.float32)
    array[1, :32] = 0

    content = np.frombuffer(packed(array, Q8_0), np.uint8).reshape(5, -1)
    theirs = gguf.quants.quantize(array, gguf.GGMLQuantizationType.Q8_0)
    assert content.shape == theirs.shape
    back = gguf.quants.dequantize(content, gguf.GGMLQuantizationType.Q8_0)
    assert np.abs(back - array).max() <= 1.01 * np.abs(array).max() / 254
    assert (content == theirs).mean() > 0.99  # a half may be rounded either way


@pytest.mark.parametrize(("kind", "dtype"), [(F32, "<f4"), (F16, "<f2")])
def test_other_kinds_are_plain_numbers(kind: Any, dtype: str) -> None:
    array = np.array([[1.5, -2]], np.float16)

    assert np.frombuffer(packed(array, kind), dtype).tolist() == [1.5, -2]


def test_the_same_source_gives_the_same_bytes_and_rising_progress(
    ct2_model: Path, converted: Path, tmp_path: Path
) -> None:
    seen: list[float] = []

    convert(ct2_model, tmp_path / "again.bin", seen.append)

    assert (tmp_path / "again.bin").read_bytes() == converted.read_bytes()
    assert (seen[0], seen[-1], seen.count(100.0)) == (0.0, 100.0, 1)
    assert seen == sorted(seen)


# --- sources that are not right --------------------------------------------------------------


def put(arrays: Arrays, name: str, array: NDArray[Any]) -> None:
    assert name in arrays
    arrays[name] = array


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda a: a.pop("decoder/embeddings/weight"), "has no 'decoder/embeddings/weight'"),
        (lambda a: a.pop("encoder/conv1/bias"), r"encoder\.conv1\.bias cannot be made"),
        (
            lambda a: put(a, "encoder/layer_0/self_attention/linear_0/bias", np.zeros(65, "f2")),
            "65 rows are not 3 equal parts",
        ),
        (
            lambda a: put(a, "encoder/layer_norm/gamma", np.zeros(63, "f2")),
            r"encoder\.ln_post\.weight cannot be made",
        ),
        (
            lambda a: put(a, "encoder/position_encodings/encodings", np.zeros((7, STATE), "f2")),
            "are not those of a Whisper model",
        ),
    ],
)
def test_a_model_that_lacks_something_is_damaged(
    tmp_path: Path, change: Callable[[Arrays], object], said: str
) -> None:
    arrays = ct2_arrays()
    change(arrays)
    write_tokenizer(tmp_path / "tokenizer.json")

    with pytest.raises(ModelDamaged, match=said):
        convert(write_ct2(tmp_path / "model.bin", arrays), tmp_path / "out.bin", silent)


@pytest.mark.parametrize(
    ("specification", "version", "said"),
    [("TransformerSpec", 6, "holds a TransformerSpec"), ("WhisperSpec", 4, "its version is 4")],
)
def test_another_kind_of_model_is_damaged(
    tmp_path: Path, specification: str, version: int, said: str
) -> None:
    path = write_ct2(tmp_path / "model.bin", {}, specification, version)

    with pytest.raises(ModelDamaged, match=rf"model\.bin is not a usable CTranslate2.*{said}"):
        read_ct2(path)


def test_a_name_may_stand_for_anothers_array(tmp_path: Path) -> None:
    arrays = {"one": np.arange(6, dtype=np.float32).reshape(2, 3)}

    read = read_ct2(write_ct2(tmp_path / "model.bin", arrays, aliases={"other": "one"}))

    assert read["other"].tolist() == read["one"].tolist() == [[0, 1, 2], [3, 4, 5]]


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_source_that_breaks_off_or_was_changed_is_a_typed_error_or_still_readable(
    tmp_path: Path, data: st.DataObject
) -> None:
    arrays = {name: np.ones(shape, np.float16) for name, shape in (("a", (2, 3)), ("b", (5,)))}
    path = write_ct2(tmp_path / "model.bin", arrays, aliases={"c": "a"})
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    else:
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)

    with suppress(ModelDamaged):
        read_ct2(path)


def test_weights_that_break_off_are_damaged(ct2_model: Path, tmp_path: Path) -> None:
    shutil.copytree(ct2_model.parent, tmp_path / "half")
    half = tmp_path / "half" / "model.bin"
    os.truncate(half, half.stat().st_size - 1000)

    with pytest.raises(ModelDamaged, match="beyond its end"):
        convert(half, tmp_path / "out.bin", silent)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        json.dumps({"added_tokens": [], "model": {"vocab": {}}}),
        json.dumps({"added_tokens": [{"id": 1, "content": "<|endoftext|>"}], "model": {}}),
        json.dumps(
            {"added_tokens": [{"id": 1, "content": "<|endoftext|>"}], "model": {"vocab": {"語": 0}}}
        ),
    ],
)
def test_a_tokenizer_that_is_none_is_damaged(tmp_path: Path, content: str) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(content, encoding="utf-8")

    with pytest.raises(ModelDamaged, match=r"tokenizer\.json is not a usable vocabulary"):
        read_vocabulary(path)


def test_a_missing_tokenizer_is_damaged(tmp_path: Path) -> None:
    weights = write_model(tmp_path)
    (tmp_path / "tokenizer.json").unlink()

    with pytest.raises(ModelDamaged, match=r"tokenizer\.json.*FileNotFoundError"):
        convert(weights, tmp_path / "out.bin", silent)
