"""Runs cases one after another, each with connections of its own, and judges each.

A case is broken by what it raises or by any frame that broke a rule on the way, and no case ends
the run. Does NOT know what a case asks, nor how an outcome is shown.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence

from websockets.exceptions import ConnectionClosed, InvalidHandshake

from plait.conformance.cases import Broken, Case, Skipped
from plait.conformance.heard import Message
from plait.conformance.lab import Lab, Settings
from plait.conformance.peer import Peer
from plait.conformance.report import Fault, Outcome, Verdict
from plait.conformance.target import Target, TargetError

SLOW_CASE_SECONDS = 90.0  # on top, for a case that waits for the protocol's own time-outs
CASE_WAITS = 4  # so many time-outs a case may take as a whole
NO_TOKEN = 4401  # the code a page without one is closed with
MAX_FAULTS = 8  # shown per case: the rest follows from them


async def welcome_of(target: Target) -> Message:
    """What the server says first. Raises TargetError when it cannot be reached."""
    peer = Peer(await target.reach(), target.seconds)
    try:
        welcome = await peer.until(lambda: peer.welcome, "`welcome`")
    except Broken as broken:
        hint = " Give --token, or set PLAIT_TOKEN." if peer.close_code == NO_TOKEN else ""
        raise TargetError(f"{target.url} said no welcome: {broken}.{hint}") from broken
    finally:
        await peer.drop()
    if not isinstance(welcome.get("methods"), dict) or not isinstance(welcome.get("limits"), dict):
        raise TargetError(f"{target.url} said a welcome without methods or limits: {welcome}")
    return welcome


async def run_case(case: Case, target: Target, settings: Settings, welcome: Message) -> Outcome:
    chance = random.Random(f"{settings.seed}:{case.name}")
    lab = Lab(target, settings, welcome, chance)
    begin = time.monotonic()
    fault: Fault | None = None
    why = _missing(case, lab)
    if not why:
        try:
            await _within(case, lab)
        except Skipped as skipped:
            why = str(skipped)
        except Broken as broken:
            fault = Fault(broken.section or case.section, broken.expected, broken.seen)
    return _judge(case, lab, time.monotonic() - begin, fault, why)


async def _within(case: Case, lab: Lab) -> None:
    """Raises Broken, also for a server that is gone, and for a case that takes for ever."""
    seconds = CASE_WAITS * lab.target.seconds + (SLOW_CASE_SECONDS if case.slow else 0)
    try:
        async with asyncio.timeout(seconds):
            await case.run(lab)
    except TimeoutError as error:
        raise Broken(f"an end of the case within {seconds:g} s", "none") from error
    except (OSError, InvalidHandshake, ConnectionClosed) as error:
        raise Broken("a server that can be connected to", f"{error}", "§1") from error
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        # Cases take messages as PROTOCOL.md gives them: this server's had another shape.
        raise Broken("messages of the documented shape", f"{error!r} when reading one") from error


def _missing(case: Case, lab: Lab) -> str:
    lacking = [method for method in case.needs if method not in lab.methods]
    return f"the server does not offer {' nor '.join(lacking)}" if lacking else ""


def _judge(case: Case, lab: Lab, seconds: float, fault: Fault | None, why: str) -> Outcome:
    faults = [fault] if fault else []
    culprits = [peer for peer in lab.peers if peer.checker.faults] or lab.peers[-1:]
    for peer in lab.peers:
        faults += [Fault(*found) for found in peer.checker.faults]
    verdict: Verdict = "broken" if faults else "skipped" if why else "holds"
    return Outcome(
        case.name,
        case.section,
        case.about,
        verdict,
        round(seconds, 3),
        [*lab.notes, *lab.stopping()],
        why if verdict == "skipped" else "",
        faults[:MAX_FAULTS],
        _last_frames(culprits) if faults else [],
    )


def _last_frames(peers: Sequence[Peer]) -> list[str]:
    return [frame for peer in peers[:1] for frame in peer.last]
