"""A ggml file is checked as a whole: what whisper.cpp would stumble over is a typed error."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from plait.models import ModelDamaged, StoreError, UnsupportedModel
from plait.models.whisper.ggml_file import GgmlHeader, check, read_header
from plait.models.whisper.tensors import F16, F32, KINDS, TensorShape, expected_tensors

from .tiny import ENGLISH, LARGE_V3, MULTILINGUAL, front_bytes, write_ggml

MANY = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
SIZES = 48  # bytes of the magic and the hyperparameters


@pytest.fixture(scope="module")
def copy(english_ggml: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that a test may change and must put right again."""
    path = tmp_path_factory.mktemp("copy") / "ggml-copy.bin"
    shutil.copyfile(english_ggml, path)
    return path


def write_at(path: Path, offset: int, content: bytes) -> bytes:
    """Returns what was there."""
    with path.open("r+b") as file:
        file.seek(offset)
        before = file.read(len(content))
        file.seek(offset)
        file.write(content)
    return before


# --- what is in order ------------------------------------------------------------------------


@pytest.mark.parametrize("header", [ENGLISH, MULTILINGUAL, LARGE_V3])
def test_a_file_that_is_in_order_passes(tmp_path: Path, header: GgmlHeader) -> None:
    path = write_ggml(tmp_path / "ggml.bin", header)

    assert check(path) == read_header(path) == header


@pytest.mark.parametrize("number", KINDS)
def test_every_quantization_of_whisper_cpp_passes(tmp_path: Path, number: int) -> None:
    version = 0 if number == 1 else 2
    header = replace(LARGE_V3, file_type=1000 * version + number)

    assert check(write_ggml(tmp_path / "ggml.bin", header)).kind is KINDS[number]


def test_the_header_tells_languages_and_where_text_ends() -> None:
    assert not ENGLISH.multilingual
    assert (MULTILINGUAL.multilingual, LARGE_V3.multilingual) == (True, True)
    counts = [header.language_count for header in (ENGLISH, MULTILINGUAL, LARGE_V3)]
    assert counts == [1, 99, 100]
    assert (ENGLISH.end_of_text, MULTILINGUAL.end_of_text) == (50_256, 50_257)


def test_the_check_loads_no_numpy() -> None:
    script = (
        "import sys, plait.models.whisper.languages\n"
        "sys.exit(sorted({'numpy', 'pywhispercpp'} & set(sys.modules)) or None)"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3] / "server")}

    subprocess.run([sys.executable, "-c", script], env=environment, check=True)


# --- what breaks off or was changed ----------------------------------------------------------


@MANY
@given(share=st.floats(0, 1, exclude_max=True), in_front=st.booleans())
def test_a_file_that_breaks_off_anywhere_is_damaged(
    english_ggml: Path, tmp_path: Path, share: float, in_front: bool
) -> None:
    end = front_bytes(english_ggml) if in_front else english_ggml.stat().st_size
    path = tmp_path / "ggml-half.bin"
    shutil.copyfile(english_ggml, path)
    os.truncate(path, int(share * end))

    with pytest.raises(ModelDamaged, match=r"ggml-half\.bin is not a usable Whisper model"):
        check(path)


@MANY
@given(offset=st.integers(0, SIZES + 11), change=st.integers(1, 255))
def test_a_changed_byte_among_the_sizes_is_found(copy: Path, offset: int, change: int) -> None:
    where = offset if offset < SIZES + 8 else front_of_vocabulary() + offset - SIZES - 8
    (old,) = write_at(copy, where, b"\0")
    write_at(copy, where, bytes([old ^ change]))

    try:
        with pytest.raises((ModelDamaged, UnsupportedModel)):
            check(copy)
    finally:
        write_at(copy, where, bytes([old]))
    assert check(copy) == ENGLISH


def front_of_vocabulary() -> int:
    return SIZES + 8 + 4 * ENGLISH.mels * 201


@MANY
@given(data=st.data())
def test_a_changed_byte_anywhere_is_a_typed_error_or_changes_no_structure(
    copy: Path, data: st.DataObject
) -> None:
    front = front_bytes(copy)
    end = front if data.draw(st.booleans()) else copy.stat().st_size
    offset = data.draw(st.integers(0, end - 1))
    before = write_at(copy, offset, bytes([data.draw(st.integers(0, 255))]))

    try:
        with suppress(ModelDamaged, UnsupportedModel):
            assert check(copy) == ENGLISH
    finally:
        write_at(copy, offset, before)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.5, 1e30])
