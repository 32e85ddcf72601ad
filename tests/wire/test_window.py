"""Credit down and up: the arithmetic under any order of sends, acks and consumption."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from plait.errors import InputOverflow, InvalidRequest
from plait.wire.messages import MAX_WINDOW
from plait.wire.window import Credit, InputCredit

Step = tuple[str, int, int | None]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(1, 300), st.none()),
        st.tuples(st.just("ack"), st.integers(0, 600), st.none() | st.integers(1, MAX_WINDOW)),
    ),
    max_size=60,
)


def send_all(credit: Credit, at_most: int) -> None:
    for _ in range(at_most):
        if not credit.can_send:
            return
        credit.sent()


@given(st.integers(1, MAX_WINDOW), STEPS)
def test_never_more_than_the_largest_window_is_outstanding(window: int, steps: list[Step]) -> None:
    credit, largest = Credit(window), window
    for kind, number, new_window in steps:
        if kind == "send":
            send_all(credit, number)
        elif number <= credit.last_sent:
            credit.receive_ack(number, new_window)
            largest = max(largest, new_window or 0)
        assert 0 <= credit.outstanding <= largest
        assert credit.consumed + credit.outstanding == credit.last_sent


@given(st.integers(0, MAX_WINDOW), STEPS)
def test_credit_never_shrinks_and_false_means_nothing_changed(
    window: int, steps: list[Step]
) -> None:
    credit = Credit(window)
    for kind, number, new_window in steps:
        could_send, consumed = credit.can_send, credit.consumed
        if kind == "send":
            send_all(credit, number)
        elif number <= credit.last_sent:
            progress = credit.receive_ack(number, new_window)
            assert credit.can_send or not could_send
            assert credit.consumed >= consumed
            assert progress or (credit.can_send, credit.consumed) == (could_send, consumed)


@given(st.integers(0, MAX_WINDOW), st.integers(0, 300), st.integers(1, 2**32))
def test_an_ack_of_what_was_not_sent_names_seq_and_changes_nothing(
    window: int, sends: int, beyond: int
) -> None:
    credit = Credit(window)
    send_all(credit, sends)
    before = (credit.last_sent, credit.consumed, credit.can_send)
    with pytest.raises(InvalidRequest) as caught:
        credit.receive_ack(credit.last_sent + beyond, MAX_WINDOW)
    assert caught.value.param == "seq"
    assert (credit.last_sent, credit.consumed, credit.can_send) == before


@given(st.integers(1, MAX_WINDOW), st.integers(0, MAX_WINDOW), STEPS)
def test_a_stuck_stream_moves_on_with_the_ack_of_its_last_item(
    window: int, new_window: int, steps: list[Step]
) -> None:
    credit = Credit(window)
    for kind, number, changed in steps:
        if kind == "send":
            send_all(credit, number)
        elif number <= credit.last_sent:
            credit.receive_ack(number, changed)
    send_all(credit, MAX_WINDOW)
    credit.receive_ack(credit.last_sent, new_window or None)
    assert credit.can_send
    assert credit.outstanding == 0


def test_window_zero_always_sends_and_holds_nothing_outstanding() -> None:
    credit = Credit(0)
    assert [credit.sent() for _ in range(3)] == [1, 2, 3]
    assert credit.can_send
    assert credit.outstanding == 0


def test_input_up_to_the_window_passes_and_one_byte_more_overflows() -> None:
    credit = InputCredit(100)
    credit.receive(100)
    with pytest.raises(InputOverflow) as caught:
        credit.receive(1)
    assert caught.value.data == {"received_bytes": 1, "credit_bytes": 0}
    assert credit.received_bytes == 100


def test_confirmed_input_gives_credit_again() -> None:
    credit = InputCredit(100)
    credit.receive(100)
    assert credit.consume(40) == 40
    credit.receive(40)
    with pytest.raises(InputOverflow):
        credit.receive(1)


def test_small_consumption_is_confirmed_a_quarter_window_at_a_time() -> None:
    credit = InputCredit(100)
    credit.receive(100)
    acks = [credit.consume(10) for _ in range(6)]
    assert acks == [None, None, 30, None, None, 60]


def test_all_consumed_is_confirmed_at_once() -> None:
    credit = InputCredit(100)
    credit.receive(1)
    assert credit.consume(1) == 1
    assert credit.consume(0) is None


@given(st.integers(1, 1000), st.lists(st.tuples(st.integers(0, 400), st.integers(0, 400))))
def test_held_input_never_exceeds_the_window_and_a_waiting_sender_gets_credit(
    window: int, steps: list[tuple[int, int]]
) -> None:
    credit, acked = InputCredit(window), 0
    for arriving, consuming in steps:
        credit.receive(min(arriving, acked + window - credit.received_bytes))
        acked = credit.consume(min(consuming, credit.pending_bytes)) or acked
        assert credit.pending_bytes <= window
    acked = credit.consume(credit.pending_bytes) or acked
    assert acked == credit.received_bytes
