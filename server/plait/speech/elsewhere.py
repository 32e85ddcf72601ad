"""Rules for Spanish, French, Hindi, Italian and Portuguese: numbers, money, measures, signs.

Decimal commas and grouping points (Hindi: the other way round); percentages, currencies, common
units, times of day. Everything else is left to espeak. Letters of other scripts are not spoken.
"""

# ruff: noqa: RUF001 -- signs, and words of other languages
from __future__ import annotations

import re
from typing import NamedTuple

from plait.speech.numerals import Numerals
from plait.speech.rewriting import Rule, rule


class _Words(NamedTuple):
    """`hour` joins hours and minutes, `cents` an amount of money and its hundredths."""

    to: str
    percent: str
    hour: str
    cents: str
    currencies: dict[str, str]
    units: dict[str, str]
    signs: dict[str, str]


_WORDS = {
    "es": _Words(
        "a", "por ciento", "y", "con",
        {"R$": "reales", "€": "euros", "$": "dólares", "£": "libras", "¥": "yenes"},
        {"km": "kilómetros", "m": "metros", "cm": "centímetros", "mm": "milímetros",
         "kg": "kilos", "g": "gramos", "mg": "miligramos", "l": "litros", "ml": "mililitros",
         "km/h": "kilómetros por hora", "°C": "grados", "°": "grados", "GB": "gigabytes",
         "MB": "megabytes", "ms": "milisegundos", "min": "minutos", "h": "horas", "s": "segundos"},
        {"&": "y", "+": "más", "=": "igual a", "%": "por ciento", "×": "por", "@": "arroba"},
    ),
    "fr": _Words(
        "à", "pour cent", "heures", "",
        {"€": "euros", "$": "dollars", "£": "livres", "¥": "yens", "₹": "roupies"},
        {"km": "kilomètres", "m": "mètres", "cm": "centimètres", "mm": "millimètres",
         "kg": "kilos", "g": "grammes", "mg": "milligrammes", "l": "litres", "ml": "millilitres",
         "km/h": "kilomètres à l'heure", "°C": "degrés", "°": "degrés", "Go": "gigaoctets",
         "GB": "gigaoctets", "Mo": "mégaoctets", "MB": "mégaoctets", "ms": "millisecondes",
         "min": "minutes", "h": "heures", "s": "secondes"},
        {"&": "et", "+": "plus", "=": "égale", "%": "pour cent", "×": "fois", "@": "arobase"},
    ),
    "it": _Words(
        "a", "per cento", "e", "e",
        {"€": "euro", "$": "dollari", "£": "sterline", "¥": "yen", "₹": "rupie"},
        {"km": "chilometri", "m": "metri", "cm": "centimetri", "mm": "millimetri",
         "kg": "chili", "g": "grammi", "mg": "milligrammi", "l": "litri", "ml": "millilitri",
         "km/h": "chilometri all'ora", "°C": "gradi", "°": "gradi", "GB": "gigabyte",
         "MB": "megabyte", "ms": "millisecondi", "min": "minuti", "h": "ore", "s": "secondi"},
        {"&": "e", "+": "più", "=": "uguale", "%": "per cento", "×": "per", "@": "chiocciola"},
    ),
    "pt": _Words(
        "a", "por cento", "e", "e",
        {"R$": "reais", "€": "euros", "$": "dólares", "£": "libras", "¥": "ienes", "₹": "rúpias"},
        {"km": "quilômetros", "m": "metros", "cm": "centímetros", "mm": "milímetros",
         "kg": "quilos", "g": "gramas", "mg": "miligramas", "l": "litros", "ml": "mililitros",
         "km/h": "quilômetros por hora", "°C": "graus", "°": "graus", "GB": "gigabytes",
         "MB": "megabytes", "ms": "milissegundos", "min": "minutos", "h": "horas", "s": "segundos"},
        {"&": "e", "+": "mais", "=": "igual a", "%": "por cento", "×": "vezes", "@": "arroba"},
    ),
    "hi": _Words(
        "से", "प्रतिशत", "बजकर", "",
        {"₹": "रुपये", "$": "डॉलर", "€": "यूरो", "£": "पाउंड", "¥": "येन"},
        {"km": "किलोमीटर", "m": "मीटर", "cm": "सेंटीमीटर", "kg": "किलोग्राम", "g": "ग्राम",
         "°C": "डिग्री सेल्सियस", "°": "डिग्री", "GB": "गीगाबाइट", "MB": "मेगाबाइट", "min": "मिनट"},
        {"&": "और", "+": "प्लस", "=": "बराबर", "%": "प्रतिशत", "×": "गुणा", "@": "ऐट"},
    ),
}  # fmt: skip
_COMMA = r"\d{1,3}(?:[. \u00a0\u202f]\d{3})+(?:,\d+)?(?!\d)|\d+(?:,\d+)?"
_POINT = r"\d{1,3}(?:,\d{2,3})+(?:\.\d+)?(?!\d)|\d+(?:\.\d+)?"
_OTHER_SCRIPTS = r"(?![A-Za-z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff{more}])[^\W\d_]+"


