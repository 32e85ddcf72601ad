"""The loop of a process that listens to one stream: audio in, items out, a permit per decode.

Audio is read as it comes, so that nothing hides behind it; listened to while less than
`BACKLOG_SECONDS` of speech wait to be decoded, and told as taken only then: so the client's upload
credit bounds what waits here. Live audio costs next to nothing to listen to; a flood of it is work
like a decode, and done with the same permit. A decode runs in a thread of its own meanwhile, and
live audio goes on being listened to: that somebody begins to speak is told at once. Everything
but that decode is done here, by one thread, which sleeps when there is nothing to do. Does NOT
know how its process came to be, nor the other streams.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from plait.engines.whisper.decoding import Decoding
from plait.engines.whisper.ears import Ears, Listening
from plait.engines.whisper.hearing import Heard
from plait.engines.whisper.line import Line
from plait.engines.whisper.messages import (
    Ask,
    Audio,
    End,
    Ended,
    GiveBack,
    Grant,
    Resting,
    Said,
    ToChild,
    Took,
)
from plait.engines.whisper.unheard import Unheard
from plait.wire.params import TranscribeParams

BACKLOG_SECONDS = 20.0
REST_SECONDS = 0.5


class StreamLoop:
    """One stream, from its `Listen` to `Ended`. `run` returns then, and whatever it raises: no
    decode of this stream runs any more."""

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
        self._listening = listening
        self._clock = clock
        self._decoding = Decoding(ears.decode)
        self._unheard = Unheard(params, clock)
        self._inputs = 0
        self._input_ended = False
        self._finished = False
        self._asked: bool | None = None  # for a closing decode, for another one, not at all
        self._granted = False
        self._rested = False

    def run(self, messages: list[ToChild]) -> None:
        """`messages` came with the first one. Raises what `Line` and the ears do."""
        try:
            self._run(messages)
        finally:
            self._decoding.close()

    def _run(self, messages: list[ToChild]) -> None:
        self._receive(messages)
        while True:
            self._take()
            self._listen()
            self._decode()
            if self._finished and self._listening.over:
                self._line.say(Ended())
                return
            patience = self._patience()
            messages = self._line.receive(patience, self._decoding.bell)
            if not messages and patience == REST_SECONDS:
                self._rested = True
                self._line.say(Resting(self._inputs))
            self._receive(messages)

    def _patience(self) -> float | None:
        if self._may_listen:
            return 0.0
        if self._decoding.running:
            return None
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
        if self._decoding.running:  # its permit is for that
            return bool(self._unheard) and self._hears_more and self._unheard.live
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
            heard = self._listening.hear(audio, at)
            if not self._decoding.running:
                heard += self._listening.follow(self._clock())
            self._line.say(Took(len(audio)), *said(heard))
        else:
            heard = self._listening.finish()
            self._finished = True
            self._line.say(*said(heard))

    def _decode(self) -> None:
        """If it is due: ask, or use the permit. What is due is asked anew each time, so a window
        has grown by all that came while the permit did not."""
        if self._decoding.running:
            return
        if self._hears_more:  # first: the window grows with it
            if not self._may_listen:
                self._ask(closing=False)
            return
        window = self._listening.due()
        if window is None:
            assert not self._unheard, "too much waits to be decoded, and nothing of it is due"
            assert self._listening.over or not self._finished, "the end is not due, and not over"
            if self._granted:
                self._give_back([])
        elif self._granted:
            self._decoding.begin(window)
            self._unheard.begin_decode()
        else:
            self._ask(closing=window.closing)

    def _take(self) -> None:
        """What was decoded, when it is, and what was heard meanwhile."""
        done = self._decoding.take()
        if done is not None:
            now = self._clock()
            self._give_back(self._listening.take(*done, now) + self._listening.follow(now))

    def _give_back(self, heard: list[Heard]) -> None:
        self._granted = False
        self._line.say(GiveBack(), *said(heard))

    def _ask(self, *, closing: bool) -> None:
        """Once, and again when it has become urgent."""
        if self._asked is None or (closing and not self._asked):
            self._asked = closing
            self._line.say(Ask(closing))


def said(heard: list[Heard]) -> list[Said]:
    return [Said(one.data, one.revises, one.units) for one in heard]
