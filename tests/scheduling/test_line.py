"""The waiting line by itself."""

from __future__ import annotations

from plait.scheduling.admission import Capacity
from plait.scheduling.line import MAX_TURNS, Line
from plait.scheduling.ticket import Ticket, TicketState
from tests.scheduling.test_pauses import Listener


def join(line: Line, job: int, owner: str) -> Ticket:
    ticket = Ticket(job, owner, False, Listener(), None, 0.0)
    line.enqueue(ticket, TicketState.QUEUED, 0.0)
    return ticket


def order_after(turns: int) -> list[int]:
    """Of a stream of who had the first of so many turns, and one of who had none."""
    line = Line(60.0, 64)
    for turn in range(turns):
        line.grant(join(line, turn, f"owner {turn}"))
    join(line, turns, "owner 0")
    join(line, turns + 1, "nobody yet")
    return [job - turns for job in line.decide(Capacity(2, 0), 0.0).start]


def test_only_so_many_turns_are_remembered_and_the_oldest_is_forgotten_first() -> None:
    assert order_after(MAX_TURNS) == [1, 0]
    assert order_after(MAX_TURNS + 1) == [0, 1]
