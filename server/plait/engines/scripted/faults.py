"""How a scripted job goes wrong when its script says so: typed, untyped, dead or silent."""

from __future__ import annotations

import os
import signal
import threading
from typing import NoReturn

from plait.engines.base import Fault
from plait.engines.scripted.script import Script
from plait.errors import BY_CODE, GenerationFailed


def stumble(code: str, *, no_memory: bool) -> None:
    """Raises the typed error of `code` unless it is empty, or MemoryError."""
    if code:
        raise BY_CODE.get(code, BY_CODE["internal"])(f"The script asked for {code}.")
    if no_memory:
        raise MemoryError


def break_as_told(script: Script, produced: int) -> Fault | None:
    """After `produced` tokens or words: the fault to end with, None to go on, or no return."""
    if script.crash_at == produced:
        die()
    if script.hang_at == produced:
        hang()
    if script.raise_at == produced:
        raise RuntimeError(f"the script asked for a crash after {produced} tokens")
    if script.memory == "step":
        raise MemoryError
    if script.fail_at == produced:
        return Fault.of(
            GenerationFailed(f"The model could not go on after {produced} tokens; try again.")
        )
    return None


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def hang() -> NoReturn:
    while True:
        threading.Event().wait()
