"""`plait bench speak`: first audio, real-time factor, gaps and cancels of each speech engine.

Does NOT know how figures are shown (see `output`) nor judged (see `speak_report`).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
from dataclasses import asdict

from plait.bench import speak_report, speaking, stopping
from plait.bench.meanwhile import progress
from plait.bench.output import Findings, add_output, positive, publish_measured
from plait.bench.sentences import WORDS
from plait.bench.serving import own_server
from plait.bench.speak_stock import Package, stock_speaker, stock_spec
from plait.client import Client, connect
from plait.installation import best_speech_engine
from plait.machine_cores import core_ids
from plait.models import ModelStore
from plait.specs import speech_threads

ENGINES = ("kokoro-onnx", "kokoro-torch", "scripted")
LEVELS = (1, 4)
MODEL = "kokoro-82m"
STOCK: tuple[Package, ...] = ("kokoro", "kokoro-onnx")
WARM_UP_ROUNDS = 1


def add_arguments(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    speak = kinds.add_parser("speak", help="how soon speech begins and how fast it comes")
    speak.add_argument("--engine", choices=ENGINES, help="default: this platform's")
    speak.add_argument("--voice", default="af_heart", help="default: af_heart")
    speak.add_argument("--rounds", type=positive, default=8, help="per length (default: 8)")
    speak.add_argument(
        "--words", type=int, nargs="+", choices=WORDS, default=WORDS, help="lengths to speak"
    )
    speak.add_argument(
        "--levels", type=positive, nargs="+", default=LEVELS, help="streams (default: 1 4)"
    )
    speak.add_argument("--cancels", type=int, default=40, help="0 leaves them out (default: 40)")
    speak.add_argument(
        "--beside", choices=STOCK, nargs="+", default=(), help="stock packages to compare with"
    )
    speak.add_argument(
        "--quality", action="store_true", help="also how far windows are from whole utterances"
    )
    speak.add_argument("--seed", type=int, default=1, help="of the cancels (default: 1)")
    add_output(speak)
    speak.set_defaults(run=_speak)


def _speak(parsed: argparse.Namespace) -> int:
    engine: str = parsed.engine or best_speech_engine()
    return publish_measured(parsed, _measure(engine, parsed))


async def _measure(engine: str, parsed: argparse.Namespace) -> Findings:
    streams = max(parsed.levels)
    findings = Findings(engine, [], [], {})
    async with (
        own_server("scripted", speech_engine=engine, speech_slots=streams) as server,
        connect(server.ws_url) as client,
    ):
        for words in parsed.words:  # the first of a length meets shapes nobody has seen
            await speaking.measure_level(
                client, parsed.voice, 1, words, WARM_UP_ROUNDS, lambda steps: None
            )
        await _add_levels(findings, client, parsed)
        if parsed.beside:
            await _add_besides(findings, client, parsed)
        if parsed.cancels:
            await _add_cancels(findings, client, parsed, streams)
    if parsed.quality:
        await asyncio.to_thread(_add_quality, findings)
    return findings


async def _add_levels(findings: Findings, client: Client, parsed: argparse.Namespace) -> None:
    levels = []
    for count in sorted(set(parsed.levels)):
        for words in parsed.words:
            with progress(f"{count} x {words} words", parsed.rounds) as advance:
                levels.append(
                    await speaking.measure_level(
                        client, parsed.voice, count, words, parsed.rounds, advance
                    )
                )
    findings.tables.append(speak_report.level_table(levels, findings.engine))
    findings.targets.extend(speak_report.level_targets(levels))
    findings.record["levels"] = [speak_report.level_record(level) for level in levels]


async def _add_besides(findings: Findings, client: Client, parsed: argparse.Namespace) -> None:
    model = ModelStore().ensure(MODEL, "kokoro-torch")
    besides = []
    async with contextlib.AsyncExitStack() as stack:
        speakers = {
            package: await stack.enter_async_context(
                stock_speaker(stock_spec(package, model, parsed.voice, _threads()))
            )
            for package in parsed.beside
        }
        for words in parsed.words:
            with progress(f"beside, {words} words", parsed.rounds) as advance:
                besides.append(
                    await speaking.measure_beside(
                        client, parsed.voice, words, parsed.rounds, speakers, advance
                    )
                )
    findings.tables.append(speak_report.beside_table(besides, findings.engine))
    findings.targets.extend(speak_report.beside_targets(besides))
    findings.record["beside"] = [speak_report.beside_record(beside) for beside in besides]


async def _add_cancels(
    findings: Findings, client: Client, parsed: argparse.Namespace, streams: int
) -> None:
    with progress("cancels", parsed.cancels) as advance:
        cancels = await stopping.measure_cancels(
            speaking.voices(client, parsed.voice), streams, parsed.cancels, parsed.seed, advance
        )
    title = f"speak, cancelled: {findings.engine}"
    findings.tables.append(stopping.cancel_table(cancels, title))
    findings.targets.extend(stopping.cancel_targets(cancels, speak_report.RELEASE_P95_MS))
    findings.record["cancels"] = stopping.cancel_record(cancels)


def _threads() -> int:
    """As many as a server with the default settings takes."""
    return speech_threads(len(core_ids()))


def _add_quality(findings: Findings) -> None:
    from plait.bench import speak_quality

    model = ModelStore().ensure(MODEL, "kokoro-onnx")
    with progress("quality", len(model.voice_names)) as advance:
        quality = speak_quality.measure(model, _threads(), advance)
    findings.tables.append(speak_report.quality_table(quality))
    findings.targets.extend(speak_report.quality_targets(quality))
    findings.record["quality"] = [asdict(voice) for voice in quality.voices]
