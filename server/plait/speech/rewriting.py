"""Rewriting text for the ear while remembering what was written.

A rule is a pattern and what to say for a match. Rules are applied in order to the text as written,
not to each other's output; where a match touches what an earlier rule took, it does not count. The
result is a `Script`: what is said, and for every character of it the piece of source it stands
for. Does NOT know any rule.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import NamedTuple

Say = Callable[[re.Match[str]], str | None]


_HUGGING = frozenset(".,;:!?…)")  # no space before them


class Rule(NamedTuple):
    """`say` gives what is said for a match (at most a few words), or None to leave it alone."""

    pattern: re.Pattern[str]
    say: Say


class Said(NamedTuple):
    """`source[start:end]` is said as `spoken`."""

    start: int
    end: int
    spoken: str


class Script(NamedTuple):
    """`text[i]` stands for `source[starts[i]:ends[i]]`; runs of white space are one space.

    `rewrites` are the pieces that are said otherwise than they are written.
    """

    text: str
    starts: list[int]
    ends: list[int]
    rewrites: list[Said]


def rule(pattern: str, say: Say | str, flags: int = 0) -> Rule:
    """`say` as a string is said for every match. Patterns are verbose."""
    compiled = re.compile(pattern, flags | re.VERBOSE)
    if isinstance(say, str):
        words = say
        return Rule(compiled, lambda _match: words)
    return Rule(compiled, say)


def rewrite(source: str, rules: Iterable[Rule]) -> Script:
    """Apply `rules`; what no rule takes is said as written."""
    taken: list[Said] = []
    for one in rules:
        for said in _matches(source, one, taken):
            taken.insert(bisect_left(taken, said), said)
    return _script(source, taken)


def _matches(source: str, one: Rule, taken: list[Said]) -> list[Said]:
    found: list[Said] = []
    position = 0
    while match := one.pattern.search(source, position):
        start, end = match.span()
        position = max(end, start + 1)
        if end == start:
            continue
        blocked = _overlap(taken, start, end)
        if blocked is not None:
            position = max(blocked.end, start + 1)
            continue
        spoken = one.say(match)
        if spoken is not None:
            found.append(Said(start, end, spoken))
    return found


def _overlap(taken: list[Said], start: int, end: int) -> Said | None:
    index = bisect_left(taken, start, key=lambda said: said.end)
    while index < len(taken) and taken[index].end <= start:
        index += 1
    return taken[index] if index < len(taken) and taken[index].start < end else None


def _script(source: str, taken: list[Said]) -> Script:
    script = _ScriptWriter()
    position = 0
    for said in taken:
        script.write_as_written(source, position, said.start)
        for char in said.spoken:
            script.write(char, said.start, said.end)
        position = said.end
    script.write_as_written(source, position, len(source))
    return Script("".join(script.text), script.starts, script.ends, taken)


class _ScriptWriter:
    def __init__(self) -> None:
        self.text: list[str] = []
        self.starts: list[int] = []
        self.ends: list[int] = []

    def write(self, char: str, start: int, end: int) -> None:
        if char.isspace():
            if not self.text or self.text[-1] == " ":
                return
            char = " "
        elif char in _HUGGING and self.text and self.text[-1] == " ":
            self.text.pop()
            self.starts.pop()
            self.ends.pop()
        self.text.append(char)
        self.starts.append(start)
        self.ends.append(end)

    def write_as_written(self, source: str, start: int, end: int) -> None:
        for index in range(start, end):
            self.write(source[index], index, index + 1)
