"""The fuzzer for a bounded number of inputs, and its parts: seeds, neighbours, what is reached."""

from __future__ import annotations

import importlib.util
import json
import random
from pathlib import Path

import pytest

from tests.fuzz import campaign, reached, script
from tests.fuzz.books import play
from tests.fuzz.mutating import crossed, mutated

RUNS = 1500
ATHERIS = importlib.util.find_spec("atheris")


def neighbours(count: int) -> list[bytes]:
    """Without libFuzzer: some bytes are shuffled where it would have its turn."""
    rng, seeds = random.Random(1), list(script.seeds())
    return [
        mutated(rng.choice(seeds), 4096, seed, lambda part, most: bytes(reversed(part))[:most])
        for seed in range(count)
    ]


def test_every_seed_holds() -> None:
    for seed in script.seeds():
        play(seed)


def test_neighbours_of_seeds_hold_and_most_are_json_still() -> None:
    texts = [step[1:] for data in neighbours(600) for step in script.divided(data)
             if step[:1] == script.TEXT]  # fmt: skip

    for data in neighbours(600):
        play(data)

    assert sum(map(is_json, texts)) > len(texts) / 2


def is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def test_the_same_seed_gives_the_same_neighbour() -> None:
    one, other = list(script.seeds())[-2:]

    assert neighbours(50) == neighbours(50)
    assert crossed(one, other, 4096, 7) == crossed(one, other, 4096, 7)
    assert len(crossed(one, other, 100, 7)) <= 100


def test_the_words_are_those_of_the_protocol_and_one_a_line() -> None:
    assert {"open", "heard_ms", "deadline_ms", "queue_full", "NaN"} <= set(script.words())
    assert all(line[0] == line[-1] == '"' for line in script.dictionary().splitlines())


def test_a_bad_invariant_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.wire.connection.Connection.forget", lambda *_: None)

    with pytest.raises(AssertionError):
        play(list(script.seeds())[-1])


def test_the_seeds_alone_reach_most_of_the_wire() -> None:
    found = {name: (lines, missing) for name, lines, missing in reached.by(script.seeds())}

    lines, missing = found["wire.connection"]
    assert len(missing) < lines / 2
    assert len(found) > 8


@pytest.mark.skipif(ATHERIS is None, reason="atheris has no wheel for this platform or Python")
def test_the_fuzzer_finds_nothing_in_a_bounded_run(tmp_path: Path) -> None:
    outcome = campaign.run(tmp_path, f"-runs={RUNS}", "-seed=7", seconds=150)

    assert outcome.ok, outcome.output[-4000:]
    assert outcome.runs >= RUNS
    assert outcome.edges > 250
