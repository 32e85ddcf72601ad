"""From what a server tells of its work, request by request, to what it did for readers who left.

Pure. A server's own record numbers its tasks in order of arrival and does not know our requests;
`matched` pairs the two by order, and where requests came within moments of each other by how they
ended. All moments are on the client's monotonic clock. Does NOT know any server nor its log.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from plait.bench.abandon import target
from plait.bench.abandon.dead import engine_seconds
from plait.bench.abandon.target import Account

NOTICE_SECONDS = 1.5  # a server may look once a second whether its client is still there
SWAP_SECONDS = 0.5  # requests sent closer together may have changed places
CLOCK_SECONDS = 0.05  # the two clocks agree that well
IMPOSSIBLE = 1000.0
UNSEEN = 10 * IMPOSSIBLE  # a request may have left before the server took it up
NEVER = 100 * UNSEEN  # one that was answered was seen


@dataclass(slots=True)
class Sent:
    """A request as its client saw it. `received`: tokens that had arrived when it left or ended."""

    index: int
    at: float
    received: int = 0
    first: float | None = None
    ended: float | None = None
    hung_up: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """Prompt tokens computed from `begin` to `end`; `seconds`: engine time charged for them."""

    begin: float
    end: float
    tokens: int
    seconds: float = 0.0

    def share_after(self, moment: float) -> float:
        if moment <= self.begin:
            return 1.0
        return 0.0 if moment >= self.end else (self.end - moment) / (self.end - self.begin)


@dataclass(slots=True)
class Work:
    """A task as its server saw it. None: that never happened (or, `cancelled`, was not noticed).

    `decode_seconds`: engine time charged for all `decoded` tokens.
    """

    order: int
    launched: float | None = None
    released: float | None = None
    cancelled: float | None = None
    prefill: list[Span] = field(default_factory=list)
    decoded: int = 0
    decode_seconds: float = 0.0

    @property
    def prompt_tokens(self) -> int:
        """Computed ones."""
        return sum(span.tokens for span in self.prefill)


def account(
    pairs: Sequence[tuple[Sent, Work]], source: str, busy_seconds: float, cpu_seconds: float | None
) -> Account:
    """A hang-up's tokens: decoded beyond those that had arrived, and prompt tokens after it.

    `dead_seconds` by the time each request held a slot, as for Plait.
    """
    told = Account(source, busy_seconds=busy_seconds, cpu_seconds=cpu_seconds)
    told.decoded_after, told.prefilled_after = {}, {}
    parts = {}
    for sent, work in pairs:
        if work.launched is not None:
            told.queue_waits[sent.index] = max(0.0, work.launched - sent.at)
        if work.released is not None:
            told.spans[sent.index] = _span(sent, work)
        if sent.hung_up is None:
            continue
        told.decoded_after[sent.index] = _decoded_after(sent, work)
        told.prefilled_after[sent.index] = sum(_chunks_after(sent, work))
        if work.released is not None and work.released > sent.hung_up:
            parts[sent.index] = (sent.hung_up, work.released)
    told.dead_seconds = engine_seconds(told.spans, parts)
    hung_up = len(told.decoded_after)
    told.mean_after = sum(told.decoded_after.values()) / hung_up if hung_up else None
    return told


def charged_dead_seconds(pairs: Iterable[tuple[Sent, Work]]) -> float:
    """Of a server that tells each step's time: what was computed after the hang-ups took."""
    dead = 0.0
    for sent, work in pairs:
        if sent.hung_up is not None:
            dead += sum(span.seconds * part for span, part in _prefill_after(sent, work))
            if work.decoded:
                dead += work.decode_seconds * _decoded_after(sent, work) / work.decoded
    return dead


def _decoded_after(sent: Sent, work: Work) -> int:
    return max(0, work.decoded - sent.received)


def _prefill_after(sent: Sent, work: Work) -> list[tuple[Span, float]]:
    """Each part of the prompt with the share of it that came after the hang-up."""
    if sent.hung_up is None or sent.received:
        return []
    return [(span, span.share_after(sent.hung_up)) for span in work.prefill]


