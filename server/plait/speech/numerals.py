"""Numbers as words, in every language that num2words knows.

Works on what a pattern found: digits, with separators already removed where a name says so. Very
long numbers are read digit by digit, so no input is too large. Does NOT know where numbers stand
in a text.
"""

from __future__ import annotations

from functools import lru_cache

_CODES = {
    "en-us": "en",
    "en-gb": "en",
    "es": "es",
    "fr": "fr",
    "hi": "hi",
    "it": "it",
    "pt-br": "pt_BR",
}
_READ_WHOLE_DIGITS = 15
_POINT = {"en": "point", "es": "coma", "fr": "virgule", "hi": "दशमलव", "it": "virgola"}
_MINUS = {"en": "minus", "es": "menos", "fr": "moins", "hi": "ऋण", "it": "meno"}


class Numerals:
    """The number words of one language (a name of `languages`, not Japanese or Chinese)."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._code = _CODES[language]
        family = self._code[:2]
        self.point = _POINT.get(family, "vírgula")
        self.minus = _MINUS.get(family, "menos")

    def cardinal(self, digits: str) -> str:
        """`digits`: of any script, no sign. Leading zeros and long numbers: digit by digit."""
        if len(digits) > _READ_WHOLE_DIGITS or (digits[0] in "0\u0660\u0966" and len(digits) > 1):
            return self.digits(digits)
        return self._words(int(digits), "cardinal")

    def ordinal(self, digits: str) -> str:
        if len(digits) > _READ_WHOLE_DIGITS:
            return self.digits(digits)
        return self._words(int(digits), "ordinal")

    def year(self, digits: str) -> str:
        """1999: nineteen ninety nine; 2005: two thousand five."""
        number = int(digits)
        if not 1000 < number < 10_000 or number % 1000 < 10:
            return self.cardinal(digits)
        return self._words(number, "year")

    def digits(self, digits: str) -> str:
        return " ".join(self._words(int(digit), "cardinal") for digit in digits)

    def decimal(self, whole: str, fraction: str) -> str:
        """3.14: three point one four, tres coma catorce. `whole` may be empty."""
        words = [self.cardinal(whole)] if whole else []
        as_number = self._code != "en" and len(fraction) == 2 and fraction[0] != "0"
        said = self.cardinal(fraction) if as_number else self.digits(fraction)
        return " ".join([*words, self.point, said])

    def amount(self, whole: str, fraction: str | None) -> str:
        return self.decimal(whole, fraction) if fraction else self.cardinal(whole)

    def label(self, digits: str) -> str:
        """A number that is a name: x264, RTX 4090, room 12."""
        if len(digits) == 3 and digits[0] != "0" and digits[1] != "0":
            return f"{self.cardinal(digits[0])} {self.cardinal(digits[1:])}"
        if len(digits) == 4 and digits[0] != "0" and digits[1:3] != "00":
            last = self.cardinal(digits[2:]) if digits[2:] != "00" else "hundred"
            return f"{self.cardinal(digits[:2])} {last}"
        return self.cardinal(digits) if len(digits) < 5 else self.digits(digits)

    def _words(self, number: int, kind: str) -> str:
        return _words(number, self._code, kind, self.language == "en-us")


@lru_cache(maxsize=4096)
def _words(number: int, code: str, kind: str, american: bool) -> str:
    if code == "hi":
        return str(number)  # num2words has no Hindi; espeak reads its numbers itself
    from num2words import num2words

    words = str(num2words(number, lang=code, to=kind))
    words = words.replace(",", "")
    if code == "en":
        words = words.replace("-", " ")
        if american:
            words = words.replace(" and ", " ")
    return words
