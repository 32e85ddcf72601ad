"""A conversion in a process of its own: what it says arrives, and it ends with whom it serves."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from plait.models import ModelDamaged, UnsupportedModel
from plait.models.conversion import convert_apart


@pytest.fixture
def out(tmp_path: Path) -> Path:
    directory = tmp_path / "out"
    directory.mkdir()
    return directory


@pytest.mark.parametrize("converter", ["kokoro-onnx", "kokoro-torch"])
def test_a_typed_error_crosses_the_process_border(
    tmp_path: Path, out: Path, converter: str
) -> None:
    weights = tmp_path / "model.onnx"
    weights.write_bytes(b"\xff" * 1000)

    with pytest.raises(ModelDamaged) as caught:
        convert_apart(converter, weights, out, lambda percent: None)

    assert caught.value.next_step


def test_an_error_of_the_operating_system_keeps_its_number(tmp_path: Path, out: Path) -> None:
    with pytest.raises(FileNotFoundError):
        convert_apart("kokoro-onnx", tmp_path / "nothing.onnx", out, lambda percent: None)


def test_an_end_without_a_reason_is_unsupported_and_speaks_of_memory(
    tmp_path: Path, out: Path
) -> None:
    with pytest.raises(UnsupportedModel, match=r"nonsense ended with KeyError.*memory"):
        convert_apart("nonsense", tmp_path / "model.onnx", out, lambda percent: None)


def test_an_interrupted_conversion_takes_its_process_with_it(tmp_path: Path, out: Path) -> None:
    def interrupt(percent: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        convert_apart("kokoro-onnx", tmp_path / "model.onnx", out, interrupt)

    processes = [
        process for process in psutil.Process().children() if str(out) in process.cmdline()
    ]
    assert processes == []
