"""Tool calls out of a model's text, as it is written: content and typed deltas.

`CallParser` is fed text in any pieces and gives the same deltas joined, however it was cut. It
holds back only what may be markup or is not yet known to be a call. Invariant: the content is the
answer without its complete calls; what turns out to be no call (not JSON, no tool that was given)
comes back as content whole, even where deltas of it went out: such a call never has `complete`.
Knows no tokens, no templates and no grammars.
"""

from __future__ import annotations

import secrets
import string
from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeAlias

from plait.engines.chat.dialects import MARKS, Dialect
from plait.engines.chat.json_text import SPACE, Cursor, Ended, NoJson, arguments_of

MOST_CALL_ID = 64
_ID_CHARACTERS = string.ascii_letters + string.digits
_UNSHOWN = {ord(mark): None for mark in MARKS.values()}
# Of an object without markup: any other key says that it is just JSON.
_CALL_KEYS = frozenset({"name", "arguments", "parameters", "id", "type"})

Entry: TypeAlias = dict[str, Any]


def new_call_id() -> str:
    """Nine letters and digits: what the strictest templates ask for when they see it again."""
    return "call" + "".join(secrets.choice(_ID_CHARACTERS) for _ in range(5))


class Said(NamedTuple):
    """What a piece of text made certain: of the answer, and entries of an item's `tool_calls`."""

    content: str
    tool_calls: list[Entry]


class _Done(Exception):
    """The one call that was asked for is complete."""


