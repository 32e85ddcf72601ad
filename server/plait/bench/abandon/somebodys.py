"""The account of a server that is not ours: by its `/metrics` page, else nothing is known.

The page counts tokens of all requests, so what was decoded for readers who had left is what it
decoded beyond the tokens that were received, as a mean. Nobody else may use the server meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

from plait.bench.abandon.gauges import Gauges, Reading
from plait.bench.abandon.http_exchange import Address
from plait.bench.abandon.openai_target import StreamedAnswer
from plait.bench.abandon.served import Sent
from plait.bench.abandon.target import Account


def accountant_for(address: Address) -> GaugeAccountant:
    return GaugeAccountant(Gauges(address))


class GaugeAccountant:
    """Reads the page before and after a run."""

    def __init__(self, gauges: Gauges) -> None:
        self._gauges = gauges
        self._before: Reading | None = None

    async def begin(self) -> None:
        self._before = await self._gauges.idle()

    def sent(self, answer: StreamedAnswer) -> None:
        """Nobody tells when it begins, unless the answer itself does."""

    async def account(self, sent: Sequence[Sent]) -> Account:
        after = await self._gauges.idle()
        if self._before is None or after is None:
            return Account("unknown: it has no metrics that we can read")
        return account_of(self._before, after, sent)


def account_of(before: Reading, after: Reading, sent: Sequence[Sent]) -> Account:
    """Whole answers are taken at the server's own count of them, where it gives one."""
    live = sum(
        request.received
        if request.hung_up is not None or request.completion_tokens is None
        else request.completion_tokens
        for request in sent
    )
    left = sum(request.hung_up is not None for request in sent)
    beyond = max(0.0, after.decoded - before.decoded - live)
    source = f"{after.server}'s /metrics: decoded less received"
    return Account(source, mean_after=beyond / left if left else None)
