"""Rules for numbers in English, from the special to the plain.

Telephone numbers, versions, scores and ranges, fractions, powers, ordinals, decades, decimals,
years, and numbers inside names (GPT-4, x86_64). After these no digit is left.
"""

# ruff: noqa: RUF001 -- dashes and fractions
from __future__ import annotations

import re
import unicodedata

from plait.speech.numerals import Numerals
from plait.speech.rewriting import Rule, rule

_N = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
_DASH = r"(?:[-–—−]|\s[-–—−]\s)"
_HALVES = {2: ("half", "halves"), 4: ("quarter", "quarters")}
_DENOMINATORS = (*range(2, 13), 16, 20, 32, 64, 100)
_POWERS = {"²": "squared", "³": "cubed"}
_SMALL = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉", "01234567890123456789")


def rules(numerals: Numerals) -> list[Rule]:
    say = _Reader(numerals)
    telephone = r"(?<![\w.])\+?(?:\d{1,3}[-.\s])?\(?\d{3}\)?[-.\s]\d{3}[-.\s]\d{4}(?![\w-])"
    fraction = r"(?<![\w./])(?:(?P<whole>\d+)(?:\s|-))?(?P<a>\d{1,3})[/⁄](?P<b>\d{1,4})(?![\w/])"
    years = r"(?<![\w.,-])(?P<a>1\d{3}|20\d\d)[-–—](?P<b>\d{2}|1\d{3}|20\d\d)(?![\w-])"
    return [
        rule(telephone, say.telephone),
        rule(r"(?<![\w.-])\d{3}-\d{4}(?![\w-])", say.telephone),
        rule(r"(?<![\w.])\+\d{1,3}(?:[\s-]\d{2,5}){2,5}(?![\w-])", say.telephone),
        rule(r"(?<!\w)(?P<a>\d)'(?P<b>\d{1,2})\"", say.height),
        rule(r"(?<![\w.])(?P<n>\d+(?:\.\d+)?)[eE](?P<e>[-−+]?\d{1,4})(?!\w)", say.scientific),
        rule(r"(?<![\w.-])\d{1,5}(?:-\d{1,7}){2,6}(?![\w-])", say.telephone),
        rule(r"(?<!\w)\d{4}(?:[\s-]\d{4}){2,3}(?!\w)", say.telephone),
        rule(r"\b24/7\b", "twenty four seven"),
        rule(r"\b[vV]?(?P<n>\d+(?:\.\d+){2,5})(?![\w]|\.\d)", say.version),
        rule(r"\b[vV](?P<n>\d+(?:\.\d+)?)(?![\w]|\.\d)", say.version),
        rule(r"(?:(?P<whole>\d+)\s?)?(?P<vulgar>[¼½¾⅐-⅞])", say.vulgar),
        rule(fraction, say.fraction),
        rule(r"(?<=[\w)])[²³]", lambda match: f" {_POWERS[match[0]]} "),
        rule(r"(?<=[\w)])\^\(?(?P<sign>[-−]?)(?P<n>\d{1,6})\)?(?!\w)", say.power),
        rule(r"[⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉]+", say.small),
        rule(rf"(?<![\w.])(?P<a>\d{{1,5}}){'[x×]'}(?P<b>\d{{1,5}})(?!\w)", say.by),
        rule(years, say.years),
        rule(rf"(?<![\w.,-])(?P<a>{_N}){_DASH}(?P<b>{_N})(?![\w-])", say.range),
        rule(r"(?<![\w.:])(?P<a>\d{1,4}):(?P<b>\d{1,4})(?![\w:])", say.range),
        rule(r"(?<!\w)(?P<n>\d{1,3}(?:,\d{3})+|\d{1,15})(?:st|nd|rd|th)\b", say.ordinal),
        rule(r"(?<![\w.])(?P<n>\d{1,4})['’]?s\b", say.plural),
        rule(r"(?<!\w)\#\s?(?P<n>\d{1,9})\b", say.hash),
        rule(r"(?<!\w)(?P<n>\d+(?:\.\d+)?)(?P<scale>[kKmM])\b", say.thousands),
        rule(rf"(?<![\w.])(?P<sign>[-−+])(?P<n>{_N}|\.\d+)", say.signed),
        rule(r"(?<![\w.,])(?P<n>\d{1,3}(?:,\d{3})+)(?:\.(?P<f>\d+))?(?![\w])", say.grouped),
        rule(rf"(?<![\w.,])(?P<n>{_N})\s?[x×](?!\w|\s?[-+*/=^−])", say.times),
        rule(r"(?<![\w.])(?P<w>\d*)\.(?P<f>\d+)(?!\d|\.\d)", say.decimal),
        rule(r"(?<![\w.,])(?P<n>\d+)(?!\w|\.\d|,\d{3}(?!\d))", say.plain),
        rule(r"(?<=[^\W\d_])-?(?P<n>\d+)", say.name),
        rule(r"(?P<n>\d+)-?(?=[^\W\d_])", say.name),
        rule(r"\d+", say.name),
    ]  # fmt: skip


