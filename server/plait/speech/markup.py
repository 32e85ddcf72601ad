"""Rules for what is written and not said: markdown, HTML, emoji, invisible characters.

Chat answers are piped into speech, so emphasis, headings, list markers, links and tables are
silent and their words are spoken. The same for every language; these rules come first.
"""

# ruff: noqa: RUF001 -- writing systems are what this module is about
from __future__ import annotations

import html
import re
import unicodedata

from plait.speech.rewriting import Rule, rule

_EMOJI = (
    "[\U0001f000-\U0001faff\u2600-\u26ff\u2700-\u27bf\u2b00-\u2bff\u2300-\u23ff\u2500-\u25ff"
    "\ufe00-\ufe0f\u20e3\U000e0000-\U000e01ef\u2460-\u24ff\u3030\u303d\u3297\u3299]+"
)
# Controls, soft hyphen, zero width, bidi marks, lone surrogates, private use, unassigned.
_INVISIBLE = (
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\ud800-\udfff\ue000-\uf8ff\ufeff\ufff0-\uffff"
    "\U000f0000-\U0010ffff]+"
)


_TAGS = (
    "a|abbr|b|big|blockquote|br|center|code|del|details|div|em|font|h[1-6]|hr|i|img|ins|kbd|li|mark"
    "|ol|p|pre|q|s|small|span|strong|sub|summary|sup|table|tbody|td|th|thead|tr|tt|u|ul|var"
)


def _composed(match: re.Match[str]) -> str:
    """A letter with its accents as one character; heaps of accents fall off."""
    letter = unicodedata.normalize("NFC", match[0][:3])
    return unicodedata.normalize("NFC", letter[:2]) if letter[0].isalpha() else letter[0]


def _plain_letters(match: re.Match[str]) -> str:
    """Full-width and mathematical letters are letters."""
    return unicodedata.normalize("NFKC", match[0])


def _entity(match: re.Match[str]) -> str:
    said = {"&amp;": " and ", "&lt;": " less than ", "&gt;": " greater than ", "&nbsp;": " "}
    return said.get(match[0].lower(), html.unescape(match[0]))


RULES: tuple[Rule, ...] = (
    rule(r"[\u0300-\u036f]{4,}", ""),
    rule(_INVISIBLE, ""),
    rule(r"(?:[A-Za-z\u00c0-\u024f][\u0300-\u036f]{1,3})", _composed),
    rule(r"[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\U0001d400-\U0001d7ff]+", _plain_letters),
    # Blocks: fences with their language, rules, table borders, headings, quotes, list markers.
    rule(r"^[ \t]*(?:```|~~~)[ \t]*[\w+#.-]*[ \t]*$", "", re.MULTILINE),
    rule(r"^[ \t]*(?:[-*_=][ \t]*){3,}$", "", re.MULTILINE),
    rule(r"^[ \t]*\|?[ \t]*:?-{2,}:?[ \t]*(?:\|[ \t]*:?-*:?[ \t]*)*$", "", re.MULTILINE),
    rule(r"^[ \t]*\|[ \t]*|[ \t]*\|[ \t]*$", "", re.MULTILINE),
    rule(r"^[ \t]*(?:>[ \t]*)+(?=\S)", "", re.MULTILINE),
    rule(r"^[ \t>]*\#{1,6}[ \t]+", "", re.MULTILINE),
    rule(r"^[ \t>]*[-*+•‣◦▪–][ \t]+(?:\[[ xX]\][ \t]+)?(?=\S)", "", re.MULTILINE),
    # Links and images: the text, not the address.
    rule(r"!?\[(?=[^\]\n]{1,300}\]\([^)\s]*(?:\s\"[^\"\n]*\")?\))", ""),
    rule(r"\]\((?:[^)\s]*)(?:\s\"[^\"\n]*\")?\)", ""),
    rule(r"\[\^?\d{1,3}\](?!\()", ""),
    rule(rf"</?(?:{_TAGS})(?:\s[^<>\n]{{0,99}}=[^<>\n]{{0,99}})?\s?/?>", " "),
    rule(r"<(?=https?://|[\w.]+@)|(?<=\w)>(?=\s|$)", ""),
    rule(r"&(?:[a-zA-Z]{2,8}|\#\d{1,6});", _entity),
    # Emphasis and code.
    rule(r"`+", ""),
    rule(r"(?<=[a-z0-9)])\*\*(?=\d+\b)", " to the power of "),
    rule(r"(?<=\w)\((?=\w)", " ("),
    rule(r"\*{2,}|~~|__(?=\w)|(?<=\w)__|(?<!\w)_(?=\w)|(?<=\w)_(?!\w)", ""),
    rule(r"(?<![\w)])\*(?=\S)|(?<=[^\s*])\*(?![\w(])", ""),
    rule(_EMOJI, ""),
    rule(r"(?<!\w)[:;=]['-]?[()DP](?!\w)", ""),
    rule(r"(?<=\s)--?(?=[a-zA-Z])", ""),
    rule(r"[«»„‟]", '"'),
    rule(r"[‘’‚‛ʼ`´]", "'"),
    rule(r"\.{3,}|…+", "…"),
    rule(r"[!?]*\?[!?]+|!+\?[!?]*", "?"),
    rule(r"!{2,}", "!"),
    rule(r",{2,}", ","),
    rule(r"(?<!\d)\s-{1,3}\s|\s-{1,3}\s(?!\d)|--+|\s–\s|\s?—+\s?|\s?―\s?", " — "),
    rule(r"\s*\|\s*", ", "),
)
