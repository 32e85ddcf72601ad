"""From marks to what a listener heard, by values only."""

from __future__ import annotations

import msgspec
from hypothesis import given, strategies as st

from plait.sessions import spoken
from plait.sessions.spoken import Spoken


def mark(text: str, start: float, end: float, *words: tuple[str, float]) -> bytes:
    timed = [{"text": word, "start": 0.0, "end": at} for word, at in words]
    return msgspec.json.encode({"mark": {"text": text, "start": start, "end": end, "words": timed}})


def test_a_passage_that_is_over_is_heard_with_its_punctuation() -> None:
    book = Spoken()
    book.add(mark("Hi, you! ", 0, 1.4, ("Hi", 0.5), ("you", 1.1)))
    book.add(mark("Bye.", 1.4, 2.0, ("Bye", 1.9)))
    assert [book.until(ms) for ms in (499, 500, 1399, 1400, 1899, 1900, 2000)] == [
        "",
        "Hi",
        "Hi, you",
        "Hi, you! ",
        "Hi, you! ",
        "Hi, you! Bye",
        "Hi, you! Bye.",
    ]


def test_equal_words_are_found_one_after_the_other() -> None:
    book = Spoken()
    book.add(mark("no no no", 0, 3, ("no", 1), ("no", 2), ("no", 3)))
    assert [book.until(ms) for ms in (1000, 2000)] == ["no", "no no"]


def test_a_word_that_is_not_in_the_text_as_written_breaks_nothing() -> None:
    book = Spoken()
    book.add(mark("a $5 b", 0, 3, ("a", 1), ("five", 2), ("b", 2.5)))
    assert book.until(2500) == "a $5 b"


def test_a_mark_without_words_is_heard_whole_or_not() -> None:
    book = Spoken()
    book.add(mark("Hm. ", 0, 1))
    assert [book.until(999), book.until(1000)] == ["", "Hm. "]


def test_seconds_rounded_on_their_way_are_the_same_moment() -> None:
    book = Spoken()
    book.add(mark("a", 0, 1.1, ("a", 1.1)))
    assert book.until(1100) == "a"


def test_of_a_very_long_stream_the_beginning_is_forgotten() -> None:
    book = Spoken()
    passage = "x" * (spoken.MAX_CHARACTERS // 4)
    for i in range(6):
        book.add(mark(f"{i}{passage}", i, i + 1))
    heard = book.until(1e9)
    assert len(heard) <= spoken.MAX_CHARACTERS
    assert heard.startswith("3")
    assert heard.endswith(f"5{passage}")
    assert book.characters == 6 * (len(passage) + 1)


WORDS = st.lists(st.text("abc", min_size=1, max_size=4), min_size=1, max_size=8)


@given(st.lists(WORDS, min_size=1, max_size=6), st.floats(0, 60_000))
def test_what_is_heard_is_a_beginning_of_the_text_and_grows_with_time(
    passages: list[list[str]], heard_ms: float
) -> None:
    book, at, text = Spoken(), 0.0, ""
    for words in passages:
        ends = [(word, at + i + 1.0) for i, word in enumerate(words)]
        passage = " ".join(words) + ". "
        book.add(mark(passage, at, at + len(words), *ends))
        at, text = at + len(words), text + passage
    heard = book.until(heard_ms)
    assert text.startswith(heard)
    assert book.until(heard_ms + 500).startswith(heard)
    assert book.until(at * 1000) == text
