"""What becomes of jobs and texts in the embedding engine: order, errors, cancels, pauses, input."""

from __future__ import annotations

import math

import pytest

from plait.engines.base import Prepare, Starved
from plait.errors import InvalidRequest, UnsupportedMethod
from plait.wire.frames import BinaryFlags
from tests.engines.embed.rig import LIMIT, EmbedRig

LONG = "w " * LIMIT


# --- answers -------------------------------------------------------------------------------------


def test_every_text_is_answered_in_order_with_its_own_vector() -> None:
    rig = EmbedRig()
    texts = [f"{n} " * (1 + n * 7 % 13) for n in range(300)]

    rig.open(1, *texts)
    rig.run()

    assert rig.indexes() == list(range(300))
    assert rig.rows()[40] == [math.fsum([1 + 280 % 13]), 40.0 * (1 + 280 % 13), 1.0]
    assert rig.usage() == {"texts": 300, "tokens": sum(len(t.split()) + 2 for t in texts)}
    assert rig.released()


def test_no_texts_are_done_at_once() -> None:
    rig = EmbedRig()

    rig.open(1)
    rig.run()

    assert rig.usage() == {"texts": 0, "tokens": 0}
    assert rig.items() == []


def test_empty_texts_have_the_vector_of_no_words_and_a_normal_batch_follows() -> None:
    rig = EmbedRig()

    rig.open(1, "", " ", "\n")
    rig.run()
    rig.open(2, "5 6")
    rig.run()

    assert rig.rows(1) == {0: [0, 0, 1], 1: [0, 0, 1], 2: [0, 0, 1]}
    assert rig.rows(2) == {0: [2, 11, 1]}


def test_a_text_too_long_is_an_error_in_its_place_and_ends_nothing_else() -> None:
    rig = EmbedRig()

    rig.open(1, *["7"] * 7, LONG, "8", "9")
    rig.run()

    assert rig.indexes() == list(range(10))
    assert sorted(rig.rows()) == [0, 1, 2, 3, 4, 5, 6, 8, 9]
    (answer,) = rig.json()
    assert (answer["index"], answer["error"]["code"]) == (7, "input_too_long")
    assert answer["error"]["data"] == {"index": 7, "tokens": LIMIT + 2, "limit": LIMIT}
    assert rig.usage() == {"texts": 10, "tokens": 9 * 3, "failed": 1}


def test_with_truncate_it_is_cut_and_flagged_and_only_what_was_read_is_counted() -> None:
    rig = EmbedRig()

    rig.open(1, "7", LONG, "8", truncate=True)
    rig.run()

    flags = [(item.aux, item.flags) for item in rig.items()]
    assert flags == [(0, 0), (1, BinaryFlags.TRUNCATED), (2, 0)]
    assert rig.usage() == {"texts": 3, "tokens": LIMIT + 6, "truncated": 1}


def test_texts_that_differ_beyond_the_limit_are_errors_and_with_truncate_flagged() -> None:
    rig = EmbedRig()
    texts = [" ".join(["5"] * 600 + [end] * 1400) for end in ("6", "7")]

    rig.open(1, *texts)
    rig.open(2, *texts, truncate=True)
    rig.run()

    assert [answer["error"]["data"]["tokens"] for answer in rig.json(1)] == [2002, 2002]
    assert {item.flags for item in rig.items(2)} == {BinaryFlags.TRUNCATED}
    assert rig.usage(2) == {"texts": 2, "tokens": 2 * LIMIT, "truncated": 2}


def test_json_items_carry_the_index_and_the_embedding() -> None:
    rig = EmbedRig()

    rig.open(1, "5 6", LONG, encoding="json", truncate=True)
    rig.run()

    assert rig.json() == [
        {"index": 0, "embedding": [2, 11, 1]},
        {"index": 1, "embedding": [18, 18, 1], "truncated": True},
    ]
    assert [(item.aux, item.flags) for item in rig.items()] == [(0, 0), (1, 4)]


def test_vectors_have_unit_length_unless_told_otherwise() -> None:
    rig = EmbedRig()

    rig.open(1, "2", normalize=True)
    rig.run()

    assert rig.rows()[0] == pytest.approx([1 / 6**0.5, 2 / 6**0.5, 1 / 6**0.5])


def test_a_vector_that_is_not_finite_is_that_texts_error_alone() -> None:
    rig = EmbedRig()

    rig.open(1, "5", "nan", "6")
    rig.run()

    assert sorted(rig.rows()) == [0, 2]
    (answer,) = rig.json()
    assert (answer["index"], answer["error"]["code"]) == (1, "generation_failed")
    assert rig.usage()["failed"] == 1


