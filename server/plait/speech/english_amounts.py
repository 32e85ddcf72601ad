"""Rules for money, percentages and measures in English.

$1,234.56, €5, £3.50, $2.5M, US$3 billion, 50%, 5-10 km, 20°C, 100 km/h, 16 GB. A range says its
unit once. Does NOT know bare numbers.
"""

# ruff: noqa: RUF001 -- signs of currencies and units
from __future__ import annotations

import re

from plait.speech.english_units import RATES, UNITS
from plait.speech.numerals import Numerals
from plait.speech.rewriting import Rule, rule

_N = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+"
_AMOUNT = (
    rf"(?P<sign>(?<![\w.])[-−+]|(?<![\w.,]))(?P<n>{_N})(?:\s?(?:-|–|—|\s+to\s+)\s?(?P<to>{_N}))?"
)
_MONEY_AMOUNT = rf"(?P<n>{_N})(?:\s?[-–—]\s?(?P<sign2>[$€£¥₹]?)(?P<to>{_N}))?"
_SIGNS = r"(?P<sign>[A-Z]{0,3}\$|€|£|¥|₹|₽|₩|₿|¢)"
_CODES = r"(?P<code>USD|EUR|GBP|JPY|INR|CAD|AUD|CHF|CNY|BRL|MXN|BTC)"
_SCALE = r"(?P<scale>\s?(?:thousand|million|billion|trillion)\b|(?:k|K|[mM]n?|[bB]n?|tn|T)\b)?"
_SCALES = {"k": "thousand", "m": "million", "b": "billion", "t": "trillion"}
# One, many, and a hundredth of it (one, many); no hundredths: None.
_CURRENCIES: dict[str, tuple[str, str, str | None, str | None]] = {
    "$": ("dollar", "dollars", "cent", "cents"),
    "€": ("euro", "euros", "cent", "cents"),
    "£": ("pound", "pounds", "penny", "pence"),
    "¥": ("yen", "yen", None, None),
    "₹": ("rupee", "rupees", "paisa", "paise"),
    "₽": ("rouble", "roubles", None, None),
    "₩": ("won", "won", None, None),
    "₿": ("bitcoin", "bitcoins", None, None),
    "¢": ("cent", "cents", None, None),
    "CHF": ("franc", "francs", None, None),
    "CNY": ("yuan", "yuan", None, None),
    "BRL": ("real", "reais", None, None),
    "MXN": ("peso", "pesos", None, None),
}
_SAME = {
    "USD": "$",
    "CAD": "$",
    "AUD": "$",
    "EUR": "€",
    "GBP": "£",
    "JPY": "¥",
    "INR": "₹",
    "BTC": "₿",
}
_NATIONS = {
    "US": "U S ", "C": "Canadian ", "CA": "Canadian ", "A": "Australian ", "AU": "Australian ",
    "NZ": "New Zealand ", "HK": "Hong Kong ", "S": "Singapore ", "MX": "Mexican ",
}  # fmt: skip


def rules(numerals: Numerals) -> list[Rule]:
    say = _Reader(numerals)
    units = "|".join(re.escape(unit) for unit in sorted(UNITS, key=len, reverse=True))
    rates = "|".join(sorted(RATES, key=len, reverse=True))
    per = rf"(?P<rate>\s?/\s?(?:{rates})\b)?"
    minus, before = r"(?P<minus>(?<![\w.])[-−])?", r"(?<![\w.,])"
    return [
        rule(rf"{minus}{_SIGNS}\s?{_MONEY_AMOUNT}{_SCALE}(?!\w){per}", say.money),
        rule(rf"{before}(?P<n>{_N})\s?(?P<to>){_SCALE}{_SIGNS}(?!\w){per}", say.money),
        rule(rf"\b{_CODES}\s?{_MONEY_AMOUNT}{_SCALE}(?!\w){per}", say.money),
        rule(rf"{before}(?P<n>{_N})(?P<to>){_SCALE}\s?{_CODES}(?!\w){per}", say.money),
        rule(rf"{_AMOUNT}\s?(?P<unit>%|‰|percent\b)", say.measure),
        rule(rf"{_AMOUNT}(?:\s|-)?(?P<unit>{units})(?![\w°'’]|/\w|-\d){per}", say.measure),
        rule(rf"{_AMOUNT}\s?°(?!\w)", say.degrees),
    ]  # fmt: skip


class _Reader:
    def __init__(self, numerals: Numerals) -> None:
        self._numerals = numerals

    def money(self, match: re.Match[str]) -> str:
        found = match.groupdict()
        nation, sign = _currency(found.get("sign") or found["code"])
        one, many, cent, cents = _CURRENCIES[sign]
        scale = _SCALES.get((found["scale"] or "").strip()[:1].lower(), "")
        whole, _, fraction = match["n"].replace(",", "").partition(".")
        minus = f"{self._numerals.minus} " if found.get("minus") else ""
        if match["to"] or scale or not cent or not cents or len(fraction) != 2:
            amount = self._range(match["n"], match["to"]) + (f" {scale}" if scale else "")
            unit = one if amount == "one" else many
            return f"{minus}{amount} {nation}{unit}{_per(found['rate'])}"
        parts = []
        if int(whole or 0) or not int(fraction):
            parts.append(
                f"{self._numerals.cardinal(whole or '0')} {nation}{one if whole == '1' else many}"
            )
        if int(fraction):
            unit = cent if fraction == "01" else cents
            parts.append(f"{self._numerals.cardinal(str(int(fraction)))} {unit}")
        return f"{minus}{' and '.join(parts)}{_per(found['rate'])}"

    def measure(self, match: re.Match[str]) -> str:
        found = match.groupdict()
        one, many = UNITS[match["unit"]]
        amount = self._range(match["n"], match["to"])
        unit = one if amount == "one" else many
        return f"{self._sign(match['sign'])}{amount} {unit}{_per(found.get('rate'))}"

    def degrees(self, match: re.Match[str]) -> str:
        amount = self._range(match["n"], match["to"])
        unit = "degree" if amount == "one" else "degrees"
        return f"{self._sign(match['sign'])}{amount} {unit}"

    def _range(self, low: str, high: str | None) -> str:
        said = self._number(low)
        return f"{said} to {self._number(high)}" if high else said

    def _number(self, written: str) -> str:
        whole, _, fraction = written.replace(",", "").partition(".")
        return self._numerals.amount(whole, fraction)

    def _sign(self, sign: str) -> str:
        return "" if not sign else "plus " if sign == "+" else f"{self._numerals.minus} "


def _currency(sign: str) -> tuple[str, str]:
    """-> (adjective for the nation, sign of `_CURRENCIES`)."""
    if sign.endswith("$"):
        return _NATIONS.get(sign[:-1], ""), "$"
    return "", _SAME.get(sign, sign)


def _per(rate: str | None) -> str:
    return f" per {RATES[rate.strip(' /')]}" if rate else ""
