"""What a job answers, as items: frames of whole rows, or JSON, and an error in a text's place.

Rows that follow each other go into one frame, up to 64 KiB with its header; texts that were cut and
others are in frames apart, since a frame's flag is for all its rows. Does NOT know batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from plait.engines.base import Item
from plait.errors import PlaitError
from plait.wire.frames import MAX_ROWS_BYTES, BinaryFlags, BinaryKind

FLOAT_BYTES: Final = 4
_DIGITS: Final = 9  # enough to read the same float32 again


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A text's vector, or the error in its place. `tokens`: what was computed for it.
    `credit_bytes`: what its input counts for."""

    index: int
    outcome: NDArray[np.float32] | PlaitError
    tokens: int
    truncated: bool
    credit_bytes: int

    @property
    def failed(self) -> bool:
        return isinstance(self.outcome, PlaitError)


def rows_per_frame(dims: int) -> int:
    return max(1, MAX_ROWS_BYTES // (dims * FLOAT_BYTES))


def items(job: int, answers: Sequence[Answer], *, as_json: bool) -> Iterator[Item]:
    """`answers` in order of index, without gaps."""
    for (failed, truncated), group in groupby(answers, lambda a: (a.failed, a.truncated)):
        found = list(group)
        if failed or as_json:
            yield from (_json_item(job, answer) for answer in found)
        else:
            yield from _rows(job, found, truncated=truncated)


def _rows(job: int, answers: list[Answer], *, truncated: bool) -> Iterator[Item]:
    first = answers[0].outcome
    assert isinstance(first, np.ndarray)
    count = rows_per_frame(len(first))
    flags = BinaryFlags.TRUNCATED if truncated else BinaryFlags.NONE
    for begin in range(0, len(answers), count):
        part = answers[begin : begin + count]
        data = b"".join(np.asarray(answer.outcome, "<f4").tobytes() for answer in part)
        kind = int(BinaryKind.ROWS)
        yield Item(job, data, len(part), kind, int(flags), part[0].index)


def _json_item(job: int, answer: Answer) -> Item:
    outcome = answer.outcome
    data: dict[str, Any] = {"index": answer.index}
    if isinstance(outcome, PlaitError):
        data["error"] = _error(outcome)
    else:
        data["embedding"] = [float(f"{number:.{_DIGITS}g}") for number in outcome.tolist()]
        if answer.truncated:
            data["truncated"] = True
    flags = BinaryFlags.TRUNCATED if answer.truncated else BinaryFlags.NONE
    return Item(job, msgspec.json.encode(data), flags=int(flags), aux=answer.index)


def _error(error: PlaitError) -> dict[str, Any]:
    """As PROTOCOL.md §6 has it."""
    shown: dict[str, Any] = {
        "code": error.code,
        "class": error.error_class,
        "message": error.message,
        "retryable": error.retryable,
    }
    return shown if error.data is None else shown | {"data": error.data}
