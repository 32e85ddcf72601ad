"""Why a model is not there, told to the operator.

    StoreError
    ├── UnknownModel        no such name in the catalogue, or not installed
    ├── SourceUnavailable   the package index, the hub or the local file could not be read
    ├── DiskFull            not enough room for the download or the conversion
    ├── StoreUnwritable     the store's directory may not be written
    ├── ModelDamaged        a hash, a size or a file format is wrong
    └── UnsupportedModel    the file is fine, but not one that the chosen engine can run

Each names the next step. These errors reach a terminal, never a peer (they may hold a path), so
they are not part of `plait.errors`; the server reports a model it cannot load as
`model_load_failed` in its own words.
"""

from __future__ import annotations

import errno
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class StoreError(Exception):
    """Base of the tree. `next_step` is one sentence the operator can act on."""

    def __init__(self, message: str, next_step: str) -> None:
        super().__init__(message, next_step)
        self.message = message
        self.next_step = next_step

    def __str__(self) -> str:
        return f"{self.message} {self.next_step}"


class UnknownModel(StoreError):
    pass


class SourceUnavailable(StoreError):
    pass


class DiskFull(StoreError):
    pass


class StoreUnwritable(StoreError):
    pass


class ModelDamaged(StoreError):
    pass


class UnsupportedModel(StoreError):
    pass


_FULL = {errno.ENOSPC, errno.EDQUOT}
_UNWRITABLE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR}


def disk_full(root: Path, required_bytes: int | None = None) -> DiskFull:
    need = "" if required_bytes is None else f"{required_bytes / 1e6:.0f} MB are needed, "
    return DiskFull(
        f"The disk that holds {root} is full ({need}{_free_bytes(root) / 1e6:.1f} MB are free).",
        "Free some room, or point PLAIT_HOME at another disk; nothing was left behind.",
    )


def file_too_large(root: Path) -> DiskFull:
    """The process may not write a file of that size (`ulimit -f`), or the file system has none."""
    limit_bytes, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    limited = limit_bytes != resource.RLIM_INFINITY
    limit = f"{limit_bytes:,} bytes" if limited else "the file system's largest file"
    return DiskFull(
        f"A file below {root} would be larger than {limit}, which is the limit here.",
        "Raise it (`ulimit -f unlimited`), or point PLAIT_HOME at another disk; nothing was left"
        " behind.",
    )


def _free_bytes(root: Path) -> int:
    """Where there is no such directory any more: nothing."""
    try:
        return shutil.disk_usage(root).free
    except OSError:
        return 0


@contextmanager
def disk_errors(root: Path) -> Iterator[None]:
    """Turn the operating system's errors about writing below `root` into DiskFull or
    StoreUnwritable; every other error passes unchanged."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise disk_full(root) from error
        if error.errno == errno.EFBIG:
            raise file_too_large(root) from error
        if error.errno in _UNWRITABLE:
            raise StoreUnwritable(
                f"{root} cannot be written: {error.strerror}.",
                "Set PLAIT_HOME to a directory that this user may write.",
            ) from error
        raise