def test_a_text_that_cannot_be_encoded_is_an_error_in_its_place() -> None:
    rig = EmbedRig()

    rig.open(1, "5", "unreadable", "6", "unreadable " * 1000, "7")
    rig.run()

    assert sorted(rig.rows()) == [0, 2, 4]
    assert [answer["index"] for answer in rig.json()] == [1, 3]
    assert {answer["error"]["code"] for answer in rig.json()} == {"generation_failed"}


def test_a_batch_that_breaks_is_tried_text_by_text() -> None:
    rig = EmbedRig()

    rig.open(1, "5", "break", "6", "7")
    rig.open(2, "8")
    rig.run()

    assert sorted(rig.rows(1)) == [0, 2, 3]
    assert rig.rows(2) == {0: [1, 8, 1]}
    assert [answer["index"] for answer in rig.json(1)] == [1]


# --- batches -------------------------------------------------------------------------------------


def test_texts_of_one_length_share_batches_within_the_pace() -> None:
    rig = EmbedRig(tokens=128)

    rig.open(1, *["5 5 5", "6 " * 14] * 16)
    rig.run()

    assert all(len(batch) * max(map(len, batch)) <= 128 for batch in rig.model.batches)
    assert len(rig.model.batches) <= 6


def test_a_single_text_does_not_wait_for_another_jobs_thousands() -> None:
    rig = EmbedRig(tokens=32)
    rig.open(1, *["5 6"] * 2000)
    rig.step()
    rig.step()

    rig.open(2, "7 8")
    while not rig.released(2):
        rig.step()

    assert len(rig.indexes(1)) < 100


def test_jobs_take_turns_in_one_batch() -> None:
    rig = EmbedRig(tokens=64)

    rig.open(1, *["5"] * 100)
    rig.open(2, *["6"] * 100)
    rig.run()

    mixed = [batch for batch in rig.model.batches[2:-2] if {5, 6} <= {ids[1] for ids in batch}]
    assert len(mixed) >= len(rig.model.batches) - 6


def test_whatever_a_job_has_little_of_it_is_held() -> None:
    rig = EmbedRig()
    rig.open(1, *["5 6 7"] * 5000)

    held = [0]
    while not rig.engine.idle:
        rig.step()
        held.append(rig.engine.stats().kv_bytes)

    assert len(rig.indexes()) == 5000
    assert max(held) <= rig.engine.prepare(Prepare(2, "embed", {}, "test")).reserve_bytes
    assert max(held) < 10_000


# --- input that comes later ----------------------------------------------------------------------


def test_fed_texts_go_on_counting_and_are_consumed_as_they_are_answered() -> None:
    rig = EmbedRig()
    rig.open(1, fed=True)

    rig.feed(1, "5", "äöü")
    rig.run()
    rig.feed(1, "6")
    rig.engine.finish_input(1)
    rig.run()

    assert rig.indexes() == [0, 1, 2]
    assert rig.consumed() == 1 + 6 + 1 + 3 * 16
    assert rig.usage()["texts"] == 3


def test_a_job_without_texts_says_once_that_it_starves() -> None:
    rig = EmbedRig()
    rig.open(1, fed=True)

    rig.run()
    rig.run()
    rig.feed(1, "5")
    rig.run()

    assert rig.of(Starved) == [Starved(1), Starved(1)]


def test_a_job_never_starves_once_its_input_ended() -> None:
    rig = EmbedRig()
    rig.open(1, fed=True)
    rig.engine.finish_input(1)

    rig.run()

    assert rig.of(Starved) == []
    assert rig.usage()["texts"] == 0


def test_texts_fed_before_the_start_are_embedded() -> None:
    rig = EmbedRig()
    rig.prepare(1, fed=True)
    rig.feed(1, "5")
    rig.engine.finish_input(1)

    assert rig.engine.idle
    rig.engine.start(1)
    rig.run()

    assert rig.rows() == {0: [1, 5, 1]}


def test_more_texts_for_a_job_that_has_them_all_are_refused() -> None:
    rig = EmbedRig()
    rig.open(1, "5")

    with pytest.raises(InvalidRequest, match="complete"):
        rig.feed(1, "6")


def test_another_method_is_refused() -> None:
    with pytest.raises(UnsupportedMethod, match="does embed, not 'chat'"):
        EmbedRig().engine.prepare(Prepare(1, "chat", {}, "test"))


