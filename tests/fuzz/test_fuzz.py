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
    except (ValueError, RecursionError):  # too deep for this reader: not counted
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


def test_the_table_names_each_line_that_was_never_reached_and_what_is_not_tried() -> None:
    rows = reached.table([("wire.a", 9, [3, 5, 6, 7]), ("wire.b", 2, []), ("wire.c", 2, [1, 2])])

    assert [row.split() for row in rows.splitlines()[1:3]] == [
        ["wire.a", "5", "of", "9", "never:", "3,", "5-7"],
        ["wire.b", "2", "of", "2"],
    ]
    assert "Not tried here" in rows.splitlines()[3]
    assert "wire.c" in rows.splitlines()[3]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "corpus").mkdir()
    monkeypatch.setattr(campaign, "HOME", tmp_path)
    return tmp_path


def test_a_run_without_findings_says_so_with_its_numbers(home: Path) -> None:
    said = campaign.verdict(campaign.Outcome(True, 4000, 384, [], ""), 20)

    assert said == "Nothing found in 20 s: 4,000 inputs, 384 edges, a corpus of 0."


def test_a_finding_is_told_with_its_exception_and_how_it_is_run_again(home: Path) -> None:
    old, new = home / "findings" / "crash-1", home / "findings" / "crash-2"
    output = "#1\tNEW\n === Uncaught Python exception: ===\nAssertionError: two terminals\n"

    said = campaign.verdict(campaign.Outcome(False, 9, 8, [old, new], output), 20, {old})

    assert "AssertionError: two terminals" in said
    assert f"FOUND: by an earlier run (delete it once it is mended), saved in {old}" in said
    assert f"FOUND: saved in {new}" in said
    assert f"-m tests.fuzz.target {new}" in said


def test_what_the_fuzzer_prints_is_counted_as_it_comes() -> None:
    heard = campaign.Heard()

    heard.take(["INFO: x\n", "#2\tINITED cov: 4 ft: 4\n", "#64\tNEW    cov: 7 ft: 9 corp: 3\n"])

    assert (heard.runs, heard.edges) == (64, 7)


@pytest.mark.skipif(ATHERIS is None, reason="atheris has no wheel for this platform or Python")
def test_the_fuzzer_finds_nothing_in_a_bounded_run(tmp_path: Path) -> None:
    outcome = campaign.run(tmp_path, f"-runs={RUNS}", "-seed=7", seconds=150)

    assert outcome.ok, outcome.output[-4000:]
    assert outcome.runs >= RUNS
    assert outcome.edges > 250
