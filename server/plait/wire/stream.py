"""The life of one stream as the server lives it: every state times every input, in one table.

A stream is PENDING from its open, STREAMING from `started`, and then ends exactly once:

  COMPLETED  when `done` has been handed to the socket; until then a cancel still wins.
  CANCELLED  as soon as a stop is *decided*: the client's cancel was read, the deadline passed, the
             reader is too slow, the socket is lost, the server shuts down. From here no item may
             leave, a late completion or failure of the engine is illegal (drop it), and the
             terminal `cancelled` follows the release or its time limit.
  ERRORED    when the stream failed; its terminal is `error`.

What a client may have sent before our terminal reached it (ack, input, end, cancel) changes an
ended stream no more: it crossed on the wire. A CANCEL after the first decides nothing. Inputs the
table does not list are illegal and leave the state unchanged.
This module does NOT know ids, credit, half-close (see `connection`) nor who drives it.
"""

from __future__ import annotations

import enum


class StreamState(enum.Enum):
    PENDING = "pending"
    STREAMING = "streaming"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    ERRORED = "errored"

    @property
    def ended(self) -> bool:
        return self not in (StreamState.PENDING, StreamState.STREAMING)


class StreamInput(enum.Enum):
    """What can happen to a stream: the first five from the server's side, the rest from a client.

    CANCEL is every reason to stop, whoever has it.
    """

    ACCEPTED = "accepted"  # repeated while the queue moves
    STARTED = "started"
    ITEM = "item"
    DONE = "done"
    ERROR = "error"
    ACK = "ack"
    INPUT = "input"
    END = "end"
    CANCEL = "cancel"


S, I = StreamState, StreamInput  # noqa: E741 - the table is read in columns

TRANSITIONS: dict[tuple[StreamState, StreamInput], StreamState] = {
    (S.PENDING, I.ACCEPTED): S.PENDING,
    (S.PENDING, I.STARTED): S.STREAMING,
    (S.PENDING, I.ERROR): S.ERRORED,
    (S.PENDING, I.ACK): S.PENDING,  # of seq 0: a new window before the first item
    (S.PENDING, I.INPUT): S.PENDING,
    (S.PENDING, I.END): S.PENDING,
    (S.PENDING, I.CANCEL): S.CANCELLED,
    (S.STREAMING, I.ITEM): S.STREAMING,
    (S.STREAMING, I.DONE): S.COMPLETED,
    (S.STREAMING, I.ERROR): S.ERRORED,
    (S.STREAMING, I.ACK): S.STREAMING,
    (S.STREAMING, I.INPUT): S.STREAMING,
    (S.STREAMING, I.END): S.STREAMING,
    (S.STREAMING, I.CANCEL): S.CANCELLED,
    (S.COMPLETED, I.ACK): S.COMPLETED,
    (S.COMPLETED, I.INPUT): S.COMPLETED,
    (S.COMPLETED, I.END): S.COMPLETED,
    (S.COMPLETED, I.CANCEL): S.COMPLETED,
    (S.CANCELLED, I.ACK): S.CANCELLED,
    (S.CANCELLED, I.INPUT): S.CANCELLED,
    (S.CANCELLED, I.END): S.CANCELLED,
    (S.CANCELLED, I.CANCEL): S.CANCELLED,
    (S.ERRORED, I.ACK): S.ERRORED,
    (S.ERRORED, I.INPUT): S.ERRORED,
    (S.ERRORED, I.END): S.ERRORED,
    (S.ERRORED, I.CANCEL): S.ERRORED,
}


class IllegalTransition(Exception):
    """`input` is not legal in `state`; the state did not change."""

    def __init__(self, state: StreamState, input: StreamInput) -> None:
        super().__init__(f"{input.value} is not legal in state {state.value}")
        self.state = state
        self.input = input


class StreamMachine:
    """One stream's state; `process` is the only writer. `ended` is the state's, asked per item."""

    def __init__(self) -> None:
        self.ended = False
        self._state = StreamState.PENDING

    @property
    def state(self) -> StreamState:
        return self._state

    def allows(self, input: StreamInput) -> bool:
        return (self._state, input) in TRANSITIONS

    def process(self, input: StreamInput) -> StreamState:
        """Apply `input`; returns the new state. Raises IllegalTransition."""
        target = TRANSITIONS.get((self._state, input))
        if target is None:
            raise IllegalTransition(self._state, input)
        self._state = target
        self.ended = target.ended
        return target
