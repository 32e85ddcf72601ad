"""The slow path of decoding: a text the decoder refused, and now: whose is it, and which field?

Only refused texts come here, so a well-formed message never pays for it. Three readers, from the
strictest to the most patient: msgspec (valid JSON, wrong values), the standard library (NaN, lone
surrogates: not JSON, but still readable), and a scanner without recursion (nested too deep).
Work is bounded by `MAX_VALUES` and `MAX_TOKENS`, because the event loop waits for it. Names found
in a text are the peer's: only short plain identifiers get into a path. This module does NOT know
what the messages mean (see `codec`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

MAX_DEPTH = 64
MAX_VALUES = 20_000
MAX_TOKENS = 10_000

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_AT = re.compile(r" - at `(?:key in )?\$(.*)`$", re.DOTALL)
_MISSING = re.compile(r"^Object missing required field `(\w+)`")
_TOKEN = re.compile(
    r'\s*(?:("[^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+")|([\[\]{}:,])|([^\s"\[\]{}:,]++))'
)

# From a value's own key outwards: a path costs a child the same at any depth.
_Place: TypeAlias = "tuple[_Place, str | int] | None"


class Unreadable(Exception):
    """Not JSON, not even by the most patient reader."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong, and the path to it (empty: no field to name)."""

    path: str
    what: str


@dataclass(frozen=True, slots=True)
class Reading:
    """A refused text as far as it could be read. `type` and `id` are None unless well-typed."""

    type: str | None
    id: int | None
    fault: Fault


class _Head(msgspec.Struct):
    type: msgspec.Raw = msgspec.Raw(b"null")
    id: msgspec.Raw = msgspec.Raw(b"null")


class _NotJson:
    """Stands for a constant JSON lacks: NaN, Infinity, -Infinity."""

    def __init__(self, name: str) -> None:
        self.name = name


_head = msgspec.json.Decoder(_Head)


def read_refused(text: str, error: Exception) -> Reading:
    """Find type, id and the first fault of `text`, which raised `error` when decoded.

    Raises Unreadable when it is not JSON, not an object, or too much to look through.
    """
    if isinstance(error, RecursionError):
        return _scan(text)
    if isinstance(error, msgspec.ValidationError):
        try:
            head = _head.decode(text)
        except (msgspec.DecodeError, RecursionError):
            pass  # refused for one value, and broken further on: let the next reader look
        else:
            return Reading(_loads(head.type, str), _loads(head.id, int), fault_of(error))
    return _read_patiently(text)


def fault_of(error: msgspec.ValidationError) -> Fault:
    """msgspec's report as a path of ours: "Expected `int` - at `$.a[0].b`" -> a[0].b"""
    report = str(error)
    at = _AT.search(report)
    path = at.group(1).split("[...]")[0].lstrip(".") if at else ""
    what = report[: at.start()] if at else report
    missing = _MISSING.match(what)
    if missing:
        path = f"{path}.{missing.group(1)}".lstrip(".")
        what = "this field is required"
    return Fault(path, what[:200])


