"""What is remembered of past chats: the longest beginning, of its own scope, within the bytes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from plait.engines.mlx.prefixes import PrefixStore

SCOPES = ("a", "b")
# Few different tokens, so that beginnings are shared; and long runs, to fill several blocks.
SEQUENCES = st.builds(
    lambda heads, repeats: [token for head in heads for token in [head] * repeats],
    st.lists(st.integers(0, 2), min_size=1, max_size=5),
    st.sampled_from([1, 3, 200]),
)


@dataclass(frozen=True)
class Entry:
    scope: str
    tokens: tuple[int, ...]
    size: int


class PlainStore:
    """The same promises kept by looking at everything: the least recently used is the first."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.most = 0

    def use(self, entry: Entry) -> None:
        self.entries.remove(entry)
        self.entries.append(entry)

    def longest(self, scope: str, tokens: list[int]) -> int:
        lengths = [agree(e.tokens, tuple(tokens)) for e in self.entries if e.scope == scope]
        return max(lengths, default=0)

    def trim(self, added: int = 0) -> None:
        while self.entries and sum(e.size for e in self.entries) + added > self.most:
            self.entries.pop(0)

    def keep(self, entry: Entry) -> None:
        """After the store's own look-up, which says what is used."""
        if entry.size > self.most:
            return
        of_scope = [e for e in self.entries if e.scope == entry.scope]
        if any(e.tokens[: len(entry.tokens)] == entry.tokens for e in of_scope):
            return
        covered = [e for e in of_scope if entry.tokens[: len(e.tokens)] == e.tokens]
        self.entries = [e for e in self.entries if e not in covered]
        self.trim(entry.size)
        self.entries.append(entry)


def agree(first: tuple[int, ...], second: tuple[int, ...]) -> int:
    return next(
        (n for n, (one, other) in enumerate(zip(first, second, strict=False)) if one != other),
        min(len(first), len(second)),
    )


class Pair:
    """The store beside the plain one, which is told what was used and checks everything else."""

    def __init__(self) -> None:
        self.store = PrefixStore()
        self.plain = PlainStore()

    def allow(self, most: int) -> None:
        self.store.allow(most)
        self.plain.most = most
        self.plain.trim()

    def find(self, scope: str, tokens: list[int]) -> None:
        found = self.store.find(scope, tokens)
        assert (found.shared if found else 0) == self.plain.longest(scope, tokens)
        if found:
            assert found.kept.scope == scope
            assert found.kept.tokens[: found.shared] == tokens[: found.shared]
            assert isinstance(found.kept.caches, Entry)
            self.plain.use(found.kept.caches)

    def keep(self, scope: str, tokens: list[int], size: int) -> None:
        self.find(scope, tokens)  # which `keep` does too
        entry = Entry(scope, tuple(tokens), size)
        self.store.keep(scope, tokens, entry, size)
        self.plain.keep(entry)

    def check(self) -> None:
        assert self.store.allocated_bytes == sum(e.size for e in self.plain.entries)
        assert self.store.allocated_bytes <= max(0, self.store.max_bytes)
        for entry in list(self.plain.entries):
            assert self.plain.longest(entry.scope, list(entry.tokens)) == len(entry.tokens)


STEPS = st.one_of(
    st.tuples(st.just("keep"), st.sampled_from(SCOPES), SEQUENCES, st.integers(0, 40)),
    st.tuples(st.just("find"), st.sampled_from(SCOPES), SEQUENCES, st.just(0)),
    st.tuples(st.just("allow"), st.just(""), st.just([0]), st.integers(0, 150)),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, max_size=40))
def test_it_finds_the_longest_beginning_forgets_the_oldest_and_never_exceeds_its_bytes(
    steps: list[tuple[str, str, list[int], int]],
) -> None:
    pair = Pair()
    pair.allow(100)
    for step, scope, tokens, number in steps:
        match step:
            case "keep":
                pair.keep(scope, tokens, number)
            case "find":
                pair.find(scope, tokens)
            case _:
                pair.allow(number)
        pair.check()


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from(SCOPES), SEQUENCES), max_size=20))
def test_when_nothing_may_be_kept_nothing_of_it_stays_behind(
    kept: list[tuple[str, list[int]]],
) -> None:
    store = PrefixStore(1000)
    for scope, tokens in kept:
        store.keep(scope, tokens, object(), 1)

    store.allow(0)

    assert store.allocated_bytes == 0
    assert all(store.find(scope, tokens) is None for scope, tokens in kept)
    assert vars(store) == vars(PrefixStore(0))


def test_a_longer_conversation_takes_the_place_of_its_own_beginning() -> None:
    store = PrefixStore(100)
    store.keep("a", [1, 2], "short", 10)

    store.keep("a", [1, 2, 3], "long", 15)
    store.keep("a", [1], "shorter", 5)

    assert store.allocated_bytes == 15
    found = store.find("a", [1, 2, 9])
    assert found is not None
    assert (found.kept.caches, found.shared) == ("long", 2)


def test_what_is_looked_up_stays_and_what_nobody_asked_for_goes() -> None:
    store = PrefixStore(20)
    store.keep("a", [1], "first", 10)
    store.keep("a", [2], "second", 10)
    store.find("a", [1])

    store.keep("b", [3], "third", 10)

    assert store.find("a", [2]) is None
    assert store.find("a", [1]) is not None


@pytest.mark.parametrize("size", [21, 1000])
def test_what_could_never_fit_drives_nothing_out(size: int) -> None:
    store = PrefixStore(20)
    store.keep("a", [1], "kept", 20)

    store.keep("a", [1, 2], "too big", size)

    found = store.find("a", [1, 2])
    assert found is not None
    assert found.kept.caches == "kept"