def rules(language: str, numerals: Numerals) -> list[Rule]:
    family = language.partition("-")[0]
    words = _WORDS[family]
    say = _Reader(words, numerals, decimal="." if family == "hi" else ",")
    number = _POINT if family == "hi" else _COMMA
    amount = (
        rf"(?P<sign>(?<![\w.,])[-−]|(?<![\w.,]))(?P<n>{number})(?:\s?[-–—]\s?(?P<to>{number}))?"
    )
    units = "|".join(re.escape(unit) for unit in sorted(words.units, key=len, reverse=True))
    money = "|".join(re.escape(sign) for sign in sorted(words.currencies, key=len, reverse=True))
    signs = "".join(re.escape(sign) for sign in words.signs)
    more = "\u0900-\u097f" if family == "hi" else ""
    return [
        rule(r"(?<![\w:.,/-])(?P<h>[01]?\d|2[0-3])(?::|h\s?)(?P<m>[0-5]\d)(?![\w:])", say.clock),
        rule(rf"(?P<unit>{money})\s?{amount}(?!\w)", say.money),
        rule(rf"{amount}\s?(?P<unit>{money})(?!\w)", say.money),
        rule(rf"{amount}\s?%", say.percent),
        rule(rf"{amount}\s?(?P<unit>{units})(?![\w°])", say.measure),
        rule(rf"{amount}(?!\w|[.,]\d)", say.number),
        rule(r"(?<=[^\W\d_])-?\d+|\d+-?(?=[^\W\d_])|\d+", say.name),
        rule(r"(?<=[^\W\d_])['’](?=[^\W\d_])", "'"),
        rule(r"(?<=[^\W_])[/:](?=[^\W_])", " "),
        rule(rf"[{signs}]", lambda match: f" {words.signs[match[0]]} "),
        rule(_OTHER_SCRIPTS.replace("{more}", more), " "),
        rule(r"[\[\]{}]", ", "),
        rule(r"[^\w\s;:,.!?—…\"()“”'\u0900-\u097f¿¡-]|_", " "),
        rule(r"(?<!\w)-+|-+(?!\w)", " "),
    ]


class _Reader:
    def __init__(self, words: _Words, numerals: Numerals, *, decimal: str) -> None:
        self._words = words
        self._numerals = numerals
        self._decimal = decimal

    def clock(self, match: re.Match[str]) -> str:
        hour = self._numerals.cardinal(str(int(match["h"])))
        if match["m"] == "00":
            return f"{hour} {self._words.hour}" if self._words.hour == "heures" else hour
        return f"{hour} {self._words.hour} {self._numerals.cardinal(str(int(match['m'])))}"

    def money(self, match: re.Match[str]) -> str:
        unit = self._words.currencies[match["unit"]]
        whole, _, hundredths = match["n"].partition(self._decimal)
        if len(hundredths) != 2 or match["to"] or self._decimal == ".":
            return f"{self.number(match)} {unit}"
        minus = f"{self._numerals.minus} " if match["sign"] else ""
        said = f"{minus}{self._amount(whole)} {unit}"
        cents = str(int(hundredths))
        return (
            f"{said} {self._words.cents} {self._numerals.cardinal(cents)}" if int(cents) else said
        )

    def percent(self, match: re.Match[str]) -> str:
        return f"{self.number(match)} {self._words.percent}"

    def measure(self, match: re.Match[str]) -> str:
        return f"{self.number(match)} {self._words.units[match['unit']]}"

    def number(self, match: re.Match[str]) -> str:
        said = self._amount(match["n"])
        if match["to"]:
            said = f"{said} {self._words.to} {self._amount(match['to'])}"
        return f"{self._numerals.minus} {said}" if match["sign"] else said

    def name(self, match: re.Match[str]) -> str:
        return f" {self._numerals.label(match[0].strip('-'))} "

    def _amount(self, written: str) -> str:
        whole, _, fraction = written.partition(self._decimal)
        return self._numerals.amount(re.sub(r"\D", "", whole), fraction or None)
