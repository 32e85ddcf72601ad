"""`plait bench speak`: first audio, real-time factor, gaps and cancels of each speech engine.

Does NOT know how figures are shown (see `output`) nor judged (see `speak_report`).
"""

from __future__ import annotations

import argparse
from typing import Any

from plait.bench import speak_report, speaking
from plait.bench.output import Findings, add_output, positive, progress, publish_measured
from plait.bench.sentences import WORDS
from plait.bench.serving import own_server
from plait.client import connect
from plait.installation import best_speech_engine

ENGINES = ("kokoro-onnx", "kokoro-torch", "scripted")
LEVELS = (1, 4)
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
    speak.add_argument("--seed", type=int, default=1, help="of the cancels (default: 1)")
    add_output(speak)
    speak.set_defaults(run=_speak)


def _speak(parsed: argparse.Namespace) -> int:
    engine: str = parsed.engine or best_speech_engine()
    return publish_measured(parsed, _measure(engine, parsed))


async def _measure(engine: str, parsed: argparse.Namespace) -> Findings:
    streams = max(parsed.levels)
    levels: list[speaking.Level] = []
    cancels = None
    async with (
        own_server("scripted", speech_engine=engine, speech_slots=streams) as server,
        connect(server.ws_url) as client,
    ):
        for words in parsed.words:  # the first of a length meets shapes nobody has seen
            await speaking.measure_level(
                client, parsed.voice, 1, words, WARM_UP_ROUNDS, lambda steps: None
            )
        for count in sorted(set(parsed.levels)):
            for words in parsed.words:
                with progress(f"{count} x {words} words", parsed.rounds) as advance:
                    level = await speaking.measure_level(
                        client, parsed.voice, count, words, parsed.rounds, advance
                    )
                levels.append(level)
        if parsed.cancels:
            with progress("cancels", parsed.cancels) as advance:
                cancels = await speaking.measure_cancels(
                    client, parsed.voice, streams, parsed.cancels, parsed.seed, advance
                )
    return _findings(engine, levels, cancels)


def _findings(
    engine: str, levels: list[speaking.Level], cancels: speaking.Cancels | None
) -> Findings:
    tables = [speak_report.level_table(levels, engine)]
    targets = speak_report.level_targets(levels)
    record: dict[str, Any] = {"levels": [speak_report.level_record(level) for level in levels]}
    if cancels is not None:
        tables.append(speak_report.cancel_table(cancels, engine))
        targets += speak_report.cancel_targets(cancels)
        record["cancels"] = speak_report.cancel_record(cancels)
    return Findings(engine, tables, targets, record)
