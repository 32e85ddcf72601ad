"""Reads JSON that is still being written: generators that rest where the text ends.

What they read is followed closely enough to know where a value ends; whether it is JSON to the
letter is found out at its end, by a decoder. Knows no calls and no models.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable

import msgspec

MAX_DEPTH = 64
SPACE = " \t\r\n"
_IN_STRING = re.compile(r'["\\\x00-\x1f]')
_SCALAR = re.compile(r"[\w+.-]*")
_PAIRS = {"{": "}", "[": "]"}


class NoJson(Exception):
    """What was read is not what it was taken for."""


class Ended(Exception):
    """The text ended where more was needed."""


class Cursor:
    """`text` grows at its end; `position` is how far it was read. Set `ended` before the last turn.

    A generator that yields needs more `text`, or `ended`.
    """

    def __init__(self) -> None:
        self.text = ""
        self.position = 0
        self.ended = False

    @property
    def char(self) -> str:
        return self.text[self.position]

    def drop(self, count: int) -> str:
        """-> the first `count` characters, which are forgotten."""
        dropped, self.text = self.text[:count], self.text[count:]
        self.position = max(0, self.position - count)
        return dropped

    def find(self, markup: Iterable[str]) -> tuple[int, str]:
        """-> (where the first of `markup` begins, it); or where the text may begin one, and ""."""
        found = [(at, m) for m in markup if m and (at := self.text.find(m, self.position)) >= 0]
        if found:
            return min(found)
        rest = self.text[self.position :]
        return len(self.text) - max(_overlap(rest, m) for m in markup), ""

    def more(self) -> Generator[None]:
        """Rest until there is more. Raises `Ended`."""
        if not self.ended:
            yield
        if self.ended:
            raise Ended

    def skip(self, characters: str) -> Generator[None]:
        while True:
            while self.position < len(self.text) and self.text[self.position] in characters:
                self.position += 1
            if self.position < len(self.text):
                return
            yield from self.more()

    def solid(self) -> Generator[None, None, str]:
        """-> the next character that is no space, which is read next."""
        yield from self.skip(SPACE)
        return self.text[self.position]

    def next_of(self, characters: str, *, within: int) -> Generator[None, None, str]:
        """-> what comes before the next of `characters`. Raises `NoJson` if it is longer."""
        start = self.position
        while True:
            while self.position < len(self.text) and self.text[self.position] not in characters:
                self.position += 1
                if self.position - start > within:
                    raise NoJson
            if self.position < len(self.text):
                return self.text[start : self.position]
            yield from self.more()

    def one_of(self, characters: str) -> Generator[None, None, str]:
        """Reads the next character but for space. Raises `NoJson`."""
        char = yield from self.solid()
        if char not in characters:
            raise NoJson
        self.position += 1
        return char

    def starts_with(self, markup: str) -> Generator[None, None, bool]:
        """Reads `markup` if it comes next."""
        while len(self.text) - self.position < len(markup):
            if not markup.startswith(self.text[self.position :]):
                return False
            yield from self.more()
        if not self.text.startswith(markup, self.position):
            return False
        self.position += len(markup)
        return True

    def read_string(self) -> Generator[None, None, str]:
        """-> its value. Raises `NoJson`."""
        start = self.position
        yield from self.one_of('"')
        while True:
            match = _IN_STRING.search(self.text, self.position)
            self.position = match.start() if match else len(self.text)
            if match is None or (match[0] == "\\" and self.position + 1 == len(self.text)):
                yield from self.more()
            elif match[0] == "\\":
                self.position += 2
            elif match[0] == '"':
                self.position += 1
                return _decode_string(self.text[start : self.position])
            else:
                raise NoJson

    def read_value(self) -> Generator[None, None, str]:
        """-> the text of any value. Raises `NoJson` if brackets or strings are not in order."""
        yield from self.solid()
        start = self.position
        closers: list[str] = []
        while True:
            char = yield from self.solid()
            if char == '"':
                yield from self.read_string()
            elif char in _PAIRS and len(closers) < MAX_DEPTH:
                closers.append(_PAIRS[char])
                self.position += 1
            elif closers and char == closers[-1]:
                closers.pop()
                self.position += 1
            elif closers and char in ",:":
                self.position += 1
            else:
                yield from self._read_scalar()
            if not closers:
                return self.text[start : self.position]

    def _read_scalar(self) -> Generator[None]:
        start = self.position
        while True:
            match = _SCALAR.match(self.text, self.position)
            self.position = match.end() if match else self.position
            if self.position < len(self.text):
                break
            yield from self.more()
        if self.position == start:
            raise NoJson


def arguments_of(raw: str) -> str:
    """Of a call, as JSON text of an object; some models write that text as a string, or null.

    Raises `NoJson`.
    """
    try:
        value = msgspec.json.decode(raw)
        if isinstance(value, str):
            raw = value or "{}"
            value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise NoJson from error
    if value is None:
        return "{}"
    if not isinstance(value, dict):
        raise NoJson
    return raw


def _decode_string(text: str) -> str:
    try:
        return msgspec.json.decode(text, type=str)
    except msgspec.DecodeError as error:
        raise NoJson from error


def _overlap(text: str, markup: str) -> int:
    """How many characters at the end of `text` may be the beginning of `markup`."""
    for length in range(min(len(text), len(markup) - 1), 0, -1):
        if text.endswith(markup[:length]):
            return length
    return 0
