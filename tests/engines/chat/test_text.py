"""Whole characters, stop strings and endings, against naive readings of the same rules."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, strategies as st

from plait.engines.chat.text import AnswerText, Detokenizer, StopMatcher, Vocabulary

EOS, LETTER_A = 0, 1


def vocabulary(*pieces: bytes, skips_first_space: bool = False) -> Vocabulary:
    """Token 0 ends the turn; the others are the given pieces."""
    return Vocabulary([b"", *pieces], frozenset({EOS}), skips_first_space)


def spelled(text: str) -> tuple[Vocabulary, list[int]]:
    """A vocabulary of single bytes, and the ids that spell `text`."""
    return vocabulary(*[bytes([byte]) for byte in range(256)]), [b + 1 for b in text.encode()]


def cut_anywhere(text: str) -> st.SearchStrategy[list[str]]:
    borders = st.lists(st.integers(0, len(text)), max_size=6).map(sorted)
    return borders.map(lambda at: [text[a:b] for a, b in zip([0, *at], [*at, None], strict=True)])


# --- characters ----------------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=5), max_size=12))
def test_pieces_decode_as_the_whole_answer_would(pieces: list[bytes]) -> None:
    detokenizer = Detokenizer(vocabulary(*pieces))

    text = "".join(detokenizer.add(index + 1) for index in range(len(pieces)))
    text += detokenizer.finish(cut=False)

    assert text == b"".join(pieces).decode("utf-8", "replace")


@pytest.mark.parametrize("text", ["👩‍👩‍👧‍👦", "漢字。\n", "שלום", "e\u0301", "😀😀"])
def test_a_character_split_over_tokens_appears_whole(text: str) -> None:
    words, tokens = spelled(text)
    detokenizer = Detokenizer(words)

    shown = [part for token in tokens if (part := detokenizer.add(token))]

    assert shown == list(text)


def test_half_a_character_is_dropped_when_we_cut_and_shown_as_invalid_when_the_model_ends() -> None:
    words, tokens = spelled("漢")
    endings = []
    for cut in (True, False):
        detokenizer = Detokenizer(words)
        assert detokenizer.add(tokens[0]) == ""
        endings.append(detokenizer.finish(cut=cut))

    assert endings == ["", "\ufffd"]


def test_only_the_first_space_of_a_sentencepiece_answer_is_skipped() -> None:
    detokenizer = Detokenizer(vocabulary(b" yes", skips_first_space=True))

    assert [detokenizer.add(1), detokenizer.add(1)] == ["yes", " yes"]


def test_ids_outside_the_table_and_special_tokens_have_no_text() -> None:
    detokenizer = Detokenizer(vocabulary(b"a"))

    assert [detokenizer.add(token) for token in (EOS, 99, LETTER_A)] == ["", "", "a"]


# --- stop strings --------------------------------------------------------------------------------


def naive_stop(text: str, stops: list[str]) -> tuple[str, bool]:
    """The first position where any stop ends; of several ending there the longest."""
    for end in range(1, len(text) + 1):
        found = [stop for stop in stops if text[:end].endswith(stop)]
        if found:
            return text[: end - max(map(len, found))], True
    return text, False


def naive_held(text: str, stops: list[str]) -> str:
    """The longest end of `text` that is the beginning of a stop."""
    ends = (text[start:] for start in range(len(text) + 1))
    return next(end for end in ends if any(stop.startswith(end) for stop in stops))


@given(
    st.text("abc", max_size=30).flatmap(cut_anywhere),
    st.lists(st.text("abc", min_size=1, max_size=5), min_size=1, max_size=4),
)
def test_stops_cut_where_a_naive_search_would_whatever_the_token_borders(
    parts: list[str], stops: list[str]
) -> None:
    matcher = StopMatcher(stops)
    shown, stopped = "", False
    for part in parts:
        text, stopped = matcher.add(part)
        shown += text
        if stopped:
            break

    assert (shown + matcher.flush(), stopped) == naive_stop("".join(parts), stops)


@given(st.text("ab", max_size=20), st.lists(st.text("ab", min_size=3, max_size=6), min_size=1))
def test_exactly_a_true_prefix_of_a_stop_is_held_back(text: str, stops: list[str]) -> None:
    matcher = StopMatcher(stops)
    shown = ""
    for index, char in enumerate(text):
        part, stopped = matcher.add(char)
        if stopped:
            return
        shown += part
        seen = text[: index + 1]
        assert shown == seen.removesuffix(naive_held(seen, stops))


def test_a_stop_over_two_tokens_leaves_no_part_behind() -> None:
    matcher = StopMatcher(["beta gamma", "\n\n"])

    assert [matcher.add(part) for part in ("alpha be", "ta gam", "ma delta")] == [
        ("alpha ", False),
        ("", False),
        ("", True),
    ]


def test_long_stops_cost_neither_latency_nor_time() -> None:
    stops = [letter + "a" * 4000 + "!" for letter in "abcdefghijklmnop"]
    matcher = StopMatcher(stops)
    begin = time.process_time()

    shown = sum(len(matcher.add("a" * 4)[0]) for _ in range(2500))

    assert shown == 10_000 - 4001
    assert time.process_time() - begin < 5


# --- the answer ----------------------------------------------------------------------------------


def read(answer: AnswerText, tokens: list[int]) -> list[str]:
    deltas = []
    for token in tokens:
        deltas.append(answer.add(token))
        if answer.finish_reason:
            break
    return [json.loads(delta.data)["content"] for delta in deltas if delta]


def test_an_end_of_turn_token_stops_releases_what_was_held_and_is_not_shown() -> None:
    answer = AnswerText(vocabulary(b"a", b"b"), ["bx"], max_tokens=9)

    assert read(answer, [1, 2, EOS, 1]) == ["a", "b"]
    assert answer.finish_reason == "stop"
    assert not answer.stop_string
    assert answer.tokens == [1, 2]


def test_the_token_bound_ends_with_length_and_releases_what_was_held() -> None:
    answer = AnswerText(vocabulary(b"a", b"b"), ["bx"], max_tokens=2)

    assert read(answer, [1, 2, 1]) == ["a", "b"]
    assert answer.finish_reason == "length"


def test_a_stop_string_wins_over_the_bound_reached_by_the_same_token() -> None:
    answer = AnswerText(vocabulary(b"a", b"b"), ["b"], max_tokens=2)

    assert read(answer, [1, 2]) == ["a"]
    assert answer.finish_reason == "stop"
    assert answer.stop_string


def test_an_item_is_never_empty_and_counts_the_tokens_it_completes() -> None:
    words, tokens = spelled("漢x")
    answer = AnswerText(words, [], max_tokens=9)

    deltas = [answer.add(token) for token in tokens]

    assert [delta and delta.tokens for delta in deltas] == [None, None, 3, 1]


def test_logprobs_travel_with_the_item_that_shows_their_token() -> None:
    answer = AnswerText(vocabulary(b"a", b"b"), ["bx"], max_tokens=9)
    entry = {"token": "b", "logprob": -0.5, "top": []}

    held = answer.add(2, entry)
    shown = answer.add(1)

    assert held is None
    assert shown is not None
    assert json.loads(shown.data) == {"content": "ba", "logprobs": [entry]}


def test_an_end_by_the_engine_releases_what_was_held() -> None:
    answer = AnswerText(vocabulary(b"b"), ["bx"], max_tokens=9)
    answer.add(1)

    delta = answer.end("length")

    assert delta is not None
    assert json.loads(delta.data) == {"content": "b"}
    assert answer.finish_reason == "length"