def first_rules(numerals: Numerals) -> list[Rule]:
    """Decades, before a unit can take their s for seconds; digits in groups of three."""
    say = _Reader(numerals)
    words = (r"the\s", r"his\s", r"her\s", r"their\s", r"early\s", r"late\s", "mid-")
    behind = "|".join(rf"(?<=\b{word})" for word in words)
    return [
        rule(r"(?<![\w.])['’]?(?P<n>1\d\d0|20\d0)['’]?s\b", say.decade),
        rule(r"(?<!\w)['’](?P<n>[2-9]0)s\b", say.decade),
        rule(r"(?<![\w.,])\d{1,3}(?:\.\d{3}){2,5}(?![\w.])", say.groups),
        rule(r"(?<![\w.,])\d{1,3}(?:[ \u00a0\u202f]\d{3}){2,5}(?!\w|-)", say.groups),
        rule(r"(?<![\w.,])\d{1,3}(?:[ \u00a0\u202f]000|[\u00a0\u202f]\d{3})(?!\w)", say.groups),
        rule(rf"(?:{behind})(?P<n>[2-9]0)s\b", say.decade),
    ]


class _Reader:
    def __init__(self, numerals: Numerals) -> None:
        self._numerals = numerals

    def telephone(self, match: re.Match[str]) -> str:
        groups = re.findall(r"\d+", match[0])
        said = ", ".join(self._numerals.digits(group) for group in groups)
        return f"plus {said}" if match[0][0] == "+" else said

    def version(self, match: re.Match[str]) -> str:
        parts = [self._part(part) for part in match["n"].split(".")]
        return ("version " if match[0][0] in "vV" else "") + " point ".join(parts)

    def vulgar(self, match: re.Match[str]) -> str:
        numerator, _, denominator = unicodedata.normalize("NFKC", match["vulgar"]).partition("⁄")
        return self._mixed(match["whole"], int(numerator or 1), int(denominator or 1))

    def fraction(self, match: re.Match[str]) -> str | None:
        numerator, denominator = int(match["a"]), int(match["b"])
        if denominator in _DENOMINATORS and match[0] != "9/11" and 0 < numerator < 10 * denominator:
            return self._mixed(match["whole"], numerator, denominator)
        if match["whole"]:
            return None
        between = " " if numerator <= 12 < denominator <= 31 or match[0] == "9/11" else " over "
        return between.join(self._numerals.cardinal(match[part]) for part in "ab")

    def power(self, match: re.Match[str]) -> str:
        number = int(match["n"])
        if number in (2, 3) and not match["sign"]:
            return " squared " if number == 2 else " cubed "
        minus = "minus " if match["sign"] else ""
        return f" to the power of {minus}{self._numerals.cardinal(str(number))} "

    def small(self, match: re.Match[str]) -> str:
        return f" {self._numerals.label(match[0].translate(_SMALL))} "

    def by(self, match: re.Match[str]) -> str:
        label = self._numerals.label
        return f"{label(match['a'])} by {label(match['b'])}"

    def years(self, match: re.Match[str]) -> str:
        last = match["b"]
        said = self._part(last) if len(last) == 2 else self._year(last)
        return f"{self._numerals.year(match['a'])} to {said}"

    def range(self, match: re.Match[str]) -> str:
        return f"{self._number(match['a'])} to {self._number(match['b'])}"

    def ordinal(self, match: re.Match[str]) -> str:
        return self._numerals.ordinal(match["n"].replace(",", ""))

    def groups(self, match: re.Match[str]) -> str:
        return self._numerals.cardinal("".join(re.findall(r"\d+", match[0])))

    def decade(self, match: re.Match[str]) -> str:
        return _plural(self._year(match["n"]))

    def height(self, match: re.Match[str]) -> str:
        return f"{self._numerals.cardinal(match['a'])} foot {self._numerals.cardinal(match['b'])}"

    def scientific(self, match: re.Match[str]) -> str:
        exponent = self._numerals.cardinal(match["e"].lstrip("+-−"))
        minus = "minus " if match["e"][0] in "-−" else ""
        return f"{self._number(match['n'])} times ten to the power of {minus}{exponent}"

    def plural(self, match: re.Match[str]) -> str:
        return _plural(self._year(match["n"]))

    def hash(self, match: re.Match[str]) -> str:
        return f"number {self._numerals.cardinal(match['n'])}"

    def thousands(self, match: re.Match[str]) -> str | None:
        if match[0] in ("4K", "8K", "5K"):
            return None
        return f"{self._number(match['n'])} {'million' if match['scale'] in 'mM' else 'thousand'}"

    def signed(self, match: re.Match[str]) -> str:
        sign = "plus" if match["sign"] == "+" else self._numerals.minus
        return f"{sign} {self._number(match['n'])}"

    def grouped(self, match: re.Match[str]) -> str:
        return self._numerals.amount(match["n"].replace(",", ""), match["f"])

    def decimal(self, match: re.Match[str]) -> str:
        return f"{self._numerals.decimal(match['w'], match['f'])} "

    def times(self, match: re.Match[str]) -> str:
        return f"{self._number(match['n'])} times"

    def plain(self, match: re.Match[str]) -> str:
        return self._year(match["n"])

    def name(self, match: re.Match[str]) -> str:
        return f" {self._numerals.label(re.sub(r'[^0-9]', '', match[0]) or match[0].strip('-'))} "

    def _year(self, digits: str) -> str:
        """A plain number; four digits that can be a year are read as one."""
        number = int(digits) if len(digits) == 4 else 0
        if 1500 <= number < 2000 or 2010 <= number < 2100:
            return self._numerals.year(digits)
        return self._numerals.cardinal(digits)

    def _number(self, written: str) -> str:
        whole, _, fraction = written.replace(",", "").partition(".")
        return self._numerals.amount(whole, fraction)

    def _part(self, digits: str) -> str:
        return self._numerals.digits(digits) if len(digits) > 2 else self._numerals.cardinal(digits)

    def _mixed(self, whole: str | None, numerator: int, denominator: int) -> str:
        one, many = _HALVES.get(denominator) or self._denominator(denominator)
        part = f"{self._numerals.cardinal(str(numerator))} {one if numerator == 1 else many}"
        if not whole:
            return part
        article = f"a {one}" if numerator == 1 else part
        return f"{self._numerals.cardinal(whole)} and {article}"

    def _denominator(self, denominator: int) -> tuple[str, str]:
        ordinal = self._numerals.ordinal(str(denominator))
        return ordinal, f"{ordinal}s"


def _plural(words: str) -> str:
    if words.endswith("y"):
        return f"{words[:-1]}ies"
    return words + ("es" if words.endswith("x") else "s")
