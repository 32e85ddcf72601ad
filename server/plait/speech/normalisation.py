"""Text as it is to be said: the rules of a language, put together and applied.

English gets every rule; the other alphabetic languages markup, addresses, numbers, money and units
(espeak knows the rest); Japanese and Chinese read numbers in their pronouncers.
"""

from __future__ import annotations

from functools import cache

from plait.speech import (
    addresses,
    east_asian,
    elsewhere,
    english_amounts,
    english_dates,
    english_numbers,
    english_words,
    markup,
)
from plait.speech.numerals import Numerals
from plait.speech.rewriting import Rule, Script, rewrite


def script_of(text: str, language: str) -> Script:
    """What is said for `text`, character by character. `language`: a name of `languages`."""
    return rewrite(text, _rules(language))


@cache
def _rules(language: str) -> tuple[Rule, ...]:
    if language in ("en-us", "en-gb"):
        return _english(language)
    if language in ("ja", "zh"):
        numbers = east_asian.japanese() if language == "ja" else east_asian.chinese()
        return (*markup.RULES, *addresses.rules(language, str), *numbers)
    numerals = Numerals(language)
    return (
        *markup.RULES,
        *addresses.rules(language, numerals.label),
        *elsewhere.rules(language, numerals),
    )


def _english(language: str) -> tuple[Rule, ...]:
    numerals = Numerals(language)
    return (
        *markup.RULES,
        *addresses.rules(language, numerals.label),
        *english_dates.rules(numerals),
        *english_numbers.first_rules(numerals),
        *english_amounts.rules(numerals),
        *english_words.rules(numerals),
        *english_numbers.rules(numerals),
        *english_words.last_rules(),
    )
