"""Varies an input so that it mostly stays JSON: a value of a message, or a step of the sequence.

What random bytes would hardly ever reach lies behind the syntax: a known type with one field of
another type, an id used twice, a cancel after an end. Random bytes get their turn, too. The same
seed gives the same variation.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import cache
from typing import Any

from tests.fuzz.script import JSON_STEPS, PARAMS_OF, divided, joined, seeds, words

Bytes = Callable[[bytes, int], bytes]
"""libFuzzer's own mutation of some bytes, to at most so many."""

VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, 2, 3, -1, 63, 64, 256, 257, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53,
    2**63, -(2**63) - 1, 2**64, 0.5, -0.0, 1e308, 1e-320, "", "a", "\0", "é", "漢字", "\ud800",
    [], {}, [[]], {"a": 1}, [None], "chat", "embed", "interactive", "batch",
)  # fmt: skip
BYTES_SHARE, STEP_SHARE = 0.2, 0.45  # else: within the JSON of one step
MOST_STEPS = 40


def mutated(data: bytes, max_size: int, seed: int, mutate: Bytes) -> bytes:
    """A neighbour of `data`, at most `max_size` bytes long."""
    rng = random.Random(seed)
    steps = divided(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        choice = rng.random()
        if choice < BYTES_SHARE:
            at = rng.randrange(len(steps))
            steps[at] = steps[at][:1] + mutate(steps[at][1:] or b"0", max(16, max_size // 2))
        elif choice < STEP_SHARE:
            steps = _other_steps(steps, rng)
        else:
            at = rng.randrange(len(steps))
            steps[at] = _other_json(steps[at], rng)
    return joined(steps[:MOST_STEPS])[:max_size]


def crossed(one: bytes, other: bytes, max_size: int, seed: int) -> bytes:
    """Steps of both, in the order of each."""
    rng = random.Random(seed)
    head, tail = divided(one), divided(other)
    cut, from_ = rng.randint(0, len(head)), rng.randint(0, len(tail))
    return joined([*head[:cut], *tail[from_:]][:MOST_STEPS])[:max_size]


@cache
def _seed_steps() -> list[bytes]:
    return [step for seed in seeds() for step in divided(seed)]


@cache
def _words() -> list[str]:
    return words()


def _other_steps(steps: list[bytes], rng: random.Random) -> list[bytes]:
    at = rng.randrange(len(steps))
    kind = rng.randrange(4)
    if kind == 0:
        return [*steps[:at], rng.choice(_seed_steps()), *steps[at:]]
    if kind == 1:
        return [*steps[:at], steps[at], *steps[at:]]
    if kind == 2 and len(steps) > 1:
        return steps[:at] + steps[at + 1 :]
    other = rng.randrange(len(steps))
    steps[at], steps[other] = steps[other], steps[at]
    return steps


def _other_json(step: bytes, rng: random.Random) -> bytes:
    head = 2 if step[:1] == PARAMS_OF else 1
    if step[:1] not in (*JSON_STEPS, PARAMS_OF):
        return step
    try:
        value = json.loads(step[head:])
    except (ValueError, RecursionError):
        return step
    places = _places(value)
    if not places:
        return step
    node, key = rng.choice(places)
    _change(node, key, rng)
    text = json.dumps(value, ensure_ascii=rng.random() < 0.3)
    if rng.random() < 0.05:  # what JSON.dumps never writes: a key twice, or one in disguise
        text = text.replace('"id"', rng.choice(('"i\\u0064"', '"id":7,"id"')), 1)
    return step[:head] + text.encode("utf-8", "surrogatepass")


def _places(root: Any) -> list[tuple[Any, Any]]:
    """(container, key or index) of every value in `root`."""
    places, stack = [], [root]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            keys: list[Any] = list(node)
        elif isinstance(node, list):
            keys = list(range(len(node)))
        else:
            continue
        places += [(node, key) for key in keys]
        stack += [node[key] for key in keys]
    return places


def _change(node: Any, key: Any, rng: random.Random) -> None:
    kind = rng.randrange(7)
    if kind == 0 and isinstance(node[key], int):
        node[key] += rng.choice((-2, -1, 1, 2))
    elif kind == 1:
        del node[key]
    elif kind == 2 and isinstance(node, dict):
        node[rng.choice(_words())] = node[key]
    elif kind == 3:
        node[key] = [node[key]] * rng.choice((1, 2, 5, 20))
    elif kind == 4:
        for _ in range(rng.choice((1, 3, 61, 70))):
            node[key] = [node[key]] if rng.random() < 0.5 else {"a": node[key]}
    elif kind == 5:
        node[key] = rng.choice(_words())
    else:
        node[key] = rng.choice(VALUES)
