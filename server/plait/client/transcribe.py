"""`client.transcribe`: audio that is still being recorded, or a file, to a transcription.

Here it is decided where audio comes from; `upload` sends it within the credit. This module does NOT
know sockets nor segments.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal, Required, TypedDict, Unpack, overload

from plait.client.stream import Stream
from plait.client.transcription import (
    Segment,
    SpeechEvent,
    Transcription,
    TranscriptionStream,
)
from plait.client.wav_file import Source, WavFile
from plait.errors import InvalidRequest
from plait.wire.messages import DEFAULT_WINDOW, Priority

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    Take = Callable[[], ReadableBuffer | Awaitable[ReadableBuffer | None] | None]

# What a buffer of samples calls them; buffers of bytes may hold any.
_SAMPLES = {"pcm_s16le": "h", "pcm_f32le": "f"}
_BYTES = ("B", "b", "c")


class LiveOptions(TypedDict, total=False):
    """What `live` takes besides `events`, which decides what it yields."""

    sample_rate: Required[int]
    channels: int
    encoding: str
    model: str | None
    language: str | None
    interim: bool
    words: bool
    prompt: str | None
    silence_ms: int | None
    max_segment_seconds: float | None
    speech_threshold: float | None
    window: int
    priority: Priority
    deadline_ms: int | None


class Transcribe:
    """The method `transcribe` of one connection."""

    def __init__(self, open: Callable[..., Stream]) -> None:
        """`open`: the connection's `Client.open`."""
        self._open = open

    @overload
    def live(
        self,
        source: AsyncIterable[ReadableBuffer] | Take,
        *,
        events: Literal[False] = False,
        **options: Unpack[LiveOptions],
    ) -> TranscriptionStream[Segment]: ...

    @overload
    def live(
        self,
        source: AsyncIterable[ReadableBuffer] | Take,
        *,
        events: bool,
        **options: Unpack[LiveOptions],
    ) -> TranscriptionStream[Segment | SpeechEvent]: ...

    def live(
        self,
        source: AsyncIterable[ReadableBuffer] | Take,
        *,
        sample_rate: int,
        channels: int = 1,
        encoding: str = "pcm_s16le",
        model: str | None = None,
        language: str | None = None,
        interim: bool = True,
        words: bool = False,
        events: bool = False,
        prompt: str | None = None,
        silence_ms: int | None = None,
        max_segment_seconds: float | None = None,
        speech_threshold: float | None = None,
        window: int = DEFAULT_WINDOW,
        priority: Priority = "interactive",
        deadline_ms: int | None = None,
    ) -> TranscriptionStream[Any]:
        """Transcribe audio while it comes; see PROTOCOL.md §3 for what may be asked.

        `source` gives interleaved samples, little-endian, at `sample_rate` Hz (8000 … 48000), in
        pieces of any size: bytes, cut anywhere, or a buffer of samples (`array`, NumPy). It is an
        asynchronous iterable, or a callable that gives the next piece, and None or an empty one at
        the end; one that is no coroutine function is called in a thread, so it may block (it is
        never interrupted: what it gives after the stream's end is dropped).

        It is asked for more only when what it gave is sent. Where it is faster than the server
        listens, ten seconds go ahead and then it has to wait: a recorder that cannot must keep
        what it records, and what it keeps is how far the transcription is behind.

        Returns at once; refusals are raised by the stream. Raises InvalidRequest for what cannot
        be sent, and ConnectionLost. The source is closed when the stream ends.
        """
        params = _given(
            sample_rate=sample_rate,
            channels=channels,
            encoding=encoding,
            model=model,
            language=language,
            prompt=prompt,
            silence_ms=silence_ms,
            max_segment_seconds=max_segment_seconds,
            speech_threshold=speech_threshold,
            interim=None if interim else False,
            words=words or None,
            events=events or None,
        )
        pieces = _checked(_as_iterable(source), encoding)
        settings = {"window": window, "priority": priority, "deadline_ms": deadline_ms}
        return TranscriptionStream(self._open("transcribe", params, source=pieces, **settings))

    async def file(
        self,
        source: Source,
        *,
        model: str | None = None,
        language: str | None = None,
        words: bool = False,
        prompt: str | None = None,
        silence_ms: int | None = None,
        max_segment_seconds: float | None = None,
        speech_threshold: float | None = None,
        window: int = DEFAULT_WINDOW,
        priority: Priority = "interactive",
        deadline_ms: int | None = None,
    ) -> Transcription:
        """Transcribe a WAV file: a path, its bytes, or a file object (which is not closed).

        It goes up as fast as the server decodes, and is never in memory as a whole. Cancels when
        its own task is cancelled. Raises InvalidAudio for any other file, OSError, and what
        `TranscriptionStream` raises.
        """
        file = await asyncio.to_thread(WavFile.open, source)
        try:
            stream = self.live(
                file.read,
                sample_rate=file.sample_rate,
                channels=file.channels,
                encoding=file.encoding,
                model=model,
                language=language,
                interim=False,
                words=words,
                prompt=prompt,
                silence_ms=silence_ms,
                max_segment_seconds=max_segment_seconds,
                speech_threshold=speech_threshold,
                window=window,
                priority=priority,
                deadline_ms=deadline_ms,
            )
            return await stream.collect()
        finally:
            file.close()


def _given(**params: Any) -> dict[str, Any]:
    return {name: value for name, value in params.items() if value is not None}


def _as_iterable(source: AsyncIterable[ReadableBuffer] | Take) -> AsyncIterable[ReadableBuffer]:
    if isinstance(source, AsyncIterable):
        return source
    if callable(source):
        return _called(source)
    raise InvalidRequest(
        f"source: {type(source).__name__} is neither an asynchronous iterable nor a callable."
        " Recordings go through transcribe.file.",
        param="source",
    )


async def _called(take: Take) -> AsyncIterator[ReadableBuffer]:
    """What `take` gives, until it gives nothing."""
    waits = inspect.iscoroutinefunction(take)
    while True:
        piece = take() if waits else await asyncio.to_thread(take)
        if inspect.isawaitable(piece):
            piece = await piece
        if piece is None or not memoryview(piece).nbytes:
            return
        yield piece


async def _checked(
    source: AsyncIterable[ReadableBuffer], encoding: str
) -> AsyncIterator[ReadableBuffer]:
    """The same audio as bytes. Raises InvalidRequest where its samples are not as announced."""
    pieces = aiter(source)
    try:
        async for piece in pieces:
            view = memoryview(piece)
            if view.format not in (*_BYTES, _SAMPLES.get(encoding, view.format)):
                raise InvalidRequest(
                    f"source: it gives samples of type {view.format!r}, not {encoding}. Convert"
                    " them, or say another encoding.",
                    param="source",
                )
            if view.nbytes:  # an empty view cannot be cast
                yield view.cast("B") if view.c_contiguous else view.tobytes()
    finally:
        close = getattr(pieces, "aclose", None)
        if close is not None:
            await close()