def test_filters_that_are_none_are_damaged(copy: Path, value: float) -> None:
    before = write_at(copy, SIZES + 8 + 4000, struct.pack("<f", value))

    with pytest.raises(ModelDamaged, match="filters"):
        check(copy)
    write_at(copy, SIZES + 8 + 4000, before)


def test_bytes_behind_the_last_tensor_are_found(english_ggml: Path, tmp_path: Path) -> None:
    path = tmp_path / "ggml.bin"
    shutil.copyfile(english_ggml, path)
    with path.open("ab") as file:
        file.write(b"\0" * 40)

    with pytest.raises(ModelDamaged, match="0 dimensions"):
        check(path)


# --- tensors and words -----------------------------------------------------------------------

NORM = "encoder.ln_post.weight"


@pytest.mark.parametrize(
    ("tensors", "said"),
    [
        ({NORM: None}, f"1 tensors are missing, {NORM}"),
        ({NORM: TensorShape((65,), F32)}, rf"{NORM} is \(65,\)"),
        ({NORM: TensorShape((64,), F16)}, rf"{NORM} is \(64,\) of type 1"),
        ({"encoder.more": TensorShape((64,), F32)}, "encoder.more is unknown"),
    ],
    ids=["missing", "shape", "type", "unknown"],
)
def test_a_tensor_that_is_not_as_it_should_be_is_named(
    tmp_path: Path, tensors: dict[str, TensorShape | None], said: str
) -> None:
    changed = {**expected_tensors(ENGLISH), **tensors}
    written = {name: tensor for name, tensor in changed.items() if tensor is not None}

    with pytest.raises(ModelDamaged, match=said):
        check(write_ggml(tmp_path / "ggml.bin", ENGLISH, written))


def test_a_tensor_that_is_there_twice_is_damaged(english_ggml: Path, tmp_path: Path) -> None:
    path = tmp_path / "ggml.bin"
    content = english_ggml.read_bytes()
    at = content.index(NORM.encode()) - 16
    tensor = content[at : at + 16 + len(NORM) + 4 * 64]
    path.write_bytes(content + tensor)

    with pytest.raises(ModelDamaged, match=f"{NORM} is unknown, or there twice"):
        check(path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([b" "] * 7, "it spells 7 of 51864 words"),
        ([b"x"] * 50_256, "no b' ' and no"),
        ([b" ", b" -", b" '"] + [b"x" * 100] * 50_253, "in its words, or one of 100 bytes"),
    ],
)
def test_a_vocabulary_that_is_not_whispers_is_damaged(
    tmp_path: Path, words: list[bytes], said: str
) -> None:
    with pytest.raises(ModelDamaged, match=said):
        check(write_ggml(tmp_path / "ggml.bin", ENGLISH, words=words))


# --- what is another kind of thing -----------------------------------------------------------


@pytest.mark.parametrize(
    ("file_type", "error", "said"),
    [
        (0, UnsupportedModel, "32 bit"),
        (7, UnsupportedModel, r"another ggml \(version 0\)"),
        (3007, UnsupportedModel, r"another ggml \(version 3\)"),
        (4, ModelDamaged, "file type 4"),
        (-1, ModelDamaged, "file type -1"),
        (2010, ModelDamaged, "rows of 64 cannot be kept as Q2_K"),
    ],
)
def test_weights_that_cannot_be_run_say_why(
    copy: Path, file_type: int, error: type[StoreError], said: str
) -> None:
    before = write_at(copy, SIZES - 4, struct.pack("<i", file_type))

    with pytest.raises(error, match=said):
        read_header(copy)
    write_at(copy, SIZES - 4, before)


@pytest.mark.parametrize("content", [b"", b"GGUF", b"GGUF" * 100, b"RIFF" * 100, b"\0" * 48])
def test_another_kind_of_file_is_damaged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "ggml.bin"
    path.write_bytes(content)

    with pytest.raises(ModelDamaged, match=r"(too short|first bytes).*'whisper-tiny\.en'"):
        check(path)


def test_what_is_no_file_is_damaged(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(ModelDamaged, match=r"not a file|Is a directory"):
            check(path)
    with pytest.raises(ModelDamaged, match="No such file"):
        check(tmp_path / "missing.bin")
