"""English as it is written and as it is said: one table per kind."""

# ruff: noqa: RUF001 -- writing systems are what is tested
from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from plait.speech.normalisation import script_of

NUMBERS = {
    "1,234,567": "one million two hundred thirty four thousand five hundred sixty seven",
    "0": "zero",
    "007": "zero zero seven",
    "3.14": "three point one four",
    "0.5 and .5": "zero point five and point five",
    "-7": "minus seven",
    "1999 and 2005": "nineteen ninety nine and two thousand five",
    "in 2024": "in twenty twenty four",
    "1st 2nd 3rd 21st": "first second third twenty first",
    "the 1990s": "the nineteen nineties",
    "in his 30s": "in his thirties",
    "1914–1918": "nineteen fourteen to nineteen eighteen",
    "pages 5-10": "pages five to ten",
    "1/2 or 3/4 or 2½": "one half or three quarters or two and a half",
    "24/7": "twenty four seven",
    "No. 5 and #7": "number five and number seven",
    "555-1234": "five five five, one two three four",
    "v1.2.3": "version one point two point three",
    "GPT-4": "GPT-four",
    "x86_64": "x eighty six sixty four",
    "RTX4090": "RTX forty ninety",
    "1920x1080": "nineteen twenty by ten eighty",
    "10^6": "ten to the power of six",
    "3.5e-4": "three point five times ten to the power of minus four",
    "9" * 20: " ".join(["nine"] * 20),
    "٣ and १२": "three and twelve",
}
DATES = {
    "3/14/2024": "March fourteenth, twenty twenty four",
    "2024-03-14": "March fourteenth, twenty twenty four",
    "14 March 2024": "March fourteenth, twenty twenty four",
    "March 14, 2024": "March fourteenth, twenty twenty four",
    "Jan. 5th": "January fifth",
    "Sept 2019": "September twenty nineteen",
    "13/14/2024": "thirteen fourteen twenty twenty four",
    "10:30 a.m., then": "ten thirty A.M, then",
    "15:45": "fifteen forty five",
    "10:00": "ten o'clock",
    "3:05 pm": "three oh five P.M",
    "5pm": "five P.M",
    "ratio 3:1": "ratio three to one",
}
AMOUNTS = {
    "$1,234.56": "one thousand two hundred thirty four dollars and fifty six cents",
    "$1": "one dollar",
    "$0.99": "ninety nine cents",
    "€5": "five euros",
    "5€": "five euros",
    "£3.50": "three pounds and fifty pence",
    "$2.5M": "two point five million dollars",
    "$3 billion": "three billion dollars",
    "-$5": "minus five dollars",
    "$5-10": "five to ten dollars",
    "20 EUR": "twenty euros",
    "$12.50/month": "twelve dollars and fifty cents per month",
    "50%": "fifty percent",
    "5-10%": "five to ten percent",
    "1 kg": "one kilogram",
    "2.5 kg": "two point five kilograms",
    "100 km/h": "one hundred kilometers per hour",
    "-5 °C": "minus five degrees Celsius",
    "16 GB": "sixteen gigabytes",
    "120 ms": "one hundred twenty milliseconds",
    "6ft": "six feet",
    "45°": "forty five degrees",
}
ADDRESSES = {
    "https://example.com/shop?id=5.": "example dot com slash shop.",
    "www.bbc.co.uk": "B B C dot co dot U K",
    "github.com/foo/bar_baz": "github dot com slash foo slash bar baz",
    "jane.doe@mail-host.org": "jane dot doe at mail dash host dot org",
    "config.py": "config dot P Y",
    "/usr/local/bin": "slash usr slash local slash bin",
    "@john #topic": "at john hashtag topic",
    "snake_case": "snake case",
}
WORDS = {
    "Dr. Smith in St. Louis": "Doctor Smith in Saint Louis",
    "Main St., e.g. here": "Main street, for example, here",
    "i.e., this": "that is, this",
    "cats, etc. Then": "cats, et cetera. Then",
    "World War II": "World War two",
    "Henry VIII": "Henry the eighth",
    "Chapter IV": "Chapter four",
    "I think so": "I think so",
    "C++ and C#": "C plus plus and C sharp",
    "AT&T": "A T and T",
    "2 + 2 = 4": "two plus two equals four",
    "5 - 3 = 2": "five minus three equals two",
    "3 × 4": "three times four",
    "a > b": "a greater than b",
    "~50": "about fifty",
    "CO₂": "C O two",
    "x²": "x squared",
    "α": "alpha",
}
MARKUP = {
    "**Bold** and *it* and __yes__": "Bold and it and yes",
    "# Heading": "Heading",
    "- item": "item",
    "> quote": "quote",
    "`code`": "code",
    "[text](https://a.example/b)": "text",
    "![alt](pic.png)": "alt",
    "<b>bold</b><br/>": "bold",
    "a &amp; b": "a and b",
    "| a | b |": "a, b",
    "```python\nx\n```": "x",
    "party 😀🎉 time": "party time",
    "ok ❤️": "ok",
    "“hi”—then": "“hi” — then",
    "don’t": "don't",
    "wow!!! what?!": "wow! what?",
    "zero\u200bwidth\u202e": "zerowidth",
    "nul\x00l": "null",
    "a\ud800b": "ab",
    "cafe\u0301": "café",
    "Ｈｅｌｌｏ 𝐰𝐨𝐫𝐥𝐝": "Hello world",
    "hello Привет 你好 مرحبا": "hello",
}
TABLE = [*NUMBERS, *DATES, *AMOUNTS, *ADDRESSES, *WORDS, *MARKUP]
SAID = NUMBERS | DATES | AMOUNTS | ADDRESSES | WORDS | MARKUP


@pytest.mark.parametrize("written", TABLE, ids=ascii)
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


@given(
    st.text(max_size=80)
    | st.text(alphabet="$€1234567890.,:/-%kmGB°x²½ +=@#'()[]*_`|<>~^", max_size=40)
)
def test_no_text_breaks_the_rules_and_no_digit_is_left(text: str) -> None:
    said = script_of(text, "en-us").text

    assert not any(char.isdecimal() for char in said), said
