"""Rules for abbreviations, Roman numerals and signs in English.

Roman numerals are read as numbers only behind a word that announces one (Chapter IV, Henry VIII).
Acronyms are left to the pronouncer's dictionary. Letters of other scripts are not spoken by an
English voice; Greek ones have names.
"""

# ruff: noqa: RUF001 -- signs and letters of other scripts
from __future__ import annotations

import re

from plait.speech.numerals import Numerals
from plait.speech.rewriting import Rule, rule

_TITLES = {
    "Mr": "Mister", "Mrs": "Missus", "Ms": "Miz", "Dr": "Doctor", "Prof": "Professor",
    "Sr": "Senior", "Jr": "Junior", "Gen": "General", "Col": "Colonel", "Capt": "Captain",
    "Lt": "Lieutenant", "Sgt": "Sergeant", "Rev": "Reverend", "Hon": "Honorable",
    "Gov": "Governor", "Sen": "Senator", "Rep": "Representative", "Mt": "Mount", "Ft": "Fort",
    "St": "Saint",
}  # fmt: skip
_SHORT = {
    "vs": "versus", "approx": "approximately", "dept": "department", "est": "established",
    "Fig": "figure", "fig": "figure", "Vol": "volume", "vol": "volume", "Ch": "chapter",
    "Sec": "section", "sec": "section", "Eq": "equation", "eq": "equation", "pp": "pages",
    "p": "page", "No": "number", "no": "number", "Nos": "numbers", "Art": "article",
    "ca": "circa", "c": "circa",
}  # fmt: skip
_LAST = {
    "Inc": "incorporated", "Ltd": "limited", "Co": "company", "Corp": "corporation",
    "Ave": "avenue", "Blvd": "boulevard", "Rd": "road", "St": "street", "etc": "et cetera",
    "Bros": "brothers", "max": "maximum", "min": "minimum", "misc": "miscellaneous",
    "govt": "government", "Univ": "university",
}  # fmt: skip
_ANNOUNCING = (
    "Chapter|Part|Act|Section|Volume|Vol|Book|Phase|Type|Level|Class|Title|Article|Appendix|Figure"
    "|Table|Bowl|Fantasy|War|Stage|Grade|Tier|Scene|Episode|Season|Mark|Apollo|Saturn|Titan|Schedule"
)
_MONARCHS = (
    "Henry|Louis|Elizabeth|George|Edward|James|Charles|William|Richard|Philip|Napoleon|Pius"
    "|Benedict|Paul|John|Leo|Gregory|Clement|Innocent|Alexander|Catherine|Frederick|Ferdinand"
    "|Nicholas|Peter|Ivan|Ramses|Ptolemy|Constantine|Harald|Olav|Gustav|Christian|Margaret|Mary"
    "|Wilhelm|Friedrich|Alfonso|Francis|Robert|Urban|Boniface|Julius|Xerxes|Darius|Cleopatra"
)
_ROMAN = r"(?P<roman>(?=[IVXL])(?:XL|L?X{0,3})(?:IX|IV|V?I{0,3})(?<=[IVXL]))"
_GREEK = dict(
    zip(
        "αβγδεζηθικλμνξοπρσςτυφχψω",
        [
            "alpha",
            "beta",
            "gamma",
            "delta",
            "epsilon",
            "zeta",
            "eta",
            "theta",
            "iota",
            "kappa",
            "lambda",
            "mu",
            "nu",
            "xi",
            "omicron",
            "pi",
            "rho",
            "sigma",
            "sigma",
            "tau",
            "upsilon",
            "phi",
            "chi",
            "psi",
            "omega",
        ],
        strict=True,
    )
)
SIGNS = {
    "&": "and", "+": "plus", "=": "equals", "×": "times", "÷": "divided by", "±": "plus or minus",
    "≈": "approximately", "≤": "less than or equal to", "≥": "greater than or equal to",
    "≠": "not equal to", "√": "square root of", "∞": "infinity", "°": "degrees", "%": "percent",
    "§": "section", "№": "number", "→": "to", "←": "from", "⇒": "implies", "∑": "sum",
    "∫": "integral", "∂": "partial", "∈": "in", "∪": "union", "∩": "intersection",
    "$": "dollars", "€": "euros", "£": "pounds", "@": "at", "¢": "cents", "−": "minus",
    "¬": "not", "∀": "for all", "∃": "there exists", "Δ": "delta", "∆": "delta", "µ": "micro",
}  # fmt: skip