def _chunks_after(sent: Sent, work: Work) -> tuple[int, ...]:
    chunks = (round(span.tokens * part) for span, part in _prefill_after(sent, work))
    return tuple(tokens for tokens in chunks if tokens)


def _span(sent: Sent, work: Work) -> target.Span:
    assert work.released is not None
    chunks = _chunks_after(sent, work)
    return target.Span(work.launched, work.released, work.decoded, work.prompt_tokens, chunks)


def busy_seconds(works: Iterable[Work]) -> float:
    """How long at least one task was in work."""
    spans = sorted((w.launched, w.released) for w in works if w.launched and w.released)
    total, until = 0.0, float("-inf")
    for begin, end in spans:
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total


# --- whose task is whose request -------------------------------------------------------------


def matched(sent: Iterable[Sent], works: Iterable[Work]) -> list[tuple[Sent, Work]]:
    """Pairs of a request and its task, an empty one where the server saw nothing of the request."""
    requests, tasks = sorted(sent, key=attrgetter("at")), sorted(works, key=attrgetter("order"))
    pairs = [(requests[i], tasks[j]) for i, j in _aligned(requests, tasks)]
    while any(_swap_if_better(pairs, i, j) for i in range(len(pairs)) for j in range(i)):
        pass
    seen = {request.index for request, _ in pairs}
    unseen = [r for r in requests if r.hung_up is not None and r.index not in seen]
    return pairs + [(request, Work(-1)) for request in unseen]


def _swap_if_better(pairs: list[tuple[Sent, Work]], i: int, j: int) -> bool:
    (a, x), (b, y) = pairs[i], pairs[j]
    if abs(a.at - b.at) >= SWAP_SECONDS:
        return False
    # By more than rounding, or two might change places for ever.
    better = mismatch(a, y) + mismatch(b, x) < mismatch(a, x) + mismatch(b, y) - 1e-6
    if better:
        pairs[i], pairs[j] = (a, y), (b, x)
    return better


def mismatch(sent: Sent, work: Work) -> float:
    """Seconds by which the two accounts disagree."""
    off = 0.0
    if work.launched is not None and work.launched < sent.at - CLOCK_SECONDS:
        off += IMPOSSIBLE
    if work.decoded < sent.received:
        off += IMPOSSIBLE
    if sent.hung_up is None:
        if work.cancelled is not None or work.released is None or sent.ended is None:
            return off + IMPOSSIBLE
        return off + abs(work.released - sent.ended)
    noticed = work.cancelled if work.cancelled is not None else work.released
    if noticed is None:
        return off + IMPOSSIBLE
    latest = sent.hung_up + NOTICE_SECONDS
    return off + max(0.0, sent.hung_up - noticed, (noticed - latest) / 10)


def _aligned(requests: Sequence[Sent], tasks: Sequence[Work]) -> list[tuple[int, int]]:
    """The cheapest pairing that keeps both orders."""
    width = len(tasks) + 1
    costs = [[UNSEEN * j for j in range(width)]]
    for request in requests:
        skip = UNSEEN if request.hung_up is not None else NEVER
        above = costs[-1]
        row = [above[0] + skip]
        for j, task in enumerate(tasks):
            both = above[j] + mismatch(request, task)
            row.append(min(both, above[j + 1] + skip, row[j] + UNSEEN))
        costs.append(row)
    pairs = []
    i, j = len(requests), len(tasks)
    while i and j:
        skip = UNSEEN if requests[i - 1].hung_up is not None else NEVER
        if costs[i][j] == costs[i - 1][j - 1] + mismatch(requests[i - 1], tasks[j - 1]):
            i, j = i - 1, j - 1
            pairs.append((i, j))
        elif costs[i][j] == costs[i - 1][j] + skip:
            i -= 1
        else:
            j -= 1
    return pairs[::-1]