def _loads(raw: msgspec.Raw, kind: type) -> Any:
    """The value of a scalar, None if it is of another type (a bool is no int)."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.DecodeError:
        return None


# --- the patient reader ------------------------------------------------------------------------


def at_most_values(text: str | bytes) -> int:
    """How many JSON values `text` can hold at most, without parsing: what a parse would cost."""
    if isinstance(text, bytes):
        return 1 + text.count(b",") + text.count(b"[") + text.count(b"{")
    return 1 + text.count(",") + text.count("[") + text.count("{")


def _read_patiently(text: str) -> Reading:
    if at_most_values(text) > MAX_VALUES:
        raise Unreadable("not valid JSON, and too long to look for the reason")
    try:
        value = json.loads(text, parse_constant=_NotJson)
    except RecursionError:
        return _scan(text)
    except ValueError as error:
        raise Unreadable("not valid JSON") from error
    if not isinstance(value, dict):
        raise Unreadable("not a JSON object")
    kind, id = value.get("type"), value.get("id")
    return Reading(
        kind if isinstance(kind, str) else None,
        id if type(id) is int else None,
        next(_faults(value), Fault("", "this message cannot be read")),
    )


def _faults(root: dict[str, Any]) -> Iterator[Fault]:
    """What is not JSON in `root`, in no particular order, with its path."""
    stack: list[tuple[_Place, dict[str, Any] | list[Any]]] = [(None, root)]
    while stack:
        place, node = stack.pop()
        if isinstance(node, dict) and any(_has_surrogate(key) for key in node):
            what = "a key holds half of a surrogate pair: not valid Unicode"
            yield Fault(_path(*_keys(place)), what)
        for key, child in node.items() if isinstance(node, dict) else enumerate(node):
            if isinstance(child, (dict, list)):
                stack.append(((place, key), child))
            elif isinstance(child, _NotJson):
                yield Fault(_path(*_keys((place, key))), f"{child.name} is not a JSON number")
            elif isinstance(child, str) and _has_surrogate(child):
                what = "holds half of a surrogate pair: not valid Unicode"
                yield Fault(_path(*_keys((place, key))), what)


def _keys(place: _Place) -> list[str | int]:
    """The keys that lead there."""
    keys = []
    while place is not None:
        place, key = place
        keys.append(key)
    return keys[::-1]


def _has_surrogate(text: str) -> bool:
    return not text.isascii() and re.search("[\ud800-\udfff]", text) is not None


def _path(*keys: str | int) -> str:
    """`a.b[0]`, up to the first key that is no name to repeat to anyone."""
    path = ""
    for key in keys:
        if isinstance(key, int):
            path += f"[{key}]"
        elif _PLAIN_NAME.fullmatch(key):
            path = f"{path}.{key}".lstrip(".")
        else:
            break
    return path


# --- the scanner: brackets only, no recursion --------------------------------------------------


def _scan(text: str) -> Reading:
    """Type, id and the first path nested deeper than MAX_DEPTH. Raises Unreadable."""
    scan = _Scan()
    for token in _tokens(text):
        scan.take(token)
    if scan.closers or not text.lstrip().startswith("{"):
        raise Unreadable("not a JSON object, or it ends too early")
    return Reading(
        _loads(scan.raw("type"), str),
        _loads(scan.raw("id"), int),
        Fault(scan.deep or "", f"nested more than {MAX_DEPTH} levels deep"),
    )


class _Scan:
    """Follows brackets; remembers the scalars of the top level and where it gets too deep."""

    def __init__(self) -> None:
        self.closers: list[str] = []
        self.deep: str | None = None
        self._scalars: dict[str, str] = {}
        self._keys = ["", "", ""]  # the current key at depth 0 (there is none), 1 and 2
        self._last = ""

    def raw(self, key: str) -> msgspec.Raw:
        return msgspec.Raw(self._scalars.get(key, "null").encode("utf-8", "replace"))

    def take(self, token: str) -> None:
        if token in "[{":
            self._open("]" if token == "[" else "}")
        elif token in "]}":
            if not self.closers or self.closers.pop() != token:
                raise Unreadable("not valid JSON: brackets do not match")
        elif token in ":,":
            self._enter(_key(self._last) if token == ":" else "")
        elif len(self.closers) == 1:
            self._scalars[self._keys[1]] = token
        self._last = token

    def _open(self, closer: str) -> None:
        self.closers.append(closer)
        if self.deep is None and len(self.closers) > MAX_DEPTH:
            self.deep = _path(*self._keys[1:])

    def _enter(self, key: str) -> None:
        """A colon or a comma: from here on, values belong to `key` (none after a comma)."""
        depth = len(self.closers)
        if depth in (1, 2) and self.closers[-1] == "}":
            self._keys[depth:] = [key, *[""] * (2 - depth)]


def _key(token: str) -> str:
    """What a string means as a key; "i\\u0064" is id, too."""
    if "\\" not in token:
        return token[1:-1]
    return _loads(msgspec.Raw(token.encode("utf-8", "replace")), str) or ""


def _tokens(text: str) -> Iterator[str]:
    """Strings, brackets, colons, commas and bare words of `text`."""
    position = 0
    for _ in range(MAX_TOKENS):
        match = _TOKEN.match(text, position)
        if match is None:
            if text[position:].strip():
                raise Unreadable("not valid JSON")
            return
        position = match.end()
        yield match.group(match.lastindex or 0)
    raise Unreadable(f"nested more than {MAX_DEPTH} levels deep, and too long to look through")