class CallParser:
    """One answer's; `names` are the tools given. With `parallel` off it is `done` after one call.

    `completed` counts calls; `cut` says, after `finish`, that the last one was begun and not ended.
    """

    def __init__(
        self,
        dialect: Dialect,
        names: frozenset[str],
        *,
        parallel: bool = True,
        new_id: Callable[[], str] = new_call_id,
    ) -> None:
        self.completed = 0
        self.done = False
        self.cut = False
        self._dialect = dialect
        self._names = names
        self._parallel = parallel
        self._new_id = new_id
        self._cursor = Cursor()  # over what is undecided; of that, arguments have gone out
        self._index = 0
        self._call: Entry | None = None  # the one that was begun
        self._streamed: int | None = None  # where the arguments not yet out begin
        self._border = True  # nothing but space since the beginning, or since a call
        self._unclosed = False  # its closer has not come
        self._in_call = self._marked = False
        self._content: list[str] = []
        self._entries: list[Entry] = []
        self._reading = self._read()
        next(self._reading)

    def add(self, text: str) -> Said:
        if text and not self.done:
            self._cursor.text += text
            next(self._reading)
        return self._take()

    def finish(self, text: str, *, cut: bool) -> Said:
        """The last `text`, with what was held back. `cut`: it was stopped in the middle."""
        said = self.add(text)
        if self.done:
            return said
        self._cursor.ended = True
        self.cut = cut
        next(self._reading)
        rest = self._take()
        return Said(said.content + rest.content, said.tool_calls + rest.tool_calls)

    def _take(self) -> Said:
        self._stream_arguments()
        said = Said("".join(self._content), self._entries)
        self._content, self._entries = [], []
        return said

    # --- reading: generators that rest where they need more text ---------------------------------

    def _read(self) -> Generator[None]:
        while not self.done and not self._cursor.ended:
            try:
                self._in_call = False
                self._marked = yield from self._read_text()
                self._in_call = True
                yield from self._read_calls()
                self._unclosed = self._marked
            except NoJson:
                self._give_up()
            except Ended:
                self._end()
            except _Done:
                self.done = True
        while True:
            yield

    def _read_text(self) -> Generator[None, None, bool]:
        """Up to where a call may begin, or past its opener. -> whether there was one."""
        cursor, dialect = self._cursor, self._dialect
        while True:
            if self._border:
                yield from cursor.skip(SPACE + (dialect.between if self.completed else ""))
                if dialect.bare and cursor.char in "{[":
                    return False
            closer = dialect.closer if self._unclosed else ""
            at, found = cursor.find((dialect.opener, closer))
            if at > cursor.position or not self._border:
                self._say(at)
            if not found:
                yield from cursor.more()
                continue
            cursor.position += len(found)
            if found == dialect.opener:
                return True
            cursor.drop(cursor.position)
            self._unclosed, self._border = False, True

    def _read_calls(self) -> Generator[None]:
        """An object, a list of them, or `name[ARGS]{…}`."""
        cursor = self._cursor
        first = yield from cursor.solid()
        if first == "{":
            yield from self._read_object()
        elif first == "[":
            cursor.position += 1
            more = True
            while more:
                yield from cursor.solid()
                yield from self._read_object()
                more = (yield from cursor.one_of(",]")) == ","
            cursor.drop(cursor.position)
        elif self._marked:
            yield from self._read_named()

    def _read_object(self) -> Generator[None]:
        cursor = self._cursor
        yield from cursor.one_of("{")
        name: str | None = None
        arguments: str | None = None
        more = True
        while more:
            yield from cursor.solid()
            key = yield from cursor.read_string()
            yield from cursor.one_of(":")
            yield from cursor.solid()
            if key == "name" and name is None:
                name = self._known((yield from cursor.read_string()))
            elif key in ("arguments", "parameters") and arguments is None:
                arguments = yield from self._read_arguments(name)
            elif self._marked or key in _CALL_KEYS:
                yield from cursor.read_value()
            else:
                raise NoJson
            more = (yield from cursor.one_of(",}")) == ","
        if name is None or (arguments is None and not self._marked):
            raise NoJson
        self._complete(name, arguments_of(arguments or "{}"))

    def _read_named(self) -> Generator[None]:
        cursor, dialect = self._cursor, self._dialect
        ends = "{" + dialect.args[0] + dialect.call_id[0]
        longest = max(map(len, self._names), default=0)
        name = self._known((yield from cursor.next_of(ends, within=longest)))
        if (yield from cursor.starts_with(dialect.call_id)):
            yield from cursor.next_of(dialect.args[0], within=MOST_CALL_ID)
        yield from cursor.starts_with(dialect.args)
        self._complete(name, arguments_of((yield from self._read_arguments(name))))

    def _read_arguments(self, name: str | None) -> Generator[None, None, str]:
        """They go out as they come, if it is known whose they are."""
        if name is not None and (yield from self._cursor.solid()) == "{":
            self._begin(name)
            self._streamed = self._cursor.position
        arguments = yield from self._cursor.read_value()
        self._stream_arguments()
        self._streamed = None
        return arguments

    # --- what it comes to ------------------------------------------------------------------------

    def _known(self, name: str) -> str:
        name = name.strip()
        if name not in self._names:
            raise NoJson
        return name

    def _begin(self, name: str) -> None:
        function = {"name": name}
        call = {"index": self._index, "id": self._new_id(), "type": "function"}
        self._call = {**call, "function": function}
        self._entries.append(self._call)

    def _stream_arguments(self) -> None:
        if self._streamed is None or self._streamed == self._cursor.position:
            return
        arguments = self._cursor.text[self._streamed : self._cursor.position]
        self._entries.append({"index": self._index, "function": {"arguments": arguments}})
        self._streamed = self._cursor.position

    def _complete(self, name: str, arguments: str) -> None:
        if self._call is None:
            self._begin(name)
            self._entries.append({"index": self._index, "function": {"arguments": arguments}})
        assert self._call is not None
        whole = {**self._call, "function": {"name": name, "arguments": arguments}}
        self._entries.append({**whole, "complete": True})
        self._call = None
        self._index += 1
        self.completed += 1
        self._border = True
        self._cursor.drop(self._cursor.position)
        if not self._parallel:
            raise _Done

    def _say(self, count: int) -> None:
        self._content.append(self._cursor.drop(count).translate(_UNSHOWN))
        self._border = False

    def _give_up(self) -> None:
        """What was read as a call is none."""
        self._index += self._call is not None
        self._call = self._streamed = None
        self._say(self._cursor.position)

    def _end(self) -> None:
        """The answer ended, in a call or where one might have begun."""
        being_written = self._in_call and (self._marked or self._call is not None)
        self.cut = self.cut and being_written
        if self.cut:
            self._stream_arguments()
        elif self.completed == 0 or not self._border or self._cursor.text.strip():
            self._cursor.position = len(self._cursor.text)
            self._give_up()
