"""Tickets: a token's rights for one connection, within seconds, so that a page needs no token.

In memory only, bounded per app, single use; a ticket is kept as its hash, like a token. It stands
for its token and no longer than that: who redeems it asks the keyring again.
Pure: time is passed in, in seconds of a monotonic clock. Does NOT know: HTTP, connections.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from plait.access.keyring import Grant
from plait.access.tokens import digest, new_ticket

TICKET_SECONDS: Final = 30
MAX_OPEN_PER_APP: Final = 256  # one app's tickets never keep another's from being given


class TooManyTickets(Exception):
    """An app has as many open as it may have; each goes within `TICKET_SECONDS`."""


@dataclass(frozen=True, slots=True)
class _Ticket:
    grant: Grant
    until: float


class Tickets:
    def __init__(self) -> None:
        # By digest: what timing tells of a hash of 256 random bits helps nobody. In order of issue
        # and, as all live equally long, of expiry.
        self._tickets: dict[bytes, _Ticket] = {}
        self._open: Counter[str | None] = Counter()

    def __len__(self) -> int:
        return len(self._tickets)

    def issue(self, grant: Grant, now: float) -> str:
        """Raises TooManyTickets."""
        self._drop_expired(now)
        if self._open[grant.app] >= MAX_OPEN_PER_APP:
            raise TooManyTickets
        ticket = new_ticket()
        self._tickets[digest(ticket.encode())] = _Ticket(grant, now + TICKET_SECONDS)
        self._open[grant.app] += 1
        return ticket

    def redeem(self, shown: bytes, now: float) -> Grant | None:
        """The grant it was issued for, once; None when it is none, was used, or is too old."""
        self._drop_expired(now)
        return self._take(digest(shown))

    def _drop_expired(self, now: float) -> None:
        while self._tickets:
            oldest = next(iter(self._tickets))
            if self._tickets[oldest].until > now:
                return
            self._take(oldest)

    def _take(self, key: bytes) -> Grant | None:
        ticket = self._tickets.pop(key, None)
        if ticket is None:
            return None
        app = ticket.grant.app
        self._open[app] -= 1
        if not self._open[app]:
            del self._open[app]
        return ticket.grant
