"""The `/metrics` page of a foreign server, in llama-server's or in vLLM's words.

Counters are read before and after a run; whether the server is idle can only be polled. A server
without such a page has no account here. Does NOT know requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from plait.bench.abandon.http_exchange import Address, get
from plait.bench.serving import BenchError

IDLE_SECONDS = 900.0
POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Names:
    """Of the samples; those in `waiting` are 0 when there is nothing to do."""

    server: str
    decoded: str
    waiting: tuple[str, ...]


KNOWN = (
    Names(
        "llama-server",
        "llamacpp:tokens_predicted_total",
        ("llamacpp:requests_processing", "llamacpp:requests_deferred"),
    ),
    Names(
        "vLLM",
        "vllm:generation_tokens_total",
        ("vllm:num_requests_running", "vllm:num_requests_waiting"),
    ),
)


@dataclass(frozen=True, slots=True)
class Reading:
    """`decoded`: tokens so far; `waiting`: requests in work or in the queue."""

    server: str
    decoded: float
    waiting: float


class Gauges:
    def __init__(self, address: Address) -> None:
        self._address = address

    async def read(self) -> Reading | None:
        """None for a server with no such page, or with one of another kind."""
        try:
            page = await get(self._address, "/metrics")
        except BenchError:
            return None
        return reading(page.decode("utf-8", "replace"))

    async def idle(self) -> Reading | None:
        """Once nothing is in work. Raises BenchError when that does not come."""
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                # A foreign server tells nobody when it is done.
                while (now := await self.read()) is not None and now.waiting > 0:  # noqa: ASYNC110
                    await asyncio.sleep(POLL_SECONDS)
                return now
        except TimeoutError as error:
            raise BenchError(
                f"{self._address} still computes {IDLE_SECONDS:g} s after the last request; "
                "is somebody else using it?"
            ) from error


def reading(page: str) -> Reading | None:
    """Sums over labels (a vLLM has a series for each model)."""
    try:
        values = _sums(page)
    except ValueError:
        return None
    for names in KNOWN:
        if names.decoded in values:
            waiting = sum(values.get(name, 0.0) for name in names.waiting)
            return Reading(names.server, values[names.decoded], waiting)
    return None


def _sums(page: str) -> Mapping[str, float]:
    values: dict[str, float] = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            values[sample.name] = values.get(sample.name, 0.0) + sample.value
    return values
