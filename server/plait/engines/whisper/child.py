"""One stream's whole time in a process: what it begins with, and how it ends.

What breaks it breaks this stream: a fault is told, and after some the process should not go on.
Does NOT know how its process came to be, nor what a stream does between (see `stream_loop`).
"""

from __future__ import annotations

import socket
import sys
import time
import traceback

import msgspec
import numpy as np

from plait.engines.base import Fault
from plait.engines.whisper.capacity import WINDOW_SECONDS
from plait.engines.whisper.decoder import Aborted
from plait.engines.whisper.ears import Ears
from plait.engines.whisper.line import LeftAlone, Line
from plait.engines.whisper.messages import Broken, Listen, Measure, Measured, ToChild
from plait.engines.whisper.stream_loop import StreamLoop
from plait.engines.whisper.words import SAMPLE_RATE, Window
from plait.errors import GenerationFailed, OutOfMemory, PlaitError
from plait.wire.params import TranscribeParams


def serve(sock: socket.socket, ears: Ears, alarm: socket.socket | None = None) -> bool:
    """One stream. False when it broke in a way after which the process should not go on.

    Raises Aborted.
    """
    line = Line(sock, alarm)
    try:
        try:
            _serve(line, ears)
        except (PlaitError, MemoryError) as error:
            line.say(Broken(fault_of(error)))
        except (Aborted, LeftAlone):
            raise
        except Exception as error:  # noqa: BLE001 - libraries raise anything: this stream's fault
            # Without the message, which may quote what the peer sent.
            sys.stderr.write(f"a stream broke: {type(error).__name__}\n")
            traceback.print_tb(error.__traceback__)
            failure = GenerationFailed("This audio could not be transcribed; send it again.")
            line.say(Broken(Fault.of(failure)))
            return False
    except LeftAlone:
        return True
    return True


def _serve(line: Line, ears: Ears) -> None:
    messages: list[ToChild] = []
    while not messages:
        messages = line.receive(None)
    match messages[0]:
        case Listen(params):
            listening = ears.open(params)
            declared = msgspec.convert(params, TranscribeParams)
            StreamLoop(line, ears, listening, declared).run(messages[1:])
        case Measure(seconds):
            line.say(Measured(measure(ears, seconds)))
        case other:
            raise AssertionError(f"a stream that begins with {type(other).__name__}")


def measure(ears: Ears, seconds: float = WINDOW_SECONDS) -> float:
    """CPU seconds of one decode of noise, which is the model's work whatever is said."""
    noise = np.random.default_rng(0).normal(0, 0.05, int(seconds * SAMPLE_RATE))
    window = Window(noise.astype(np.float32), 0.0, closing=True, language="en", prompt="")
    begin = time.process_time()
    ears.decode(window)
    return time.process_time() - begin


def fault_of(error: PlaitError | MemoryError) -> Fault:
    if isinstance(error, PlaitError):
        return Fault.of(error)
    return Fault.of(OutOfMemory("There is no memory left for this stream; try again later."))
