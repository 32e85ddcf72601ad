from __future__ import annotations

import threading

import pytest

from plait.engines.base import Cancel, Command, Ping, Start
from plait.engines.mailbox import Mailbox, MailboxOverflow


def test_commands_come_in_order_and_once() -> None:
    mailbox = Mailbox()
    for n in range(3):
        mailbox.put(Ping(n), 1)

    assert mailbox.take_all(wait=False) == [Ping(0), Ping(1), Ping(2)]
    assert mailbox.take_all(wait=False) == []


def test_a_cancel_flags_its_job_on_arrival_with_the_first_time() -> None:
    times = iter([5.0, 6.0])
    mailbox = Mailbox(clock=lambda: next(times))

    mailbox.put(Cancel(1, stamp=4.0), 1)
    mailbox.put(Cancel(1, stamp=4.5), 1)

    assert mailbox.stamp(1) == 5.0
    assert mailbox.stamp(2) is None
    assert mailbox.flagged == [1]


def test_a_flag_outlives_the_taking_of_its_cancel_until_forgotten() -> None:
    mailbox = Mailbox(clock=lambda: 5.0)
    mailbox.put(Cancel(1, 4.0), 1)
    mailbox.take_all(wait=False)
    assert mailbox.stamp(1) == 5.0

    mailbox.forget(1)

    assert mailbox.stamp(1) is None
    assert mailbox.flagged == []


def test_a_sleeping_taker_is_woken_by_a_command() -> None:
    mailbox = Mailbox()
    taken: list[Command] = []
    taker = threading.Thread(target=lambda: taken.extend(mailbox.take_all(wait=True)))
    taker.start()

    mailbox.put(Start(1), 1)
    taker.join(timeout=20)

    assert taken == [Start(1)]


def test_too_many_commands_are_fatal() -> None:
    mailbox = Mailbox(max_commands=2)
    mailbox.put(Ping(0), 1)
    mailbox.put(Ping(1), 1)

    with pytest.raises(MailboxOverflow, match="3 commands"):
        mailbox.put(Ping(2), 1)


def test_too_many_bytes_are_fatal_but_only_together() -> None:
    mailbox = Mailbox(max_backlog_bytes=10)
    mailbox.put(Ping(0), 10)
    mailbox.take_all(wait=False)
    mailbox.put(Ping(1), 10)

    with pytest.raises(MailboxOverflow, match="11 bytes"):
        mailbox.put(Ping(2), 1)
