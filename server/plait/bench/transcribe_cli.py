"""`plait bench transcribe`: accuracy, latency, revisions, CPU and cancels of live transcription.

Does NOT know how figures are shown (see `output`) nor judged (see `transcribe_report`).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import math
from collections.abc import AsyncIterator
from pathlib import Path

from plait.bench import stopping, transcribe_report, transcribing
from plait.bench.clips import Clip, read_clip, shipped_clip
from plait.bench.meanwhile import progress
from plait.bench.output import Findings, add_output, positive, publish_measured
from plait.bench.serving import BenchError, Server, own_server
from plait.bench.transcribe_report import Offline
from plait.bench.transcribe_stock import stock_text
from plait.client import Client, connect
from plait.config import default_transcribe_model

ENGINES = ("whisper", "scripted")
LEVELS = (1,)
CANCEL_STREAMS = 5
WARM_UP_SECONDS = 3.0


def add_arguments(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    transcribe = kinds.add_parser("transcribe", help="how well and how soon speech becomes text")
    transcribe.add_argument("--engine", choices=ENGINES, default="whisper", help="default: whisper")
    transcribe.add_argument("--url", help="a running server (http://host:port), not an own one")
    transcribe.add_argument("--model", help="default: this platform's, or the server's first")
    transcribe.add_argument("--language", help="default: detected, where the model knows several")
    transcribe.add_argument("--silence-ms", type=positive, help="what ends a segment")
    transcribe.add_argument("--wav", type=Path, metavar="FILE", help="PCM16; default: shipped")
    transcribe.add_argument(
        "--reference",
        type=Path,
        metavar="FILE",
        help="of --wav: text, or JSON [[start, end, text]]",
    )
    transcribe.add_argument(
        "--streams", type=positive, nargs="+", default=LEVELS, help="at once (default: 1)"
    )
    transcribe.add_argument("--rounds", type=positive, default=1, help="per level (default: 1)")
    transcribe.add_argument("--cores", type=int, default=0, help="of the own server (default: all)")
    transcribe.add_argument(
        "--offline",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="compare with the model's own result for the whole recording (default: yes)",
    )
    transcribe.add_argument(
        "--cancels", type=int, default=40, help="of 5 streams; 0 leaves them out (default: 40)"
    )
    transcribe.add_argument("--seed", type=int, default=1, help="of the cancels (default: 1)")
    add_output(transcribe)
    transcribe.set_defaults(run=_transcribe)


def _transcribe(parsed: argparse.Namespace) -> int:
    return publish_measured(parsed, _measure(parsed))


async def _measure(parsed: argparse.Namespace) -> Findings:
    clip = await asyncio.to_thread(_clip, parsed)
    short = (await asyncio.to_thread(shipped_clip, "jfk")).beginning(WARM_UP_SECONDS)
    plan = {"rounds": parsed.rounds, "cores": parsed.cores, "silence_ms": parsed.silence_ms}
    record = {"clip": clip.name, "clip_seconds": clip.seconds, "plan": plan}
    findings = Findings(parsed.engine, [], [], record)
    offline = await _offline(parsed, clip)
    async with _server(parsed) as server, connect(server.ws_url) as client:
        # Our own server has one model, by whatever name it was asked for.
        model = None if parsed.url is None else parsed.model
        ask = transcribing.Ask(model, parsed.language, parsed.silence_ms)
        await transcribing.warm_up(client, short, ask)
        await _add_levels(findings, server, client, clip, ask, offline, parsed)
        if parsed.cancels:
            await _add_cancels(findings, client, clip, ask, parsed)
    return findings


def _clip(parsed: argparse.Namespace) -> Clip:
    if parsed.wav is None and parsed.reference is None:
        return shipped_clip("multi")
    if parsed.wav is None or parsed.reference is None:
        raise BenchError("--wav and --reference belong together: what was said, and its text.")
    return read_clip(parsed.wav, parsed.reference)


async def _offline(parsed: argparse.Namespace, clip: Clip) -> Offline | None:
    """Before the server runs, so that it has the machine for itself."""
    if not parsed.offline or parsed.engine != "whisper":
        return None
    name = parsed.model or default_transcribe_model()
    weights = await asyncio.to_thread(_weights, name)
    language = parsed.language or ("en" if name.endswith(".en") else "auto")
    with progress("offline", 1) as advance:
        stock = await stock_text(clip, str(weights), language)
        advance(1)
    return Offline.of(stock, clip.text, clip.seconds)


def _weights(model: str) -> Path:
    from plait.models import ModelStore

    weights = ModelStore().ensure(model, "whisper").form("whisper")
    assert weights is not None, "it was installed for this engine"
    return weights


@contextlib.asynccontextmanager
async def _server(parsed: argparse.Namespace) -> AsyncIterator[Server]:
    if parsed.url is not None:
        yield Server(parsed.url.rstrip("/"))
        return
    model = {} if parsed.model is None else {"transcribe_model": parsed.model}
    streams = max(*parsed.streams, CANCEL_STREAMS if parsed.cancels else 1)
    async with own_server(
        "scripted",
        transcribe_engine=parsed.engine,
        transcribe_slots=streams,
        transcribe_cores=parsed.cores,
        **model,
    ) as server:
        yield server


async def _add_levels(
    findings: Findings,
    server: Server,
    client: Client,
    clip: Clip,
    ask: transcribing.Ask,
    offline: Offline | None,
    parsed: argparse.Namespace,
) -> None:
    levels = []
    for streams in sorted(set(parsed.streams)):
        seconds = math.floor(clip.seconds) * parsed.rounds
        with progress(f"{streams} at once, seconds", seconds) as advance:
            levels.append(
                await transcribing.measure_level(
                    server, client, clip, ask, streams, parsed.rounds, advance
                )
            )
    model = levels[0].listenings[0].model
    title = f"transcribe: {model}, {clip.name}, {clip.seconds:.0f} s in real time"
    findings.tables.append(transcribe_report.level_table(levels, offline, title))
    findings.targets.extend(transcribe_report.level_targets(levels, offline))
    findings.record["levels"] = [transcribe_report.level_record(level) for level in levels]
    if offline is not None:
        findings.record["offline"] = transcribe_report.offline_record(offline)


async def _add_cancels(
    findings: Findings,
    client: Client,
    clip: Clip,
    ask: transcribing.Ask,
    parsed: argparse.Namespace,
) -> None:
    with progress("cancels", parsed.cancels) as advance:
        cancels = await stopping.measure_cancels(
            transcribing.listeners(client, clip, ask),
            CANCEL_STREAMS,
            parsed.cancels,
            parsed.seed,
            advance,
        )
    title = f"transcribe, cancelled: {findings.engine}"
    findings.tables.append(stopping.cancel_table(cancels, title))
    findings.targets.extend(stopping.cancel_targets(cancels, transcribe_report.RELEASE_P95_MS))
    findings.record["cancels"] = stopping.cancel_record(cancels)
