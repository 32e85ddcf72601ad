"""The send queue: order, fairness by bytes, rank, credit and purging. No loop needed."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings, strategies as st

from plait.engines.base import Item
from plait.sessions.outbox import (
    AUDIO,
    MAX_CONTROL_FRAMES,
    MAX_JOINED_BYTES,
    TEXT,
    VECTORS,
    Outbox,
    StreamQueue,
)
from plait.sessions.session import RANK
from plait.wire.window import Credit


class Signals:
    """Counts what the outbox calls out."""

    def __init__(self) -> None:
        self.ready = 0
        self.overflows = 0

    def on_ready(self) -> None:
        self.ready += 1

    def on_overflow(self) -> None:
        self.overflows += 1


def outbox() -> tuple[Outbox, Signals]:
    signals = Signals()
    return Outbox(signals.on_ready, signals.on_overflow), signals


def queue(id: int, window: int = 64, rank: int = TEXT) -> StreamQueue:
    return StreamQueue(id, Credit(window), rank, max_bytes=1 << 20)


def text(size: int = 8) -> Item:
    return Item(0, b'"%s"' % (b"x" * size))


def taken_ids(box: Outbox) -> list[int]:
    ids = []
    while (taken := box.take_nowait()) is not None:
        assert taken[1] is not None
        ids.append(taken[1].id)
    return ids


def test_control_frames_jump_ahead_of_items() -> None:
    box, _ = outbox()
    box.send_item(queue(1), text())
    box.send_control("control")
    assert box.take_nowait() == ("control", None)


def test_items_get_their_seq_on_leaving_and_keep_their_order() -> None:
    box, _ = outbox()
    stream = queue(1)
    for _ in range(3):
        box.send_item(stream, text())
    frames = [box.take_nowait() for _ in range(3)]
    assert [msgspec.json.decode(f[0])["seq"] for f in frames if f] == [1, 2, 3]


def test_what_is_heard_waits_for_one_frame_of_audio_at_most() -> None:
    box, _ = outbox()
    speech, listening = (queue(i, rank=RANK[m]) for i, m in ((1, "synthesize"), (2, "transcribe")))
    for _ in range(20):
        box.send_item(speech, Item(0, bytes(16_000), kind=1))
    box.take_nowait()

    box.send_item(listening, text())

    assert listening.id in taken_ids(box)[:2]


def test_streams_of_one_rank_take_turns() -> None:
    box, _ = outbox()
    one, two = queue(1), queue(2)
    for _ in range(3):
        box.send_item(one, text())
    for _ in range(3):
        box.send_item(two, text())
    assert taken_ids(box) == [1, 2, 1, 2, 1, 2]


def test_turns_are_fair_by_bytes_not_by_frames() -> None:
    box, _ = outbox()
    big, small = queue(1), queue(2)
    for _ in range(4):
        box.send_item(big, text(1000))
        box.send_item(small, text(10))
    assert taken_ids(box) == [1, 2, 2, 2, 2, 1, 1, 1]


def test_a_stream_that_was_silent_gets_no_credit_for_it() -> None:
    box, _ = outbox()
    busy, late = queue(1), queue(2)
    for _ in range(50):
        box.send_item(busy, text())
        box.take_nowait()
    for _ in range(3):
        box.send_item(late, text())
        box.send_item(busy, text())
    assert sorted(taken_ids(box)[:2]) == [1, 2]


def test_audio_goes_before_text_and_text_before_vectors() -> None:
    box, _ = outbox()
    box.send_item(queue(1, rank=VECTORS), text())
    box.send_item(queue(2, rank=TEXT), text())
    box.send_item(queue(3, rank=AUDIO), Item(0, b"\0\0", kind=1))
    assert taken_ids(box) == [3, 2, 1]


def test_a_stream_without_credit_lets_others_pass_and_goes_on_when_acked() -> None:
    box, _ = outbox()
    stuck, free = queue(1, window=1), queue(2)
    for _ in range(2):
        box.send_item(stuck, text())
        box.send_item(free, text())
    assert taken_ids(box) == [1, 2, 2]
    stuck.credit.receive_ack(1, None)
    box.wake(stuck)
    assert taken_ids(box) == [1]


def test_a_purged_stream_sends_nothing_more() -> None:
    box, _ = outbox()
    stream = queue(1)
    box.send_item(stream, text())
    box.close(stream)
    assert box.take_nowait() is None
    assert box.empty


def test_the_final_frame_follows_the_last_item_and_is_built_on_leaving() -> None:
    box, _ = outbox()
    stream = queue(1)
    box.send_item(stream, text())
    stream.take_final = lambda: f"final after {stream.seq}"
    assert box.take_nowait() is not None
    assert box.take_nowait() == ("final after 1", stream)
    assert box.take_nowait() is None


def test_too_many_unread_control_frames_are_an_overflow_not_a_growing_queue() -> None:
    box, signals = outbox()
    for _ in range(MAX_CONTROL_FRAMES + 1):
        box.send_control("pong")
    assert signals.overflows == 1


def revision(number: int, text: bytes) -> Item:
    return Item(0, b'"%s"' % text, revises=number)


def taken_texts(box: Outbox) -> list[str]:
    texts = []
    while (taken := box.take_nowait()) is not None:
        texts.append(msgspec.json.decode(taken[0])["data"])
    return texts


def test_a_revision_takes_the_place_of_the_one_that_waits() -> None:
    box, _ = outbox()
    stream = queue(1)
    for item in (revision(1, b"hel"), text(1), revision(1, b"hello"), revision(2, b"so")):
        box.send_item(stream, item)
    assert (len(stream.items), stream.queued_bytes) == (3, 7 + 3 + 4)
    assert taken_texts(box) == ["hello", "x", "so"]
    assert (stream.seq, stream.queued_bytes) == (3, 0)


def test_a_revision_of_what_has_left_is_an_item_of_its_own() -> None:
    box, _ = outbox()
    stream = queue(1)
    box.send_item(stream, revision(1, b"hel"))
    assert taken_texts(box) == ["hel"]
    box.send_item(stream, revision(1, b"hello"))
    assert taken_texts(box) == ["hello"]
    assert stream.seq == 2


def test_streams_do_not_revise_each_other_and_plain_items_nothing() -> None:
    box, _ = outbox()
    one, two = queue(1), queue(2)
    for stream in (one, two):
        box.send_item(stream, revision(1, b"a"))
        box.send_item(stream, text())
        box.send_item(stream, text())
    assert taken_ids(box) == [1, 2, 1, 2, 1, 2]


def test_a_purge_forgets_what_could_be_revised() -> None:
    box, _ = outbox()
    stream = queue(1)
    box.send_item(stream, revision(1, b"a"))
    box.close(stream)
    assert (len(stream.items), stream.revisable, stream.queued_bytes) == (0, {}, 0)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(["revise", "final", "plain", "take", "ack"]), max_size=60))
def test_a_slow_reader_gets_every_final_once_and_the_newest_of_what_waits(
    steps: list[str],
) -> None:
    box, _ = outbox()
    stream = queue(1, window=2)
    index = newest = 0
    waiting: list[tuple[int, int]] = []  # what must wait, as (segment, revision)
    for step in steps:
        if step in ("revise", "final"):
            newest += 1
            box.send_item(stream, Item(0, b'"%d %d"' % (index, newest), revises=index + 1))
            waiting = [w for w in waiting if w[0] != index] + [(index, newest)]
            index += step == "final"
        elif step == "plain":
            box.send_item(stream, text(3))
        elif step == "ack":
            stream.credit.receive_ack(stream.seq)
            box.wake(stream)
        elif (taken := box.take_nowait()) is not None:
            data = msgspec.json.decode(taken[0])["data"]
            if data != "xxx":
                assert waiting.pop(0) == tuple(map(int, data.split()))
        assert [item.data for item in stream.items if item.revises] == [
            b'"%d %d"' % pair for pair in waiting
        ]
        assert stream.queued_bytes == sum(len(item.data) for item in stream.items)
        assert len(stream.revisable) == len(waiting)


def chat(id: int = 1, window: int = 64) -> StreamQueue:
    return StreamQueue(id, Credit(window), TEXT, max_bytes=1 << 20, joins=True)


def said(content: str, **more: Any) -> Item:
    return Item(0, msgspec.json.encode({"content": content} | more))


def taken_items(box: Outbox) -> list[dict[str, Any]]:
    items = []
    while (taken := box.take_nowait()) is not None:
        items.append(msgspec.json.decode(taken[0]))
    return items


def test_texts_keep_to_themselves_while_the_socket_takes_them() -> None:
    box, _ = outbox()
    stream = chat()
    for word in "abc":
        box.send_item(stream, said(word))
    assert [item["data"]["content"] for item in taken_items(box)] == ["a", "b", "c"]


def test_texts_that_wait_for_the_socket_leave_as_one_item() -> None:
    box, _ = outbox()
    stream = chat()
    for word in "abc":
        box.send_item(stream, said(word))
    box.lagging = True
    (item,) = taken_items(box)
    assert (item["seq"], item["data"]) == (1, {"content": "abc"})
    assert (stream.seq, stream.outstanding, stream.queued_bytes) == (1, 1, 0)
    assert not box.lagging


def test_texts_that_wait_for_credit_only_stay_as_they_are() -> None:
    box, _ = outbox()
    stream = chat(window=1)
    for word in "abc":
        box.send_item(stream, said(word))
    taken_items(box)
    stream.credit.receive_ack(1, window=8)
    box.wake(stream)
    assert [item["data"]["content"] for item in taken_items(box)] == ["b", "c"]


def test_calls_of_tools_stand_between_texts_and_are_not_joined() -> None:
    box, _ = outbox()
    stream = chat()
    for item in (said("a"), said("b"), said("c", tool_calls=[]), said("d"), said("e")):
        box.send_item(stream, item)
    box.lagging = True
    assert [item["data"]["content"] for item in taken_items(box)] == ["ab", "c", "de"]


def test_other_methods_are_not_joined() -> None:
    box, _ = outbox()
    stream = queue(1)
    for word in "ab":
        box.send_item(stream, said(word))
    box.lagging = True
    assert [item["data"]["content"] for item in taken_items(box)] == ["a", "b"]


@given(st.lists(st.integers(0, 3000), max_size=20))
def test_joined_items_are_bounded_and_lose_nothing(sizes: list[int]) -> None:
    box, _ = outbox()
    stream = chat()
    for size in sizes:
        box.send_item(stream, said("x" * size))
    box.lagging = True
    contents = [item["data"]["content"] for item in taken_items(box)]
    assert sum(map(len, contents)) == sum(sizes)
    assert all(len(content) <= MAX_JOINED_BYTES for content in contents)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(1, 4),
    st.lists(st.sampled_from(["text", "call", "take", "stall", "ack"]), max_size=60),
)
def test_a_lagging_reader_gets_every_text_in_order_within_its_credit(
    window: int, steps: list[str]
) -> None:
    box, _ = outbox()
    stream = chat(window=window)
    sent, heard, seqs = [], [], []
    for number, step in enumerate([*steps, *["ack", "take"] * 60]):
        if step in ("text", "call"):
            sent.append(f"{number} ")
            box.send_item(stream, said(sent[-1], **({"tool_calls": []} if step == "call" else {})))
        elif step == "stall":
            box.lagging = True
        elif step == "ack":
            stream.credit.receive_ack(stream.seq)
            box.wake(stream)
        elif (taken := box.take_nowait()) is not None:
            item = msgspec.json.decode(taken[0])
            seqs.append(item["seq"])
            heard.append(item["data"]["content"])
        assert stream.credit.outstanding <= window
        assert stream.queued_bytes == sum(len(item.data) for item in stream.items)
    assert "".join(heard) == "".join(sent)
    assert seqs == list(range(1, len(seqs) + 1))
