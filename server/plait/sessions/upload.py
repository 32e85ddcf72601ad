"""One stream's input on its way to the engine: credit for the client, few and large feeds.

The client may have `window_bytes` beyond the last `input_ack` unconfirmed (PROTOCOL.md §5); that
is also the bound of what is held here, in the ticket and at the worker together. Input a letter
at a time must not become a command a letter: the first is passed on at once, what comes within
FEED_INTERVAL_SECONDS of it is joined. Does NOT know what the input says.
"""

from __future__ import annotations

from collections.abc import Callable

from plait.engines.base import Feed, FinishInput
from plait.sessions.timers import Timers
from plait.wire.messages import EmbedParams, Params, TranscribeParams
from plait.wire.window import InputCredit

WINDOW_BYTES = 64 * 1024  # of text: over an hour of speech; of audio at least
TEXTS_WINDOW_BYTES = 1024 * 1024  # a text as large as a frame fits, once what came before is done
TEXT_OVERHEAD_BYTES = 16  # of each of `texts`: the empty ones take memory, too
AUDIO_WINDOW_SECONDS = 10
FEED_INTERVAL_SECONDS = 0.02

Send = Callable[[Feed | FinishInput], None]


def window_bytes_for(params: Params) -> int:
    """How much a client may be ahead of the engine."""
    if isinstance(params, TranscribeParams):
        return max(WINDOW_BYTES, AUDIO_WINDOW_SECONDS * params.bytes_per_second)
    if isinstance(params, EmbedParams):
        return TEXTS_WINDOW_BYTES
    return WINDOW_BYTES


class Upload:
    """Owned by a stream whose text, texts or audio follow its open; fed by its session."""

    def __init__(
        self,
        job: int,
        window_bytes: int,
        send: Send,
        timers: Timers,
        clock: Callable[[], float],
        *,
        one_text: bool,
    ) -> None:
        """`one_text`: what comes is pieces of one running text, not texts of their own."""
        self._job = job
        self._one_text = one_text
        self._send = send
        self._timers = timers
        self._clock = clock
        self._credit = InputCredit(window_bytes)
        self._texts: list[str] = []
        self._audio = bytearray()
        self._fed_at = float("-inf")

    @property
    def window_bytes(self) -> int:
        return self._credit.window_bytes

    @property
    def consumed_bytes(self) -> int:
        return self._credit.received_bytes - self._credit.pending_bytes

    def receive_texts(self, texts: list[str]) -> None:
        """Raises InputOverflow, taking nothing, beyond the credit."""
        size_bytes = sum(len(text.encode()) for text in texts)
        if not self._one_text:
            size_bytes += TEXT_OVERHEAD_BYTES * len(texts)
        self._credit.receive(size_bytes)
        if size_bytes:  # a piece of nothing is nothing, and no texts are none
            self._texts += texts
            self._feed_soon()

    def receive_audio(self, payload: memoryview) -> None:
        """Raises InputOverflow, taking nothing, beyond the credit."""
        self._credit.receive(len(payload))
        self._audio += payload
        self._feed_soon()

    def finish(self) -> None:
        """No more will come; at most once."""
        self._timers.disarm("feed")
        self._feed()
        self._send(FinishInput(self._job))

    def consume(self, size_bytes: int) -> int | None:
        """The engine took so much: the total to confirm to the client when that is due."""
        # What a worker claims beyond what it was fed gives nobody credit.
        return self._credit.consume(min(size_bytes, self._credit.pending_bytes))

    def _feed_soon(self) -> None:
        if "feed" not in self._timers:
            wait = self._fed_at + FEED_INTERVAL_SECONDS - self._clock()
            if wait <= 0:
                self._feed()
            else:
                self._timers.arm("feed", wait, self._feed)

    def _feed(self) -> None:
        if self._texts or self._audio:
            texts = ["".join(self._texts)] if self._one_text else self._texts
            self._send(Feed(self._job, bytes(self._audio) or None, texts or None))
            self._texts, self._audio = [], bytearray()
            self._fed_at = self._clock()
