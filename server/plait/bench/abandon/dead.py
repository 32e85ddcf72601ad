"""Engine time by whom it was for: each second is shared by the requests that hold a slot in it.

Pure. Works from the outside of an engine, so it counts what an engine's own books cannot: the time
from the moment a reader left until the server knew. A request counts until its slot is confirmed
free, also where its engine rested in between; so the figure is rather too high than too low.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from plait.bench.abandon.target import Span

Interval = tuple[float, float]


def engine_seconds(spans: Mapping[int, Span], parts: Mapping[int, Interval]) -> float:
    """Engine time in the given part of each request's life, in seconds.

    `parts` by request index; what lies outside the time it held a slot counts nothing.
    """
    held = {
        index: (span.started_at, span.released_at)
        for index, span in spans.items()
        if span.started_at is not None
    }
    edges = sorted(
        {moment for interval in (*held.values(), *parts.values()) for moment in interval}
    )
    total = 0.0
    for begin, end in pairwise(edges):
        running = [index for index, span in held.items() if span[0] <= begin and end <= span[1]]
        meant = sum(1 for i in running if i in parts and _within(begin, end, parts[i]))
        if meant:
            total += (end - begin) * meant / len(running)
    return total


def _within(begin: float, end: float, part: Interval) -> bool:
    return part[0] <= begin and end <= part[1]
