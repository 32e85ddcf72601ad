"""Runs a converter of speech or embedding models in a process of its own.

Kokoro's hold the whole model several times over (1.7 GB at their peak) and leave 1 GB with the
process they ran in, which may be a server's. The process prints a JSON line for each percent, and
one for a typed error; it ends with us, at the latest at its next line. Its stderr is kept for the
reason of an end that it could not explain.
Does NOT know: what the converters do.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import IO, Any, Final, TextIO

from plait.installation import child_environment
from plait.models import errors
from plait.models.errors import StoreError, UnsupportedModel

Percent = Callable[[float], None]

# converter → (module, function), called with (weight file, directory, progress)
_CONVERTERS: Final = {
    "kokoro-onnx": ("plait.models.kokoro.graphs", "build_graphs"),
    "kokoro-torch": ("plait.models.kokoro.torch_weights", "convert"),
    "onnx": ("plait.models.embedding.convert", "convert"),
}


def convert_apart(converter: str, weights: Path, out: Path, progress: Percent) -> None:
    """Fill the existing directory `out`. Raises what the converter raises of StoreError and
    OSError, and UnsupportedModel when its process was killed, as for want of memory."""
    # -P: no module is ever imported from the current directory.
    command = [sys.executable, "-P", "-m", "plait.models.conversion", converter]
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(
            [*command, str(weights), str(out)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            env=child_environment(os.environ),
            process_group=0,  # a terminal's Ctrl-C is ours alone
        ) as process,
    ):
        try:
            assert process.stdout is not None
            for line in process.stdout:
                _take(json.loads(line), progress)
        except BaseException:
            process.kill()
            raise
        if process.wait() != 0:
            raise _ended(converter, process.returncode, log)


def _take(said: dict[str, Any], progress: Percent) -> None:
    if "percent" in said:
        progress(said["percent"])
    elif "errno" in said:
        raise OSError(said["errno"], said["message"])
    else:
        error: type[StoreError] = getattr(errors, said["error"])
        raise error(said["message"], said["next_step"])


def _ended(converter: str, code: int, log: IO[bytes]) -> StoreError:
    log.seek(0)
    lines = log.read().decode(errors="replace").strip().splitlines()
    why = f"signal {-code}" if code < 0 else (lines[-1] if lines else f"code {code}")
    return UnsupportedModel(
        f"The conversion for {converter} ended with {why}.",
        "It needs 2 GB of memory: close other programs, then try again.",
    )


def main(converter: str, weights: str, out: str) -> None:
    module, function = _CONVERTERS[converter]
    convert = getattr(importlib.import_module(module), function)
    lines = sys.stdout
    say = partial(_say, lines)
    try:
        with redirect_stdout(sys.stderr):  # what a library prints is no line of ours
            convert(Path(weights), Path(out), lambda percent: say(percent=percent))
    except StoreError as error:
        say(error=type(error).__name__, message=error.message, next_step=error.next_step)
    except BrokenPipeError:
        sys.exit(1)  # nobody waits for it any more
    except OSError as error:
        say(errno=error.errno, message=error.strerror)


def _say(lines: TextIO, **said: object) -> None:
    lines.write(f"{json.dumps(said)}\n")
    lines.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
