"""Loads the model for streams: the zygote, and what one decode costs, in a stream of its own.

A model that loads but cannot decode is found here, not by the first client. Does NOT know jobs.
"""

from __future__ import annotations

import signal
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from plait.engines.base import LoadSpec, Report
from plait.engines.dying import EXIT_BUG, exit_now
from plait.engines.whisper.capacity import WINDOW_SECONDS, slots_for, stream_bytes
from plait.engines.whisper.ears import WHISPER
from plait.engines.whisper.messages import (
    RECEIVE_BYTES,
    Broken,
    Gone,
    Load,
    Measure,
    Measured,
    decode_from_child,
    frame,
    reader,
)
from plait.engines.whisper.nursery import Nursery, ZygoteDied
from plait.errors import ModelLoadFailed

# The job of the measurement; those of the gateway count from 1.
MEASURING = 0
TRIAL_SECONDS = 1.0  # of a window that only shows that decoding works
PATIENCE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Facts:
    slots: int
    multilingual: bool
    stream_bytes: int


def default_isolation() -> str:
    """Where a fork of a process that uses the system's frameworks is safe."""
    return "fork" if sys.platform == "linux" else "spawn"


def load_or_die(spec: LoadSpec, report: Report) -> tuple[Nursery, Facts]:
    """`load_streams` for a worker, which ends with its zygote from the start: a worker that died is
    started anew, but a failed load is final. Raises ModelLoadFailed."""
    try:
        nursery, facts = load_streams(spec, report)
    except ZygoteDied:
        die_with_the_zygote()
    nursery.watch(die_with_the_zygote)
    return nursery, facts


def load_streams(spec: LoadSpec, report: Report) -> tuple[Nursery, Facts]:
    """-> (the running zygote, what was found out). Raises ModelLoadFailed, and ZygoteDied where a
    process was killed from outside: another load may go better."""
    isolation = spec.options.get("isolation") or default_isolation()
    report("starting", None)
    ears = spec.options.get("ears", WHISPER)
    spares = spec.slots or spec.threads + 1
    nursery = Nursery(Load(spec.weights, ears, isolation, spares))
    multilingual = nursery.load(report)
    try:
        report("measuring", None)
        decode_seconds = _measure(nursery, TRIAL_SECONDS if spec.slots else WINDOW_SECONDS)
    except BaseException:
        nursery.close()
        raise
    slots = spec.slots or slots_for(decode_seconds, max(1, spec.threads))
    weights_bytes = Path(spec.weights).stat().st_size if spec.weights else 0
    held_bytes = stream_bytes(weights_bytes, forked=isolation == "fork")
    return nursery, Facts(slots, multilingual, held_bytes)


def die_with_the_zygote() -> NoReturn:
    """From the thread that watches it: the worker's loop may sleep, or be deep in anything."""
    sys.stderr.write("the zygote died\n")
    exit_now(EXIT_BUG)


def _measure(nursery: Nursery, window_seconds: float) -> float:
    """CPU seconds of one decode, in a process as streams have it, which is gone afterwards."""
    try:
        with nursery.open(MEASURING) as sock:
            sock.settimeout(PATIENCE_SECONDS)
            sock.sendall(frame(Measure(window_seconds)))
            seconds = _answer(sock)
        status = _end(nursery)
    except OSError as error:
        raise _useless() from error
    if seconds is not None:
        return seconds
    if status == -signal.SIGKILL:
        raise ZygoteDied("the measurement was killed")
    raise _useless()


def _end(nursery: Nursery) -> int | None:
    """How the process of the measurement ended, when it has."""
    while True:
        for message in nursery.receive():
            if isinstance(message, Gone):
                return message.status


def _answer(sock: socket.socket) -> float | None:
    """None when its process died without one."""
    words = reader()
    while data := sock.recv(RECEIVE_BYTES):
        for payload in words.feed(data):
            match decode_from_child(payload):
                case [Measured(seconds)]:
                    return seconds
                case [Broken(fault)]:
                    raise ModelLoadFailed(f"The Whisper model cannot decode: {fault.message}")
    return None


def _useless() -> ModelLoadFailed:
    return ModelLoadFailed(
        "The Whisper model was loaded but cannot decode on this machine: its process died or took "
        f"more than {PATIENCE_SECONDS:g} s. Verify the model, or use a smaller one."
    )
