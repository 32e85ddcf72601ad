"""What a case is: a small async function that asks one thing of a server, and how it fails.

A case is registered by `@case` with the part of PROTOCOL.md it checks, and gets a `Lab`. It returns
when the server did as promised, raises `Broken` when not, and `Skipped` when this server cannot be
asked. Does NOT know sockets, nor in which order cases run.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plait.conformance.lab import Lab

Run = Callable[["Lab"], Awaitable[None]]

CASES: list[Case] = []


class Broken(Exception):
    """The server did not keep a promise; `section` of PROTOCOL.md where it is not the case's."""

    def __init__(self, expected: str, seen: str, section: str = "") -> None:
        super().__init__(f"expected {expected}; seen: {seen}")
        self.expected = expected
        self.seen = seen
        self.section = section


class Skipped(Exception):
    """This server, as it is, cannot be asked; the message says why."""


@dataclass(frozen=True, slots=True)
class Case:
    """`needs`: methods the server must offer. `slow`: mostly waits, so runs only when asked for."""

    name: str
    section: str
    about: str
    run: Run
    needs: tuple[str, ...] = ()
    slow: bool = False

    def matches(self, patterns: Sequence[str]) -> bool:
        """True without patterns; else for a part, or a shell pattern, of its name or section."""
        texts = (self.name.lower(), self.section.lower())
        return not patterns or any(
            pattern.lower() in text or fnmatch.fnmatch(text, pattern.lower())
            for pattern in patterns
            for text in texts
        )


def case(
    section: str, about: str, *, needs: Sequence[str] = (), slow: bool = False
) -> Callable[[Run], Run]:
    """Register the decorated function under `module.function`."""

    def register(run: Run) -> Run:
        module = run.__module__.rpartition(".")[2]
        name = f"{module}.{getattr(run, '__name__', 'case')}"
        CASES.append(Case(name, section, about, run, tuple(needs), slow))
        return run

    return register


def expect(condition: object, expected: str, seen: object, section: str = "") -> None:
    """Raises Broken unless the condition holds."""
    if not condition:
        raise Broken(expected, str(seen), section)


def chosen(patterns: Sequence[str] = (), *, slow: bool = False) -> list[Case]:
    """The registered cases to run, in the order of PROTOCOL.md's sections."""
    from plait.conformance import sections

    sections.load()
    return [case for case in CASES if case.matches(patterns) and (slow or not case.slow)]
