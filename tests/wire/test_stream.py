"""The transition table, cell by cell and as sequences."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from plait.wire.stream import (
    TRANSITIONS,
    IllegalTransition,
    StreamInput,
    StreamMachine,
    StreamState,
)

TERMINAL = {StreamInput.DONE, StreamInput.ERROR}
FROM_CLIENT = {StreamInput.ACK, StreamInput.INPUT, StreamInput.END, StreamInput.CANCEL}
ENDED = [state for state in StreamState if state.ended]


def machine_in(state: StreamState) -> StreamMachine:
    machine = StreamMachine()
    path = {
        StreamState.PENDING: [],
        StreamState.STREAMING: [StreamInput.STARTED],
        StreamState.COMPLETED: [StreamInput.STARTED, StreamInput.DONE],
        StreamState.CANCELLED: [StreamInput.CANCEL],
        StreamState.ERRORED: [StreamInput.ERROR],
    }[state]
    for step in path:
        machine.process(step)
    assert machine.state is state
    return machine


@pytest.mark.parametrize("input", StreamInput)
@pytest.mark.parametrize("state", StreamState)
def test_every_input_in_every_state_follows_the_table_or_changes_nothing(
    state: StreamState, input: StreamInput
) -> None:
    machine = machine_in(state)
    expected = TRANSITIONS.get((state, input))
    assert machine.allows(input) is (expected is not None)
    if expected is None:
        with pytest.raises(IllegalTransition, match=state.value):
            machine.process(input)
        assert machine.state is state
    else:
        assert machine.process(input) is machine.state is expected


@pytest.mark.parametrize("state", StreamState)
def test_nothing_a_client_sends_is_ever_illegal(state: StreamState) -> None:
    assert all(machine_in(state).allows(input) for input in FROM_CLIENT)


@pytest.mark.parametrize("state", ENDED)
def test_an_ended_stream_never_changes(state: StreamState) -> None:
    targets = {target for (source, _), target in TRANSITIONS.items() if source is state}
    assert targets == {state}


def test_an_item_needs_started_first() -> None:
    assert not StreamMachine().allows(StreamInput.ITEM)


@given(st.lists(st.sampled_from(StreamInput)))
def test_a_stream_ends_at_most_once_whatever_happens(inputs: list[StreamInput]) -> None:
    machine = StreamMachine()
    endings = 0
    for input in inputs:
        before = machine.state
        if machine.allows(input):
            machine.process(input)
        endings += machine.state.ended and not before.ended
    assert endings <= 1


@given(st.lists(st.sampled_from(StreamInput)))
def test_after_a_cancel_neither_items_nor_another_ending_are_legal(
    inputs: list[StreamInput],
) -> None:
    machine = machine_in(StreamState.CANCELLED)
    for input in inputs:
        if input in TERMINAL | {StreamInput.ITEM, StreamInput.STARTED}:
            assert not machine.allows(input)
        else:
            assert input is StreamInput.ACCEPTED or machine.process(input) is machine.state
    assert machine.state is StreamState.CANCELLED
