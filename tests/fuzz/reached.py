"""Which lines of plait.wire a corpus reaches, by playing it once more under a tracer.

Lines of functions only: those of modules run when they are imported. Does NOT know how the corpus
came about.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

import plait.wire
from tests.fuzz.books import play


def by(inputs: Iterable[bytes]) -> list[tuple[str, int, list[int]]]:
    """(module, lines there are, numbers of those that were not reached)."""
    modules = [
        importlib.import_module(f"plait.wire.{module.name}")
        for module in pkgutil.iter_modules(plait.wire.__path__)
    ]
    seen: dict[str, set[int]] = {str(module.__file__): set() for module in modules}
    _trace(inputs, seen)
    found = []
    for module in modules:
        lines = set(_lines_of(module))
        missing = sorted(lines - seen[str(module.__file__)])
        found.append((module.__name__.removeprefix("plait."), len(lines), missing))
    return [entry for entry in found if entry[1]]


def table(found: Sequence[tuple[str, int, list[int]]]) -> str:
    """What `by` gives, for people: a line per module with the lines that no input reached."""
    rows = ["What the whole corpus reaches, in lines of functions:"]
    untouched = [name for name, lines, missing in found if len(missing) == lines]
    for name, lines, missing in found:
        if name not in untouched:
            never = f"  never: {_ranges(missing)}" if missing else ""
            rows.append(f"  {name:<18} {lines - len(missing):>3} of {lines:>3}{never}")
    if untouched:
        rows.append(
            f"  Not tried here, as no peer's bytes come there: {', '.join(untouched)}"
            " (see tests/wire)"
        )
    return "\n".join(rows)


def _ranges(numbers: Sequence[int]) -> str:
    """Ascending ones: 3, 5-7."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def _trace(inputs: Iterable[bytes], seen: dict[str, set[int]]) -> None:
    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        reached = seen.get(frame.f_code.co_filename)
        if reached is None:
            return None
        reached.add(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for data in inputs:
            play(data)
    finally:
        sys.settrace(before)


def _lines_of(module: ModuleType) -> Iterator[int]:
    path = Path(str(module.__file__))
    stack: list[CodeType] = [compile(path.read_text("utf-8"), str(path), "exec")]
    while stack:
        code = stack.pop()
        if code.co_flags & 0x02:  # CO_NEWLOCALS: a function's, not a module's or a class's
            yield from {line for _, _, line in code.co_lines() if line} - {code.co_firstlineno}
        stack += [const for const in code.co_consts if isinstance(const, CodeType)]
