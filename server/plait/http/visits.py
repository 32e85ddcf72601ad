"""Plain HTTP, the opening handshakes among it, for peers that are slow, silent or many.

A connection has `seconds` to send a whole request and ANSWER_SECONDS to take what it is answered;
one that opens nothing, drips its headers or does not read is closed, with a 408 where it has begun
to ask. At most MOST_VISITS such connections are held: one more, and the one that has been longest
in what it does gives way. A connection that has become a WebSocket is no visit any more.
Does NOT know: what is asked for, nor how it is answered.
"""

from __future__ import annotations

import asyncio
from typing import Any, Literal, cast

import h11
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

ANSWER_SECONDS = 60.0  # the largest file over the slowest line
MOST_VISITS = 512  # a burst of reconnecting clients, a network's round trip long

Phase = Literal["asking", "answering"]


class Visits:
    """Of one server: every plain connection, the one longest in its phase first."""

    def __init__(
        self,
        seconds: float,
        most: int = MOST_VISITS,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._seconds = {"asking": seconds, "answering": answer_seconds}
        self._most = most
        self._held: dict[VisitProtocol, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        return len(self._held)

    def enter(self, visit: VisitProtocol, phase: Phase) -> None:
        self.leave(visit)
        if len(self._held) >= self._most:
            next(iter(self._held)).give_up()
        loop = asyncio.get_running_loop()
        self._held[visit] = loop.call_later(self._seconds[phase], visit.give_up)

    def leave(self, visit: VisitProtocol) -> None:
        if timer := self._held.pop(visit, None):
            timer.cancel()


class VisitProtocol(H11Protocol):
    """Uvicorn's protocol with the patience of `visits`; its own knows idle connections only."""

    def __init__(self, *arguments: Any, visits: Visits, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._visits = visits
        self._phase: Phase = "asking"

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._visits.enter(self, self._phase)

    def connection_lost(self, exc: Exception | None) -> None:
        self._visits.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._note_whole_request()

    def on_response_complete(self) -> None:
        self._phase = "asking"
        untaken = self.transport.get_write_buffer_size()
        self._visits.enter(self, "answering" if untaken else "asking")
        super().on_response_complete()  # which reads the next request, where it is there already
        self._note_whole_request()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._visits.leave(self)
        self._phase = "answering"  # by somebody else
        super().handle_websocket_upgrade(event)
        if not cast(WebSocketsSansIOProtocol, self.transport.get_protocol()).handshake_initiated:
            # It would wait for ever: what reads handshakes has other bounds than what reads HTTP.
            self._refuse(400, "This opening has too many or too long headers, or a body.\n")

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, msg)

    def give_up(self) -> None:
        """Its time is over, or its place is needed."""
        self._visits.leave(self)
        if self.transport.is_closing():  # and the peer does not take what is left to send
            self.transport.abort()
            return
        if self._phase == "asking" and self.conn.trailing_data[0]:
            self._refuse(408, "The request was not complete in time.\n")
            if not self.transport.get_write_buffer_size():
                return  # it is sent, and closed
        self.transport.abort()

    def _note_whole_request(self) -> None:
        cycle: RequestResponseCycle | None = self.cycle
        if self._phase == "answering" or cycle is None or cycle.response_complete:
            return
        if not cycle.more_body:
            self._phase = "answering"
            self._visits.enter(self, self._phase)

    def _refuse(self, status: int, text: str) -> None:
        """Uvicorn's own raises where an answer has begun, or lets the app begin a second one."""
        if self.cycle is not None:
            self.cycle.disconnected = True
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            headers = [("content-type", "text/plain; charset=utf-8"), ("connection", "close")]
            for event in (
                h11.Response(status_code=status, headers=headers, reason=STATUS_PHRASES[status]),
                h11.Data(data=text.encode()),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event))
        self.transport.close()
