"""The fuzzer's process: `python -m tests.fuzz.target CORPUS [-libFuzzer options]`.

Only plait.wire and the errors are instrumented: that is whose branches are to be reached. Does NOT
know what holds (see `books`, `checks`) nor how long it runs (see `campaign`).
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["plait.wire", "plait.errors"]):
    import plait.errors
    import plait.wire.connection
    import plait.wire.window  # noqa: F401

from tests.fuzz.books import play
from tests.fuzz.mutating import crossed, mutated


def vary(data: bytes, max_size: int, seed: int) -> bytes:
    return mutated(data, max_size, seed, lambda part, most: bytes(atheris.Mutate(part, most)))


def main() -> None:
    atheris.Setup(sys.argv, play, custom_mutator=vary, custom_crossover=crossed)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