def rules(numerals: Numerals) -> list[Rule]:
    """Those that come before the numbers' rules."""
    say = _Reader(numerals)
    end = r"\.(?=\s*[a-z,;:?!)]|\s*\d)"  # a full stop that does not end the sentence as well
    return [
        rule(r"\b[eE]\.\s?g\.(?:,)?", "for example,"),
        rule(r"\b[iI]\.\s?e\.(?:,)?", "that is,"),
        rule(r"\ba\.\s?k\.\s?a\.?|\baka\b", "also known as"),
        rule(r"\bw/o\b", "without"),
        rule(r"\bw/(?=\s)", "with"),
        rule(rf"\b(?P<word>{'|'.join(_TITLES)})\.(?=\s+[A-Z&])", lambda m: _TITLES[m["word"]]),
        rule(r"(?<=\d\s)(?P<a>[NESW])\.(?=\s[A-Z])", lambda m: _COMPASS[m["a"]]),
        rule(rf"\b(?P<word>{'|'.join(_SHORT)})\.(?=\s?\d)", lambda m: _SHORT[m["word"]]),
        rule(r"\b(?P<word>vs|approx|dept|ca)\.(?=\s)", lambda m: _SHORT[m["word"]]),
        rule(r"\bvs\b", "versus"),
        rule(r"\b(?P<a>[A-Z]{1,2})&(?P<b>[A-Z]{1,2})\b", _letters_and_letters),
        rule(rf"\b(?P<word>Jr|Sr){end}", lambda m: _TITLES[m["word"]]),
        rule(rf"\b(?P<word>{'|'.join(_LAST)}){end}", lambda m: _LAST[m["word"]]),
        rule(r"\bSt\.?\s*$", "street."),
        rule(r"\betc\b", "et cetera"),
        rule(rf"\b(?P<word>{_ANNOUNCING})\s+{_ROMAN}\b(?!\.\w)", say.announced),
        rule(rf"\b(?P<word>{_MONARCHS})\s+(?!I\b){_ROMAN}\b(?!\.\w)", say.monarch),
        rule(r"\bCO(?=[2₂]\b)|\b[A-Z]{2,3}(?=[₀-₉])", lambda m: " ".join(m[0])),
        rule(r"\bC\+\+", "C plus plus"),
        rule(r"\b(?P<a>[CF])\#", lambda m: f"{m['a']} sharp"),
        rule(r"(?<!\w)\.NET\b", "dot net"),
        rule(r"(?<=\d)\s?\*\s?(?=[\d(])", " times "),
        rule(r"(?<=[\d)])\s+[-−—]\s+(?=[\d(][^\n]{0,40}=)", " minus "),
        rule(r"(?<=[\d)])\s?/\s(?=[\d(])", " divided by "),
        rule(r"&&", " and "),
        rule(r"[!=]==?", lambda m: " not equal to " if m[0][0] == "!" else " equals "),
        rule(r"<=|>=", lambda m: f" {SIGNS['≤' if m[0] == '<=' else '≥']} "),
        rule(r"[-=]>|<[-=]", " to "),
        rule(r"(?<=[\w)]\s)<(?=\s[\w(])|(?<=[\w)])<(?=\d)|(?<!\S)<(?=\d)", " less than "),
        rule(r"(?<=[\w)]\s)>(?=\s[\w(])|(?<=[\w)])>(?=\d)|(?<!\S)>(?=\d)", " greater than "),
    ]  # fmt: skip


def last_rules() -> list[Rule]:
    """Those that come after the numbers' rules: what is left of signs and scripts."""
    signs = "".join(re.escape(sign) for sign in SIGNS)
    return [
        rule(r"(?<=[^\W\d_])['’](?=[^\W\d_])", "'"),
        rule(r"[αβγδεζηθικλμνξοπρσςτυφχψω]", lambda m: f" {_GREEK[m[0]]} "),
        rule(r"(?<=[^\W_])[/:](?=[^\W_])", " "),
        rule(rf"[{signs}]", lambda m: f" {SIGNS[m[0]]} "),
        rule(r"(?![A-Za-z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff])[^\W\d_]+", " "),
        rule(r"(?<=[\w)])\s[-−]\s(?=[\w(])", " minus "),
        rule(r"~(?=\s?\w)", " about "),
        rule(r"(?<=\w)\^(?=\w)", " to the power of "),
        rule(r"[\[\]{}]", ", "),
        rule(r"[^\w\s;:,.!?—…\"()“”'-]|_", " "),
        rule(r"(?<!\w)-+|-+(?!\w)", " "),
    ]


_COMPASS = {"N": "North", "E": "East", "S": "South", "W": "West"}
_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50}


def _letters_and_letters(match: re.Match[str]) -> str:
    return f"{' '.join(match['a'])} and {' '.join(match['b'])}"


class _Reader:
    def __init__(self, numerals: Numerals) -> None:
        self._numerals = numerals

    def announced(self, match: re.Match[str]) -> str:
        return f"{match['word']} {self._numerals.cardinal(_number(match['roman']))}"

    def monarch(self, match: re.Match[str]) -> str:
        return f"{match['word']} the {self._numerals.ordinal(_number(match['roman']))}"


def _number(roman: str) -> str:
    values = [_VALUES[char] for char in roman]
    following = [*values[1:], 0]
    return str(sum(-a if a < b else a for a, b in zip(values, following, strict=True)))
