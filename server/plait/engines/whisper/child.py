"""The loop of a process that listens to one stream: audio in, items out, a permit per decode.

Audio is read as it comes, so that nothing hides behind it; listened to while less than
`BACKLOG_SECONDS` of speech wait to be decoded, and told as taken only then: so the client's upload
credit bounds what waits here. Live audio costs next to nothing to listen to; a flood of it is work
like a decode, and done with the same permit. Single-threaded; it sleeps when it has neither. What
breaks it breaks this stream. Does NOT know how its process came to be, nor the other streams.
"""

from __future__ import annotations

import select
import socket
import sys
import time
import traceback
from collections.abc import Callable

import msgspec
import numpy as np

from plait.engines.base import Fault
from plait.engines.whisper.capacity import WINDOW_SECONDS
from plait.engines.whisper.decoder import Aborted
from plait.engines.whisper.ears import Ears, Listening
from plait.engines.whisper.hearing import Heard, Window
from plait.engines.whisper.messages import (
    RECEIVE_BYTES,
    Ask,
    Audio,
    Broken,
    End,
    Ended,
    FromChild,
    GiveBack,
    Grant,
    Listen,
    Measure,
    Measured,
    Resting,
    Said,
    ToChild,
    Took,
    decode_to_child,
    frame,
    reader,
)
from plait.engines.whisper.unheard import Unheard
from plait.engines.whisper.words import SAMPLE_RATE
from plait.errors import GenerationFailed, OutOfMemory, PlaitError
from plait.wire.params import TranscribeParams

BACKLOG_SECONDS = 20.0
REST_SECONDS = 0.5


class LeftAlone(Exception):
    """The adapter closed its end: nobody waits for this stream."""


class Line:
    """Our end of the stream's socket. `alarm`: another socket; anything on it is an abort."""

    def __init__(self, sock: socket.socket, alarm: socket.socket | None = None) -> None:
        self._sock = sock
        self._alarm = alarm
        self._watched = [sock] if alarm is None else [sock, alarm]
        self._reader = reader()

    def receive(self, patience_seconds: float | None) -> list[ToChild]:
        """What has come, waiting for it so long; None: until something comes.

        Raises LeftAlone, and Aborted.
        """
        readable, _, _ = select.select(self._watched, [], [], patience_seconds)
        if self._alarm is not None and self._alarm in readable:
            raise Aborted
        if self._sock not in readable:
            return []
        try:
            data = self._sock.recv(RECEIVE_BYTES)
        except ConnectionResetError:
            data = b""
        if not data:
            raise LeftAlone
        return [decode_to_child(payload) for payload in self._reader.feed(data)]

    def say(self, *messages: FromChild) -> None:
        """Raises LeftAlone."""
        try:
            self._sock.sendall(frame(list(messages)))
        except (BrokenPipeError, ConnectionResetError) as error:
            raise LeftAlone from error


class StreamLoop:
    """One stream, from its `Listen` to `Ended`. `run` returns then; see `serve` for the rest."""

    def __init__(
        self,
        line: Line,
        ears: Ears,
        listening: Listening,
        params: TranscribeParams,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._line = line
        self._ears = ears
        self._listening = listening
        self._clock = clock
        self._unheard = Unheard(params)
        self._inputs = 0
        self._input_ended = False
        self._finished = False
        self._asked: bool | None = None  # for a closing decode, for another one, not at all
        self._granted = False
        self._rested = False

    def run(self, messages: list[ToChild]) -> None:
        """`messages` came with the first one. Raises what `Line` and the ears do."""
        self._receive(messages)
        while True:
            self._listen()
            decoded = self._decode()
            if self._finished and self._listening.over:
                self._line.say(Ended())
                return
            patience = 0.0 if decoded else self._patience()
            messages = self._line.receive(patience)
            if not messages and patience == REST_SECONDS:
                self._rested = True
                self._line.say(Resting(self._inputs))
            self._receive(messages)

    def _patience(self) -> float | None:
        if self._may_listen or self._granted:
            return 0.0
        if self._input_ended or self._rested or self._asked is not None or self._unheard:
            return None
        return REST_SECONDS

    @property
    def _hears_more(self) -> bool:
        if self._unheard:
            return self._listening.backlog_seconds < BACKLOG_SECONDS
        return self._input_ended and not self._finished

    @property
    def _may_listen(self) -> bool:
        return self._hears_more and (self._granted or not self._unheard.floods)

    def _receive(self, messages: list[ToChild]) -> None:
        for message in messages:
            match message:
                case Audio():
                    self._unheard.put(message)
                    self._inputs += 1
                    self._rested = False
                case End():
                    self._input_ended = True
                case Grant():
                    self._asked, self._granted = None, True
                case _:
                    raise AssertionError(f"a {type(message).__name__} in the midst of a stream")

    def _listen(self) -> None:
        """To one slice, or the end of input."""
        if not self._may_listen:
            return
        if self._unheard:
            audio, at = self._unheard.take()
            heard = self._listening.feed(audio, at)
            self._line.say(Took(len(audio)), *said(heard))
        else:
            heard = self._listening.finish()
            self._finished = True
            self._line.say(*said(heard))

    def _decode(self) -> bool:
        """If it is due: ask, or use the permit, and then there may be more. What is due is asked
        anew each time, so a window has grown by all that came while the permit did not."""
        if self._hears_more:  # first: the window grows with it
            if not self._may_listen:
                self._ask(closing=False)
            return False
        window = self._listening.due()
        if self._granted:
            heard = [] if window is None else self._decoded(window)
            self._granted = False
            self._line.say(GiveBack(), *said(heard))
            return True
        if window is not None:
            self._ask(closing=window.closing)
        else:
            assert not self._unheard, "too much waits to be decoded, and nothing of it is due"
            assert self._listening.over or not self._finished, "the end is not due, and not over"
        return False

    def _ask(self, *, closing: bool) -> None:
        """Once, and again when it has become urgent."""
        if self._asked is None or (closing and not self._asked):
            self._asked = closing
            self._line.say(Ask(closing))

    def _decoded(self, window: Window) -> list[Heard]:
        decoded = self._ears.decode(window)
        return self._listening.take(window, decoded, self._clock())


def said(heard: list[Heard]) -> list[Said]:
    return [Said(one.data, one.revises, one.units) for one in heard]


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
