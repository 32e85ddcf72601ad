"""The methods of a connection, each with what may be asked of it: what a `Client` offers by name.

They turn their arguments into params and a source of input, and what is opened into a stream in the
method's own words. This module does NOT know sockets, ids nor how input goes up.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from plait.client.chat import ChatStream
from plait.client.embed import EmbedStream, one_by_one
from plait.client.speech import SpeechStream
from plait.client.transcribe import Transcribe
from plait.client.upload import fits_frame, in_pieces
from plait.errors import InvalidRequest
from plait.wire.messages import DEFAULT_WINDOW, Priority, Welcome

if TYPE_CHECKING:
    from plait.client.stream import Stream
    from plait.client.upload import Piece


class Open(Protocol):
    """`Client.open`."""

    def __call__(
        self,
        method: str,
        params: dict[str, Any],
        *,
        source: AsyncIterable[Piece] | None = None,
        window: int = DEFAULT_WINDOW,
        priority: Priority = "interactive",
        deadline_ms: int | None = None,
    ) -> Stream: ...


class Methods:
    """Mixed into `Client`, which opens streams."""

    welcome: Welcome
    open: Open

    def chat(
        self,
        messages: list[dict[str, Any]],
        *,
        model: str | None = None,
        window: int = DEFAULT_WINDOW,
        priority: Priority = "interactive",
        deadline_ms: int | None = None,
        **params: Any,
    ) -> ChatStream:
        """Open a chat; `params` as in PROTOCOL.md §3 (max_tokens, temperature, stop …).

        Returns at once; refusals are raised by the stream. Raises InvalidRequest for what cannot
        be sent, and ConnectionLost.
        """
        params["messages"] = messages
        if model is not None:
            params["model"] = model
        return ChatStream(
            self.open("chat", params, window=window, priority=priority, deadline_ms=deadline_ms)
        )

    def synthesize(
        self,
        text: str | AsyncIterable[str],
        *,
        model: str | None = None,
        voice: str | None = None,
        speed: float | None = None,
        language: str | None = None,
        marks: bool = False,
        window: int = DEFAULT_WINDOW,
        priority: Priority = "interactive",
        deadline_ms: int | None = None,
    ) -> SpeechStream:
        """Speak a text, or one that is still being written: what comes is spoken by clauses.

        A text too long for one frame goes up as if it were being written. Returns at once; refusals
        are raised by the stream. Raises InvalidRequest for what cannot be sent, and ConnectionLost.
        The source of the text is closed when the stream ends.
        """
        params = _given(model=model, voice=voice, speed=speed, language=language)
        params |= {"marks": True} if marks else {}
        source: AsyncIterable[str] | None = None
        if isinstance(text, str) and fits_frame(text, self.welcome.limits.max_text_bytes):
            params["text"] = text
        else:
            source = in_pieces(text) if isinstance(text, str) else text
        opened = self.open(
            "synthesize",
            params,
            source=source,
            window=window,
            priority=priority,
            deadline_ms=deadline_ms,
        )
        return SpeechStream(opened)

    @property
    def transcribe(self) -> Transcribe:
        """`transcribe.live` for audio while it comes, `transcribe.file` for recordings."""
        return Transcribe(self.open)

    def embed(
        self,
        texts: Iterable[str] | AsyncIterable[str | Sequence[str]],
        *,
        model: str | None = None,
        encoding: Literal["f32", "json"] | None = None,
        normalize: bool | None = None,
        truncate: bool | None = None,
        window: int = DEFAULT_WINDOW,
        priority: Priority = "interactive",
        deadline_ms: int | None = None,
    ) -> EmbedStream:
        """Embed texts, as many as there are, also such as are still being read or written.

        Those that fit go with the open; more go up as they are embedded, so that neither side ever
        holds more of them than the upload credit. An asynchronous source may give texts one by one
        or in lists. It is asked for more only when what it gave is about to be sent, and closed
        when the stream ends; whoever takes no embeddings makes it wait, too.

        Returns at once; refusals are raised by the stream. Raises InvalidRequest for what cannot
        be sent, and ConnectionLost.
        """
        if isinstance(texts, str):
            raise InvalidRequest("texts: this is one string. Put it into a list.", param="texts")
        params = _given(model=model, encoding=encoding, normalize=normalize, truncate=truncate)
        source: AsyncIterable[str | Sequence[str]] | None = None
        listed = _checked(texts) if isinstance(texts, Sequence) else None
        if listed is not None and fits_frame(listed, self.welcome.limits.max_text_bytes):
            params["texts"] = listed
        else:
            source = texts if isinstance(texts, AsyncIterable) else one_by_one(listed or texts)
        opened = self.open(
            "embed",
            params,
            source=source,
            window=window,
            priority=priority,
            deadline_ms=deadline_ms,
        )
        return EmbedStream(opened, None if listed is None else len(listed))


def _checked(texts: Sequence[object]) -> list[str]:
    """Raises InvalidRequest naming the first that is no text."""
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            what = type(text).__name__
            raise InvalidRequest(
                f"texts[{index}]: this is {what}, not a string.", param=f"texts[{index}]"
            )
    return cast("list[str]", list(texts))


def _given(**params: Any) -> dict[str, Any]:
    return {name: value for name, value in params.items() if value is not None}
