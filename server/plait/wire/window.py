"""Credit arithmetic (PROTOCOL.md §5): how much may still be sent, in items down, in bytes up.

`Credit` counts the items of one stream towards the client: a seq may leave while it is at most
the granted limit, and the limit never moves down. `InputCredit` counts the payload bytes a client
uploads. Both are numbers only. This module does NOT know clocks (who times a slow reader out) nor
queues (who pauses an engine).
"""

from __future__ import annotations

from plait.errors import InputOverflow, InvalidRequest


class Credit:
    """Absolute credit for items: seqs `1..limit` may be sent.

    `window` 0 (only at open) means that an item counts as consumed once it is sent. `last_sent` is
    the terminal's `seq`, `consumed` the highest one that the peer has acknowledged; to be read.
    """

    def __init__(self, window: int) -> None:
        assert window >= 0
        self.window = window
        self.last_sent = 0
        self.consumed = 0
        self._limit = window

    @property
    def outstanding(self) -> int:
        """Items sent and not acknowledged."""
        return self.last_sent - self.consumed

    @property
    def can_send(self) -> bool:
        return self.last_sent < self._limit or self.window == 0

    def sent(self) -> int:
        """Account for one item leaving; returns its seq. Legal only while `can_send`."""
        assert self.can_send, "an item left without credit"
        self.last_sent += 1
        if self.window == 0:
            self.consumed = self.last_sent
        return self.last_sent

    def receive_ack(self, seq: int, window: int | None = None) -> bool:
        """The peer consumed through `seq`. Returns whether that gave progress or more credit.

        Lower seqs than an earlier one are ignored with their window, a smaller window retracts
        nothing. Raises InvalidRequest (param `seq`), changing nothing, beyond the last seq sent.
        """
        if seq > self.last_sent:
            raise InvalidRequest(
                f"seq: ack of {seq}, but the last item sent was {self.last_sent}. Acknowledge"
                " only what has arrived.",
                param="seq",
            )
        if self.window == 0 or seq < self.consumed:
            return False
        progress = seq > self.consumed
        self.consumed = seq
        if window is not None:
            self.window = window
        granted = seq + self.window
        if granted > self._limit:
            self._limit = granted
            return True
        return progress


class InputCredit:
    """Absolute credit for uploads: `window_bytes` beyond what the last `input_ack` confirmed."""

    def __init__(self, window_bytes: int) -> None:
        assert window_bytes > 0
        self.window_bytes = window_bytes
        self._received = 0
        self._consumed = 0
        self._acked = 0

    @property
    def received_bytes(self) -> int:
        return self._received

    @property
    def pending_bytes(self) -> int:
        """Received and not consumed: what has to be held."""
        return self._received - self._consumed

    def receive(self, size_bytes: int) -> None:
        """Account for input arriving. Raises InputOverflow, changing nothing, beyond the credit."""
        credit_bytes = self._acked + self.window_bytes - self._received
        if size_bytes > credit_bytes:
            raise InputOverflow(
                f"input of {size_bytes} bytes with {credit_bytes} bytes of credit left. Wait for"
                f" input_ack: at most window_bytes ({self.window_bytes}) may be unconfirmed.",
                data={"received_bytes": size_bytes, "credit_bytes": credit_bytes},
            )
        self._received += size_bytes

    def consume(self, size_bytes: int) -> int | None:
        """Account for input taken by the engine.

        Returns the cumulative bytes to put into an `input_ack` when one is due, that is once a
        quarter of the window, or all that was received, is consumed and unconfirmed; else None.
        """
        assert 0 <= size_bytes <= self.pending_bytes
        self._consumed += size_bytes
        unconfirmed = self._consumed - self._acked
        if unconfirmed == 0 or (unconfirmed * 4 < self.window_bytes and self.pending_bytes > 0):
            return None
        self._acked = self._consumed
        return self._acked
