"""Files a benchmark writes: proved to be possible before it measures, and none left unfilled.

A proof really makes the file, as permissions alone say too little (root has them all, /proc takes
no file), and undoes what it made. Does NOT know what is in the files, but for the head of all JSON.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from plait import __version__
from plait.bench.serving import BenchError

SCHEMA = 1  # of the JSON's top level; another one when a reader of this one could not read it


def check_writable(file: Path) -> None:
    """Leaves everything as it was. Raises BenchError when no file could be written there."""
    with _made_for(file, kept=False) as real:
        if real.exists() and not real.is_file() and not real.is_dir():
            if not os.access(real, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return  # a pipe or device: whoever reads it would take opening and closing for its end
        real.open("ab").close()


@contextlib.contextmanager
def filling(file: Path) -> Iterator[None]:
    """In the block, its folder is there. Raises BenchError for the block's OSErrors.

    Where the block raises, the file and its folders are gone again, unless they were there before.
    """
    with _made_for(file, kept=True):
        yield


def write_text(file: Path, text: str) -> None:
    """Makes its folder. Raises BenchError when it cannot be written."""
    with filling(file):
        file.write_text(text, encoding="utf-8")


def write_json(file: Path, record: Mapping[str, Any]) -> None:
    """`record` below what all figures say of their origin. Raises BenchError."""
    command = shlex.join(["plait", *sys.argv[1:]])
    whole = {"schema": SCHEMA, "plait": __version__, "command": command, **record}
    write_text(file, json.dumps(whole, indent=1) + "\n")


@contextlib.contextmanager
def _made_for(file: Path, *, kept: bool) -> Iterator[Path]:
    """Where `file` leads to, links followed. Not `kept`, or in an error: what is new is removed."""
    new: list[Path] = []
    try:
        real = Path(os.path.realpath(file))
        new = [path for path in (real, *real.parents) if not path.exists()]
        real.parent.mkdir(parents=True, exist_ok=True)
        yield real
        new = new if not kept else []
    except OSError as error:
        why = error.strerror or str(error)
        raise BenchError(
            f"{file} cannot be written: {why}; name another file, or make room for it"
        ) from error
    finally:
        for path in new:  # the innermost first; a folder that others filled meanwhile stays
            with contextlib.suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()
