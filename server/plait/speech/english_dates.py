"""Rules for dates and times of day in English.

14 March 2024, March 14th, 2024-03-14, 3/14/2024 (month first in en-us, day first in en-gb unless
that makes no date), 10:30 a.m., 15:45, 5pm, 1:02:03.
"""

from __future__ import annotations

import re

from plait.speech.numerals import Numerals
from plait.speech.rewriting import Rule, rule

_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_SHORT = {month[:3].lower(): month for month in _MONTHS} | {"sept": "September"}
_JAN = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec)"
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)}|{_JAN}\b\.?)"
_DAY = r"(?P<day>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>1\d{3}|20\d{2})"
_HALF = r"(?P<half>[aApP])\.?\s?[mM]\b(?:\.(?=\s+[a-z]|\s*[,;:?!)]))?"
_WEEKDAYS = {
    "Mon": "Monday",
    "Tue": "Tuesday",
    "Tues": "Tuesday",
    "Wed": "Wednesday",
    "Thu": "Thursday",
    "Thur": "Thursday",
    "Thurs": "Thursday",
    "Fri": "Friday",
}


def rules(numerals: Numerals) -> list[Rule]:
    say = _Reader(numerals)
    iso = r"(?<![\w/.-])(?P<year>\d{4})-(?P<m>0\d|1[0-2])-(?P<day>[0-3]\d)(?=T\d|(?![\w-]))"
    slashed = r"(?<![\w/])(?P<a>\d{1,2})/(?P<b>\d{1,2})/(?P<year>\d{4}|\d{2})(?![\w/])"
    dotted = r"(?<![\w.])(?P<a>\d{1,2})\.(?P<b>\d{1,2})\.(?P<year>\d{4})(?![\w.]\d)"
    weekday = rf"\b(?P<short>Mon|Tues?|Wed|Thu(?:rs?)?|Fri)\.?(?=,|\s+\d|\s+{_JAN})"
    halved = r"(?<![\w:.])(?P<h>[01]?\d|2[0-3]):(?P<m>[0-5]\d)(?::(?P<s>[0-5]\d))?\s?"
    clock = r"T?(?<![\d:.])(?P<h>\d{1,2}):(?P<m>[0-5]\d)(?::(?P<s>[0-5]\d)(?:\.\d+)?)?(?![\d:])Z?"
    return [
        rule(iso, say.iso),
        rule(slashed, say.slashed),
        rule(dotted, say.dotted),
        rule(rf"\b{_DAY}(?:\s+of)?\s+{_MONTH}(?:,?\s+{_YEAR})?(?![\w-])", say.day_first),
        rule(rf"\b{_MONTH}\s+{_DAY}(?!\d|[.:/]\d|,\d)(?:,?\s+{_YEAR}(?![\w%]))?", say.month_first),
        rule(rf"\b{_MONTH},?\s+{_YEAR}(?![\w%-])", say.month_only),
        rule(r"\b(?P<short>Jan|Feb|Aug|Sept|Oct|Nov|Dec)\.(?=\s)", say.month_alone),
        rule(weekday, say.weekday),
        rule(halved + _HALF, say.clock),
        rule(rf"(?<![\w:.,])(?P<h>1[0-2]|0?[1-9])\s?{_HALF}", say.hour),
        rule(clock, say.clock),
    ]


class _Reader:
    def __init__(self, numerals: Numerals) -> None:
        self._numerals = numerals
        self._american = numerals.language == "en-us"

    def iso(self, match: re.Match[str]) -> str | None:
        return self._date(int(match["m"]), int(match["day"]), match["year"])

    def slashed(self, match: re.Match[str]) -> str | None:
        first, second = int(match["a"]), int(match["b"])
        month, day = (first, second) if self._american else (second, first)
        if month > 12:
            month, day = day, month
        return self._date(month, day, match["year"])

    def dotted(self, match: re.Match[str]) -> str | None:
        return self._date(int(match["b"]), int(match["a"]), match["year"])

    def day_first(self, match: re.Match[str]) -> str:
        day, month = self._ordinal(match["day"]), _month(match["month"])
        said = f"{month} {day}" if self._american else f"the {day} of {month}"
        return f"{said}{self._of_year(match['year'])}"

    def month_first(self, match: re.Match[str]) -> str:
        day, month = self._ordinal(match["day"]), _month(match["month"])
        said = f"{month} {day}" if self._american else f"{month} the {day}"
        return f"{said}{self._of_year(match['year'])}"

    def month_only(self, match: re.Match[str]) -> str:
        return f"{_month(match['month'])} {self._numerals.year(match['year'])}"

    def month_alone(self, match: re.Match[str]) -> str:
        return _month(match["short"])

    def weekday(self, match: re.Match[str]) -> str:
        return _WEEKDAYS[match["short"]]

    def clock(self, match: re.Match[str]) -> str | None:
        hour, minute = match["h"], match["m"]
        seconds = match["s"]
        half = match.groupdict().get("half")
        if int(hour) > 24 and not seconds:
            return None  # a ratio or a score
        said = [self._numerals.cardinal(str(int(hour)))]
        if minute != "00":
            said.append(self._two_digits(minute))
        elif half is None:
            said.append("o'clock" if 0 < int(hour) <= 12 and not seconds else "hundred")
        if seconds:
            said.append(f"and {self._numerals.cardinal(str(int(seconds)))} seconds")
        return " ".join(said) + _half(half)

    def hour(self, match: re.Match[str]) -> str:
        return self._numerals.cardinal(str(int(match["h"]))) + _half(match["half"])

    def _date(self, month: int, day: int, year: str) -> str | None:
        if not (1 <= month <= 12 and 1 <= day <= 31):
            return None
        name, ordinal = _MONTHS[month - 1], self._numerals.ordinal(str(day))
        said = f"{name} {ordinal}" if self._american else f"the {ordinal} of {name}"
        return said + self._of_year(year)

    def _ordinal(self, day: str) -> str:
        return self._numerals.ordinal(str(int(day)))

    def _of_year(self, year: str | None) -> str:
        if not year:
            return ""
        if len(year) == 2:
            return f", {self._two_digits(year)}"
        return f", {self._numerals.year(year)}"

    def _two_digits(self, digits: str) -> str:
        if digits[0] == "0":
            return f"oh {self._numerals.cardinal(digits[1])}"
        return self._numerals.cardinal(digits)


def _month(written: str) -> str:
    return _SHORT.get(written.rstrip(".").lower(), written)


def _half(half: str | None) -> str:
    return f" {half.upper()}.M" if half else ""
