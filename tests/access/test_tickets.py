"""Tickets: once, within their time, so many per app, and a store that never grows."""

from __future__ import annotations

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from plait.access.keyring import Grant
from plait.access.tickets import MAX_OPEN_PER_APP, TICKET_SECONDS, Tickets, TooManyTickets

NOTES = Grant(b"n" * 32, "notes")
OTHER = Grant(b"o" * 32, "other")


def test_a_ticket_opens_once() -> None:
    tickets = Tickets()
    ticket = tickets.issue(NOTES, 0.0).encode()
    assert tickets.redeem(ticket, 1.0) is NOTES
    assert tickets.redeem(ticket, 1.0) is None


def test_a_ticket_opens_within_its_time_only() -> None:
    tickets = Tickets()
    early, late = (tickets.issue(NOTES, 0.0).encode() for _ in range(2))
    assert tickets.redeem(early, TICKET_SECONDS - 0.001) is NOTES
    assert tickets.redeem(late, TICKET_SECONDS) is None
    assert len(tickets) == 0


def test_one_apps_tickets_do_not_keep_another_from_getting_one() -> None:
    tickets = Tickets()
    for _ in range(MAX_OPEN_PER_APP):
        tickets.issue(NOTES, 0.0)
    with pytest.raises(TooManyTickets):
        tickets.issue(NOTES, 1.0)
    assert tickets.redeem(tickets.issue(OTHER, 1.0).encode(), 1.0) is OTHER
    tickets.issue(NOTES, TICKET_SECONDS)


def test_what_was_made_up_opens_nothing() -> None:
    tickets = Tickets()
    tickets.issue(NOTES, 0.0)
    assert tickets.redeem(b"", 0.0) is None
    assert tickets.redeem(b"plait_once_made-up", 0.0) is None


class TicketStore(RuleBasedStateMachine):
    """Against a model that keeps every ticket ever issued with its grant and its end."""

    issued = Bundle("issued")

    def __init__(self) -> None:
        super().__init__()
        self.tickets = Tickets()
        self.now = 0.0
        self.good: dict[bytes, tuple[Grant, float]] = {}

    def open_of(self, grant: Grant) -> int:
        return sum(kept is grant for kept, until in self.good.values() if until > self.now)

    @rule(target=issued, grant=st.sampled_from([NOTES, OTHER]))
    def issue(self, grant: Grant) -> bytes:
        try:
            ticket = self.tickets.issue(grant, self.now).encode()
        except TooManyTickets:
            assert self.open_of(grant) >= MAX_OPEN_PER_APP
            return b""
        self.good[ticket] = (grant, self.now + TICKET_SECONDS)
        return ticket

    @rule(grant=st.sampled_from([NOTES, OTHER]), count=st.integers(1, MAX_OPEN_PER_APP))
    def flood(self, grant: Grant, count: int) -> None:
        for _ in range(count):
            self.issue(grant)

    @rule(seconds=st.floats(0, 2 * TICKET_SECONDS))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(ticket=issued)
    def redeem(self, ticket: bytes) -> None:
        grant, until = self.good.pop(ticket, (None, 0.0))
        assert self.tickets.redeem(ticket, self.now) is (grant if until > self.now else None)

    @rule(ticket=consumes(issued), cut=st.integers(0, 60), more=st.binary(max_size=3))
    def make_up(self, ticket: bytes, cut: int, more: bytes) -> None:
        guess = ticket[:cut] + more
        if guess not in self.good:
            assert self.tickets.redeem(guess, self.now) is None

    @invariant()
    def never_more_than_the_bound(self) -> None:
        assert len(self.tickets) <= 2 * MAX_OPEN_PER_APP


TicketStore.TestCase.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
TestTicketStore = TicketStore.TestCase
