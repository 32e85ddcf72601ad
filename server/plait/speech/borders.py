"""Where sentences and clauses end in a text that is still arriving.

`BorderFinder.scan` is called with a bounded window and looks at each mark (full stop, comma, dash,
line break) once, as soon as the character after it is known: `3.` may go on as `3.14`, `Dr.` as a
name. Whether a full stop ends a sentence is asked of the sentencex library with a few words of
context. A border lies behind the white space that follows its mark. Does NOT know how much text a
segment should hold.
"""

# ruff: noqa: RUF001 -- writing systems are what this module is about
from __future__ import annotations

import re
from typing import Literal, NamedTuple

import sentencex

Kind = Literal["sentence", "clause"]

CLOSERS = "\"'”’»)\\]}*_`~"
_OPENERS = "\"'“‘«([{*_`~¿¡#>"
_CONTEXT = 48  # characters before a mark that decide what it means
_SOFT_WRAP = 60  # a line this long that ends without a mark was wrapped by an editor

_MARK = re.compile(
    rf"""
    (?P<stop>[.!?…]+)[{CLOSERS}]*\s+          # needs white space: 3.14, example.com
  | (?P<full>[。！？｡।॥؟]+)[{CLOSERS}」』）】》]*\s*
  | (?P<comma>[,;:][{CLOSERS}]*\s+)
  | (?P<cjk>[、，；：][」』）】》]*\s*)
  | (?P<dash>[^\S\n]+[-–—]{{1,3}}\s+|—+\s*)
  | (?P<line>[^\S\n]*\n\s*)
    """,
    re.VERBOSE,
)
# Text that ends so says nothing new until its next character comes.
_UNDECIDED = frozenset(" \t\n.!?…,;:。！？｡।॥؟、，；：-–—」』）】》" + CLOSERS.replace("\\", ""))
_LIST_MARKER = re.compile(r"(?:^|\n)[ \t>]*(?:[-*+•]\s+)?\(?(?:\d{1,3}|[a-zA-Z])[.)]$")
_BLOCK_START = re.compile(r"[-*+•#>|]|\d{1,3}[.)]")
_INITIAL = re.compile(r"(?:^|[\s(\"“])[A-ZÀ-Þ]\.$")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\"“«])(?:M|MM|Mme|Mlle|Sr|Sra|Srta|Dr|Dra|Prof|Sig|Ing|Avv|St|Ste|vs|ca|cf|No|Nr|nº"
    r"|Fig|fig|Vol|vol|pp?|Mt|Ft|Gen|Col|Sgt|Capt|Lt|Rev|Hon|Gov|Sen|Rep|approx|e\.g|i\.e)\.$"
)


class Border(NamedTuple):
    """`position`: of the first character that comes after it."""

    position: int
    kind: Kind


class BorderFinder:
    """One stream's scanner; `positions` count from the start of the window it is shown."""

    def __init__(self, language: str) -> None:
        self._language = language.partition("-")[0]
        self._scanned = 0
        self._shown = 0

    def scan(self, window: str, *, complete: bool) -> list[Border]:
        """The borders that became certain since the last call, in order.

        `complete`: no more text will come, so the end of the window is the end of the text (and
        no border).
        """
        news, self._shown = window[self._shown :], len(window)
        if not complete and all(map(_is_undecided, news)):
            return []
        found: list[Border] = []
        for mark in _MARK.finditer(window, self._scanned):
            if mark.end() == len(window):
                self._scanned = mark.start()
                return found
            self._scanned = mark.end()
            kind = self._kind(window, mark)
            if kind is not None:
                found.append(Border(mark.end(), kind))
        self._scanned = self._decided(window)
        return found

    def _decided(self, window: str) -> int:
        """Up to where nothing that comes can make a mark of what is there."""
        end = len(window)
        while end > self._scanned and _is_undecided(window[end - 1]):
            end -= 1
        return end

    def drop(self, count: int) -> None:
        """The window's first `count` characters are gone."""
        self._scanned = max(0, self._scanned - count)
        self._shown = max(0, self._shown - count)

    def _kind(self, window: str, mark: re.Match[str]) -> Kind | None:
        following = window[mark.end()]
        if "\n" in mark[0]:
            return _kind_of_line_break(window, mark)
        match mark.lastgroup:
            case "full":
                return "sentence"
            case "cjk":
                return "clause"
            case "stop":
                return self._kind_of_stop(window, mark, following)
            case "dash":
                before = window[mark.start() - 1 : mark.start()]
                return None if before.isdigit() and following.isdigit() else "clause"
            case _:
                return "clause"

    def _kind_of_stop(self, window: str, mark: re.Match[str], following: str) -> Kind | None:
        stop = mark["stop"]
        before = window[max(0, mark.start() - _CONTEXT) : mark.start()] + stop
        if stop == "." and _is_part_of_a_token(before):
            return None
        asked = stop[-1] in "!?" and following.islower()  # "Really?" he asked.
        if not asked and self._ends_sentence(before, following):
            return "sentence"
        return None if stop == "." else "clause"

    def _ends_sentence(self, before: str, following: str) -> bool:
        """Ask the library, without the quotes and brackets that would make it wait for a pair."""
        context = "".join(" " if char in _OPENERS or char in CLOSERS else char for char in before)
        context = " ".join(context.split()) + " "
        shown = f"{following}e" if following.isalnum() else "We"
        context = context.encode("utf-8", "replace").decode()  # it takes no lone surrogates
        starts = sentencex.get_sentence_boundaries(self._language, context + shown)
        return bool(starts) and int(starts[-1]["start_index"]) == len(context)


def _is_undecided(char: str) -> bool:
    return char in _UNDECIDED or char.isspace()


def _is_part_of_a_token(before: str) -> bool:
    return bool(
        _LIST_MARKER.search(before) or _INITIAL.search(before) or _ABBREVIATION.search(before)
    )


def _kind_of_line_break(window: str, mark: re.Match[str]) -> Kind | None:
    """A blank line, a list and a short line end something; a line an editor wrapped does not."""
    if mark[0].count("\n") > 1 or _BLOCK_START.match(window, mark.end()):
        return "sentence"
    if mark.lastgroup in ("stop", "full"):
        return "sentence"
    line = window[window.rfind("\n", 0, mark.start()) + 1 : mark.start()]
    if _BLOCK_START.match(line.lstrip()):
        return "sentence"
    if mark.lastgroup != "line":
        return "clause"
    if len(line) >= _SOFT_WRAP or window[mark.end()].islower():
        return None
    return "sentence"
