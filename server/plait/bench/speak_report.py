"""What `plait bench speak` says: tables, records and targets. Pure; see `report` for the shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from statistics import median
from typing import TYPE_CHECKING, Any

import msgspec

from plait.bench.figures import Spread
from plait.bench.report import Table, Target
from plait.bench.speaking import BUFFER_SECONDS, Beside, Level

if TYPE_CHECKING:  # it brings the model's libraries
    from plait.bench.speak_quality import Quality

FIRST_AUDIO_P50_MS = 200.0
FIRST_AUDIO_P95_MS = 300.0
REAL_TIME_FACTOR = 0.45
RELEASE_P95_MS = 30.0
EARLIER, EARLIER_WORDS = 4.0, 20
DISTANCE_DB = 3.5


def level_table(levels: Sequence[Level], engine: str) -> Table:
    """One column per (streams, words)."""
    firsts = [level.first_audio_ms for level in levels]
    outside = [level.outside_ms for level in levels]
    factors = [level.real_time_factor for level in levels]
    rows = [
        ("first audio p50, ms", [_pick(s, "p50") for s in firsts]),
        ("first audio p95, ms", [_pick(s, "p95") for s in firsts]),
        ("the same at the client, p50", [_pick(s, "p50") for s in outside]),
        ("real-time factor p50", [_pick(s, "p50", 2) for s in factors]),
        ("real-time factor max", [_pick(s, "max", 2) for s in factors]),
        (
            f"starved after {1000 * BUFFER_SECONDS:g} ms of buffer",
            [f"{level.starved} of {len(level.spoken)}" for level in levels],
        ),
        ("longest gap, ms", [f"{1000 * level.worst_starved_seconds:.0f}" for level in levels]),
    ]
    columns = [f"{level.streams} x {level.words} words" for level in levels]
    return Table(f"speak: {engine}, over the wire", columns, rows)


def beside_table(besides: Sequence[Beside], engine: str) -> Table:
    """Medians. First audio: at our client, and of a package its first chunk."""
    rows = [
        (
            "plait, first audio, ms",
            [f"{median(s.outside_ms for s in b.ours):.0f}" for b in besides],
        ),
        (
            "plait, real-time factor",
            [f"{median(s.real_time_factor for s in b.ours):.2f}" for b in besides],
        ),
    ]
    for package in besides[0].stock:
        spoken = [beside.stock[package] for beside in besides]
        rows += [
            (
                f"package {package}, first audio, ms",
                [f"{1000 * median(s.first_audio_seconds for s in ss):.0f}" for ss in spoken],
            ),
            (
                f"package {package}, real-time factor",
                [f"{median(s.total_seconds / s.audio_seconds for s in ss):.2f}" for ss in spoken],
            ),
            (f"package {package} / plait", [f"{b.ratio(package):.1f}" for b in besides]),
        ]
    columns = [f"{beside.words} words" for beside in besides]
    return Table(f"{engine} beside stock packages, the same sentences in turns", columns, rows)


def beside_targets(besides: Sequence[Beside]) -> list[Target]:
    return [
        Target(
            f"{beside.words} words: first audio {EARLIER:g} times earlier than package {package}",
            beside.ratio(package) >= EARLIER,
            f"{beside.ratio(package):.1f} times",
        )
        for beside in besides
        for package in beside.stock
        if beside.words == EARLIER_WORDS
    ]


def quality_table(quality: Quality) -> Table:
    distance, gain = quality.lsd_db, quality.gain_db
    names = ("p50", "p95", "max")
    rows = [
        *((f"log-spectral distance, dB {name}", [_pick(distance, name, 2)]) for name in names),
        *((f"gain error, dB {name}", [_pick(gain, name, 2)]) for name in names),
        ("the farthest voice", [quality.worst.voice]),
    ]
    return Table("windowed against whole utterances", [f"{len(quality.voices)} voices"], rows)


def quality_targets(quality: Quality) -> list[Target]:
    distance = quality.lsd_db
    met = None if distance is None else distance.p50 <= DISTANCE_DB
    what = f"log-spectral distance within {DISTANCE_DB:g} dB, median over voices"
    return [Target(what, met, f"{_pick(distance, 'p50', 2)} dB")]


def level_targets(levels: Sequence[Level]) -> list[Target]:
    """First audio and rate where one voice speaks alone; no starving anywhere."""
    targets = []
    for level in levels:
        where = f"{level.streams} x {level.words} words"
        if level.streams == 1:
            first, factor = level.first_audio_ms, level.real_time_factor
            assert first is not None
            assert factor is not None
            targets += [
                Target(
                    f"{where}: first audio p50 within {FIRST_AUDIO_P50_MS:g} ms",
                    first.p50 <= FIRST_AUDIO_P50_MS,
                    f"{first.p50:.0f} ms",
                ),
                Target(
                    f"{where}: first audio p95 within {FIRST_AUDIO_P95_MS:g} ms",
                    first.p95 <= FIRST_AUDIO_P95_MS,
                    f"{first.p95:.0f} ms",
                ),
            ]
            if level.words >= 20:  # below, it is mostly the beginning
                targets.append(
                    Target(
                        f"{where}: real-time factor within {REAL_TIME_FACTOR:g}",
                        factor.p50 <= REAL_TIME_FACTOR,
                        f"{factor.p50:.2f}",
                    )
                )
        starved = f"{level.starved} of {len(level.spoken)}"
        targets.append(Target(f"{where}: playback never starves", level.starved == 0, starved))
    return targets


def level_record(level: Level) -> dict[str, Any]:
    return {
        "streams": level.streams,
        "words": level.words,
        "first_audio_ms": _record(level.first_audio_ms),
        "real_time_factor": _record(level.real_time_factor),
        "starved": level.starved,
        "spoken": [asdict(spoken) for spoken in level.spoken],
    }


def beside_record(beside: Beside) -> dict[str, Any]:
    stock = {
        package: [msgspec.to_builtins(one) for one in spoken]
        for package, spoken in beside.stock.items()
    }
    return {"words": beside.words, "ours": [asdict(one) for one in beside.ours], "stock": stock}


def _pick(spread: Spread | None, name: str, digits: int = 0) -> str:
    return "-" if spread is None else f"{getattr(spread, name):.{digits}f}"


def _record(spread: Spread | None) -> dict[str, float] | None:
    return None if spread is None else asdict(spread)
