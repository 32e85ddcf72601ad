"""A disk that fills up under a pull: said with numbers, nothing left, and a later pull works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from plait.exits import EXIT_MODEL, EXIT_OK
from plait.models import ModelStore
from tests.live.server import SERVER
from tests.models.tiny import write_gguf

PULL = f'"{sys.executable}" -m plait models pull --engine mlx ./tiny.gguf'
SMALL_DISK = 'mount -t tmpfs -o size=200k tmpfs "$PLAIT_HOME"'
FILES_LEFT = 'find "$PLAIT_HOME" -type f'
FILE_LIMITS = (1, 100)  # blocks of 1 KiB: not even the first file, most of the largest


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Where a pull finds `./tiny.gguf`; its other form takes 300 KB."""
    write_gguf(tmp_path / "tiny.gguf")
    return tmp_path


def shell(model: Path, home: Path, command: str, *before: str) -> subprocess.CompletedProcess[str]:
    """`command` of a shell that `before` starts, beside the model."""
    own = {"PLAIT_HOME": str(home), "PYTHONPATH": str(SERVER)}
    return subprocess.run(
        [*before, "bash", "-c", command],
        # A .pyc cut short by a limit would be kept, and break every later import of its module.
        env={**os.environ, **own, "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=model,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    directory = tmp_path / "home"
    directory.mkdir()
    return directory


@pytest.mark.parametrize("blocks", FILE_LIMITS)
def test_a_file_that_may_not_grow_is_said_with_the_limit_and_leaves_nothing(
    model: Path, home: Path, blocks: int
) -> None:
    failed = shell(model, home, f"ulimit -f {blocks}; {PULL}")

    assert failed.returncode == EXIT_MODEL, failed.stderr
    assert f"larger than {blocks * 1024:,} bytes" in failed.stderr
    assert "ulimit -f unlimited" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert ModelStore(home).installed() == []
    assert not list(home.glob("models/[!.]*"))
    assert shell(model, home, PULL).returncode == EXIT_OK
    assert [found.name for found in ModelStore(home).installed()] == ["tiny"]


@pytest.fixture
def namespaces() -> str:
    """How to get a mount of one's own without rights on the machine; skips where that is barred."""
    unshare = shutil.which("unshare")
    trial = [unshare or "false", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    if (
        sys.platform != "linux"
        or subprocess.run(trial, capture_output=True, check=False).returncode
    ):
        pytest.skip("no mounts for this user here")
    assert unshare is not None
    return unshare


def test_a_disk_that_fills_up_is_said_with_what_is_free_and_leaves_nothing(
    model: Path, home: Path, namespaces: str
) -> None:
    command = f"{SMALL_DISK} && {PULL}; code=$?; {FILES_LEFT}; exit $code"

    failed = shell(model, home, command, namespaces, "-rm")

    assert failed.returncode == EXIT_MODEL, failed.stderr
    assert re.search(r"is full \(0\.\d MB are free\)", failed.stderr), failed.stderr
    assert "PLAIT_HOME" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert [line for line in failed.stdout.splitlines() if ".locks" not in line] == []
