"""§6, "Floods": opens beyond the rate are refused, real floods close, a paced client never is."""

from __future__ import annotations

import asyncio

from plait.conformance.cases import Skipped, case, expect
from plait.conformance.lab import Lab

BURST = 2
FLOOD = 20
MOST_OPENS = 4000
MOST_PINGS = 200_000
PIECE = 200  # in a segment


def _rate(lab: Lab, most: int) -> int:
    """Raises Skipped for a rate that would take too long to exceed."""
    rate = int(lab.limits["opens_per_second"])
    if BURST * rate > most:
        raise Skipped(f"limits.opens_per_second is {rate}")
    return rate


@case("§6 flood", "opens beyond twice opens_per_second: rejected rate_limited, when to retry")
async def rate_limited(lab: Lab) -> None:
    rate = _rate(lab, MOST_OPENS)
    async with lab.connect() as peer:
        count = BURST * rate * 2 + 10
        streams = [peer.open("no such method", {}) for _ in range(count)]
        await peer.ended(*streams)
        limited = [s for s in streams if s.error.get("code") == "rate_limited"]
        expect(limited, "`rejected rate_limited` for some", f"none of {count} opens")
        retry = limited[0].error.get("retry_after_ms")
        expect(isinstance(retry, int) and retry >= 0, "retry_after_ms", limited[0].error)
        served = len(streams) - len(limited)
        expect(served >= BURST * rate, f"{BURST * rate} in a burst", f"{served} were read")
        lab.note(f"{served} of {count} passed, then retry_after_ms {retry}")
        await peer.barrier()


@case("§6 flood", "an open that was rate_limited costs nothing else: later ones are served")
async def recovers(lab: Lab) -> None:
    rate = _rate(lab, MOST_OPENS)
    async with lab.connect() as peer:
        streams = [peer.open("no such method", {}) for _ in range(BURST * rate + rate)]
        await peer.ended(*streams)
        limited = [s for s in streams if s.error.get("code") == "rate_limited"]
        if not limited:
            raise Skipped("the rate was not exceeded")
        bystander = limited[-1]
        retry = bystander.error.get("retry_after_ms", 1000)
        await lab.pause(peer, retry / 1000 + 0.2)
        await lab.works(peer)


@case("§6 flood", "messages far beyond 20 times the rate: close 4429, and nobody else's")
async def flood(lab: Lab) -> None:
    rate = _rate(lab, MOST_PINGS // FLOOD // BURST)
    async with lab.connect() as bystander, lab.connect() as peer:
        sent = 0
        while not peer.closed and sent < 8 * BURST * FLOOD * rate:
            peer.say(*({"type": "ping", "n": n} for n in range(PIECE)))
            sent += PIECE
            await asyncio.sleep(0)  # its reading task is to see the close
        await peer.closes(4429, f"{sent} pings at once")
        lab.note(f"within {sent} pings")
        await bystander.barrier()
        await lab.works(bystander)


@case("§6 flood", "a client paced by the answers is never closed: 400 pings, one by one")
async def paced(lab: Lab) -> None:
    async with lab.connect() as peer:
        for _ in range(400):
            await peer.barrier()
