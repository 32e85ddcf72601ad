"""What is remembered of chats that are over: token sequences, each with the cache it left behind.

One radix tree per scope, so looking up costs as much as the prompt is long, however much is kept.
Invariants: never more bytes than allowed, the least recently used goes first; a lookup sees its own
scope only; no sequence is kept that another one of its scope begins with, so all are leaves. Pure
bookkeeping: the caches are opaque, and their sizes are what the caller says.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from plait.engines.prefixes import common_prefix


@dataclass(slots=True, eq=False)
class Kept:
    """`caches` hold keys and values of exactly `tokens`, in `allocated_bytes`."""

    scope: str
    tokens: list[int]
    caches: Any
    allocated_bytes: int


class Found(NamedTuple):
    """The first `shared` tokens of `kept` are those that were asked for."""

    kept: Kept
    shared: int


@dataclass(slots=True, eq=False)
class _Node:
    """`label`: the tokens from its parent to here. Every leaf but an empty root has its `kept`."""

    label: list[int] = field(default_factory=list)
    children: dict[int, _Node] = field(default_factory=dict)  # by the first token of their label
    kept: Kept | None = None


class PrefixStore:
    def __init__(self, max_bytes: int = 0) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._roots: dict[str, _Node] = {}
        self._by_age: dict[Kept, None] = {}  # least recently used first

    @property
    def allocated_bytes(self) -> int:
        return self._bytes

    @property
    def max_bytes(self) -> int:
        return self._max_bytes

    def allow(self, max_bytes: int) -> None:
        """What does not fit any more goes at once."""
        self._max_bytes = max_bytes
        self.make_room(0)

    def make_room(self, added_bytes: int) -> None:
        """Let go until so much can be added; of everything if it never fits."""
        while self._by_age and self._bytes + added_bytes > self._max_bytes:
            self._drop(next(iter(self._by_age)))

    def find(self, scope: str, tokens: list[int]) -> Found | None:
        """The longest beginning of `tokens` that is kept; it counts as used now."""
        node, shared = self._descend(scope, tokens)
        if node is None or shared == 0:
            return None
        while node.kept is None:
            node = next(iter(node.children.values()))
        self._by_age[node.kept] = self._by_age.pop(node.kept)
        return Found(node.kept, shared)

    def keep(self, scope: str, tokens: list[int], caches: Any, allocated_bytes: int) -> None:
        """Unless it is too big, or a longer sequence begins with it (which is then used now)."""
        found = self.find(scope, tokens)
        if allocated_bytes > self._max_bytes or not tokens:
            return
        if found is not None and found.shared == len(tokens):
            return
        if found is not None and found.shared == len(found.kept.tokens):
            self._drop(found.kept)  # the new one says all it said
        self.make_room(allocated_bytes)
        kept = Kept(scope, tokens, caches, allocated_bytes)
        self._plant(kept)
        self._by_age[kept] = None
        self._bytes += allocated_bytes

    def _descend(self, scope: str, tokens: list[int]) -> tuple[_Node | None, int]:
        """-> (the node in or at whose label the agreement ends, tokens that agree)."""
        node = self._roots.get(scope)
        shared = 0
        while node is not None and shared < len(tokens):
            child = node.children.get(tokens[shared])
            if child is None:
                break
            agreed = common_prefix(child.label, tokens[shared : shared + len(child.label)])
            node, shared = child, shared + agreed
            if agreed < len(child.label):
                break
        return node, shared

    def _plant(self, kept: Kept) -> None:
        """A leaf for `kept`, which begins like others but is no beginning, and no other's end."""
        node, depth = self._roots.setdefault(kept.scope, _Node()), 0
        while True:
            rest = kept.tokens[depth:]
            child = node.children.get(rest[0])
            if child is None:
                node.children[rest[0]] = _Node(rest, kept=kept)
                return
            agreed = common_prefix(child.label, rest)
            if agreed < len(child.label):
                fork = _Node(child.label[:agreed])
                child.label = child.label[agreed:]
                fork.children[child.label[0]] = child
                node.children[rest[0]] = child = fork
            node, depth = child, depth + agreed

    def _drop(self, kept: Kept) -> None:
        del self._by_age[kept]
        self._bytes -= kept.allocated_bytes
        grandparent: _Node | None = None
        parent: _Node | None = None
        node, depth = self._roots[kept.scope], 0
        while node.kept is not kept:
            grandparent, parent, node = parent, node, node.children[kept.tokens[depth]]
            depth += len(node.label)
        assert parent is not None, "a root keeps nothing"
        del parent.children[node.label[0]]
        if parent is self._roots[kept.scope]:
            if not parent.children:
                del self._roots[kept.scope]
        elif len(parent.children) == 1:
            assert grandparent is not None, "only a root has no parent"
            (only,) = parent.children.values()
            only.label = parent.label + only.label
            grandparent.children[only.label[0]] = only
