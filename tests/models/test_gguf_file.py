"""Reading GGUF: the same facts as the reference reader, and typed errors for everything else."""

from __future__ import annotations

import contextlib
from pathlib import Path

import gguf
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from plait.models import ModelDamaged
from plait.models.gguf_file import read_gguf


def test_metadata_and_tensors_agree_with_the_reference_reader(tiny_gguf: Path) -> None:
    reference = gguf.GGUFReader(str(tiny_gguf))

    ours = read_gguf(tiny_gguf)

    assert ours.metadata["tokenizer.ggml.tokens"] == (
        reference.fields["tokenizer.ggml.tokens"].contents()
    )
    assert [(t.name, t.kind, t.offset) for t in ours.tensors] == [
        (t.name, t.tensor_type, t.data_offset) for t in reference.tensors
    ]
    assert ours.tensors[0].shape == tuple(reversed(reference.tensors[0].shape.tolist()))


def test_a_hyperparameter_is_looked_up_under_the_architecture(tiny_gguf: Path) -> None:
    assert read_gguf(tiny_gguf).hyperparameter("context_length") == 512


def test_a_missing_hyperparameter_is_a_damaged_file(tiny_gguf: Path) -> None:
    with pytest.raises(ModelDamaged, match="nothing about expert_count"):
        read_gguf(tiny_gguf).hyperparameter("expert_count")


@pytest.mark.parametrize("content", [b"", b"GGUF", b"x" * 100, b"GGUF" + b"\xff" * 100])
def test_anything_else_is_a_damaged_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)

    with pytest.raises(ModelDamaged, match=r"model\.gguf"):
        read_gguf(path)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(length=st.integers(0, 20_000))
def test_a_truncated_header_is_a_damaged_file(tiny_gguf: Path, tmp_path: Path, length: int) -> None:
    path = tmp_path / "cut.gguf"
    path.write_bytes(tiny_gguf.read_bytes()[: min(length, 15_000)])

    with pytest.raises(ModelDamaged):
        read_gguf(path)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(position=st.integers(0, 3_000), value=st.binary(min_size=8, max_size=8))
def test_garbled_bytes_give_a_model_or_a_typed_error(
    tiny_gguf: Path, tmp_path: Path, position: int, value: bytes
) -> None:
    content = bytearray(tiny_gguf.read_bytes())
    content[position : position + 8] = value
    path = tmp_path / "garbled.gguf"
    path.write_bytes(content)

    with contextlib.suppress(ModelDamaged):  # any other exception fails the test
        assert read_gguf(path).path == path
