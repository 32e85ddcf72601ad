"""English as it is written and as it is said."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from plait.speech.normalisation import script_of

from .fragments import FRAGMENTS, SAID


@pytest.mark.parametrize("written", SAID, ids=ascii)
def test_what_is_written_is_said(written: str) -> None:
    assert script_of(written, "en-us").text.strip() == SAID[written]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("14/3/2024", "the fourteenth of March, twenty twenty four"),
        ("March 14", "March the fourteenth"),
        ("1,234", "one thousand two hundred and thirty four"),
    ],
)
def test_british_english_says_dates_and_hundreds_its_own_way(written: str, said: str) -> None:
    assert script_of(written, "en-gb").text == said


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=8), st.sampled_from(["", " ", "\n", "-"]))
def test_no_mixture_of_what_has_rules_breaks_them(fragments: list[str], glue: str) -> None:
    said = script_of(glue.join(fragments), "en-us").text

    assert not any(char.isdecimal() for char in said), said


@given(
    st.text(max_size=80)
    | st.text(alphabet="$€1234567890.,:/-%kmGB°x²½ +=@#'()[]*_`|<>~^", max_size=40)
)
def test_no_text_breaks_the_rules_and_no_digit_is_left(text: str) -> None:
    said = script_of(text, "en-us").text

    assert not any(char.isdecimal() for char in said), said