# --- pauses --------------------------------------------------------------------------------------


def test_a_paused_job_computes_and_sends_nothing_and_goes_on_where_it_was() -> None:
    rig = EmbedRig(tokens=32)
    rig.open(1, *["5"] * 200)
    while not rig.items():
        rig.step()

    rig.engine.pause(1)
    rig.run()
    sent, batches = len(rig.indexes()), len(rig.model.batches)
    assert rig.engine.idle
    assert rig.step() == []
    rig.engine.resume(1)
    rig.run()

    assert sent < 200
    assert batches < len(rig.model.batches)
    assert rig.indexes() == list(range(200))


def test_a_paused_job_holds_no_slot_and_nobody_up() -> None:
    rig = EmbedRig(slots=1)
    rig.open(1, *["5"] * 50)
    rig.engine.pause(1)

    rig.open(2, "6")
    rig.run()

    assert rig.released(2)
    assert rig.engine.stats().slots_used == 0


# --- cancels -------------------------------------------------------------------------------------


def test_a_cancel_of_a_job_outside_the_batch_is_released_at_once() -> None:
    rig = EmbedRig(tokens=16)
    rig.open(1, *["5 " * 12] * 10)
    rig.step()
    rig.step()
    rig.open(2, "6 " * 12)
    rig.thread.ready = False

    rig.cancel(2)
    rig.step()

    assert rig.released(2)
    assert rig.items(2) == []


def test_a_cancel_cuts_the_batch_short_and_the_others_texts_are_computed_again() -> None:
    rig = EmbedRig()
    rig.open(1, *["5"] * 4)
    rig.open(2, *["6"] * 4)
    rig.step()
    rig.step()
    rig.model.during = lambda: rig.flag(1)

    rig.step()
    rig.model.during = lambda: None
    rig.engine.cancel(1)
    rig.step()
    rig.run()

    assert rig.released(1)
    assert rig.items(1) == []
    assert rig.rows(2) == {index: [1, 6, 1] for index in range(4)}


def test_a_cancel_during_the_batch_releases_after_it_without_an_item_of_use() -> None:
    rig = EmbedRig()
    rig.open(1, *["5"] * 4)
    rig.step()
    rig.step()
    rig.thread.ready = False
    rig.step()

    rig.cancel(1)
    rig.thread.ready = True
    rig.run()

    assert rig.released()
    assert rig.model.batches == []
    assert rig.engine.stats().slots_used == 0


def test_texts_computed_after_the_cancel_are_told_as_such() -> None:
    rig = EmbedRig()
    rig.open(1, *["5"] * 4)
    rig.step()
    rig.step()

    rig.engine.cancel(1)
    rig.model.rearm()  # as if the batch had just ended when it was interrupted
    rig.run()

    assert sum(item.units for item in rig.items()) == 4
    assert rig.released()


def test_a_flag_that_comes_before_the_batch_keeps_it_from_beginning() -> None:
    rig = EmbedRig()
    rig.open(1, "5")
    rig.step()
    rig.flags.stamps[1] = 0.0

    rig.step()
    rig.engine.cancel(1)
    rig.run()

    assert rig.model.batches == []
    assert rig.released()


def test_an_interrupt_for_a_command_that_is_no_cancel_cuts_nothing() -> None:
    rig = EmbedRig()
    rig.open(1, "5")
    rig.step()
    rig.step()

    rig.engine.interrupt()
    rig.run()

    assert len(rig.model.batches) == 1


def test_cancels_of_prepared_and_unknown_jobs_hold_nothing_and_yield_nothing() -> None:
    rig = EmbedRig()
    rig.prepare(1, "5")

    rig.engine.cancel(1)
    rig.engine.cancel(1)
    rig.engine.cancel(99)

    assert rig.engine.idle
    assert rig.step() == []


def test_a_batch_that_never_ends_is_a_crash() -> None:
    rig = EmbedRig()
    rig.open(1, "5")
    rig.step()
    rig.step()
    rig.thread.ready = False

    rig.now += 61

    with pytest.raises(RuntimeError, match="under way"):
        rig.step()


def test_the_model_is_closed_with_the_engine() -> None:
    rig = EmbedRig()

    rig.engine.close()

    assert rig.model.closed


def test_what_the_engine_says_of_itself() -> None:
    info = EmbedRig().engine.info

    assert (info.methods, info.slots, info.context_tokens) == (["embed"], 8, LIMIT)
    assert info.format is not None
    assert (info.format.encoding, info.format.dims) == ("f32", 3)
