"""What `plait bench transcribe` says: tables, records and targets. Pure; shapes as in `report`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

import msgspec

from plait.bench.accuracy import WordErrors
from plait.bench.figures import Spread
from plait.bench.report import Table, Target
from plait.bench.transcribe_stock import StockText
from plait.bench.transcribing import Level, Listening

WORD_ERROR_RATE = 0.05
BEYOND_OFFLINE = 0.03
FIRST_TEXT_P50_MS = 1200.0
FINAL_P50_MS = 900.0
RELEASE_P95_MS = 50.0
ALL = ("p50", "p95", "max")


@dataclass(frozen=True, slots=True)
class Offline:
    """The same model's text of the whole clip at once."""

    stock: StockText
    errors: WordErrors
    cpu_per_second: float

    @classmethod
    def of(cls, stock: StockText, reference: str, clip_seconds: float) -> Offline:
        errors = WordErrors.of(reference, stock.text)
        return cls(stock, errors, stock.cpu_seconds / clip_seconds)


def level_table(levels: Sequence[Level], offline: Offline | None, title: str) -> Table:
    """One column per number of streams."""
    rows = [
        ("word error rate", [_share(level.errors.rate) for level in levels]),
        ("the worst stream's", [_share(level.worst_rate) for level in levels]),
        *_offline_rows(levels, offline),
        *_spread_rows(
            "speech_started after speech begins, ms", [x.speech_told_ms for x in levels], ALL
        ),
        *_spread_rows("first text after speech begins, ms", [x.first_text_ms for x in levels]),
        *_spread_rows("final after the last word, ms", [x.final_after_speech_ms for x in levels]),
        *_spread_rows("final after the segment's end", [x.final_after_segment_ms for x in levels]),
        *_spread_rows("a word after it was said, ms", [level.word_ms for level in levels]),
        *_spread_rows("lag_ms (server)", [level.lag_ms for level in levels]),
        ("revisions per segment", [f"{fmean(x.revisions or [0]):.1f}" for x in levels]),
        ("segments", [str(len(level.revisions)) for level in levels]),
        *_rewriting_rows(levels),
        ("CPU seconds per second of audio", [_rate(level.cpu_per_second) for level in levels]),
    ]
    return Table(title, [_streams(level) for level in levels], rows)


def level_targets(levels: Sequence[Level], offline: Offline | None) -> list[Target]:
    """Accuracy everywhere; latency where one stream has the machine for itself."""
    targets = []
    for level in levels:
        where = _streams(level)
        targets.append(
            Target(
                f"{where}: word error rate within {WORD_ERROR_RATE:g}",
                level.errors.rate <= WORD_ERROR_RATE,
                _share(level.errors.rate),
            )
        )
        if offline is not None:
            beyond = level.errors.rate - offline.errors.rate
            targets.append(
                Target(
                    f"{where}: within {BEYOND_OFFLINE:g} of the same model's offline result",
                    beyond <= BEYOND_OFFLINE,
                    f"{beyond:+.3f}",
                )
            )
        if level.streams == 1:
            first, final = level.first_text_ms, level.final_after_speech_ms
            targets += [
                _p50(f"{where}: first text", first, FIRST_TEXT_P50_MS),
                _p50(f"{where}: final after the last word", final, FINAL_P50_MS),
                _p50(
                    f"{where}: final after the segment's end",
                    level.final_after_segment_ms,
                    FINAL_P50_MS,
                ),
            ]
    return targets


def level_record(level: Level) -> dict[str, Any]:
    return {
        "streams": level.streams,
        "word_errors": asdict(level.errors),
        "speech_told_ms": _record(level.speech_told_ms),
        "first_text_ms": _record(level.first_text_ms),
        "final_after_speech_ms": _record(level.final_after_speech_ms),
        "final_after_segment_ms": _record(level.final_after_segment_ms),
        "word_ms": _record(level.word_ms),
        "lag_ms": _record(level.lag_ms),
        "revisions": level.revisions,
        "rewriting": asdict(level.rewriting),
        "cpu_seconds": level.cpu_seconds,
        "cpu_per_second": level.cpu_per_second,
        "listenings": [_listening_record(one) for one in level.listenings],
    }


def offline_record(offline: Offline) -> dict[str, Any]:
    return {
        "text": offline.stock.text,
        "word_errors": asdict(offline.errors),
        "cpu_per_second": offline.cpu_per_second,
    }


def _offline_rows(levels: Sequence[Level], offline: Offline | None) -> list[tuple[str, list[str]]]:
    if offline is None:
        return []
    return [
        ("the same model's, offline", [_share(offline.errors.rate)] * len(levels)),
        (
            "words unlike the offline text",
            [_share(level.errors_against(offline.stock.text).rate) for level in levels],
        ),
        ("CPU per second, offline", [_rate(offline.cpu_per_second)] * len(levels)),
    ]


def _rewriting_rows(levels: Sequence[Level]) -> list[tuple[str, list[str]]]:
    every = [level.rewriting for level in levels]
    return [
        ("words rewritten, of those shown", [f"{r.rewritten} of {r.words}" for r in every]),
        ("words rewritten, of the stable", [f"{r.stable_rewritten} of {r.stable}" for r in every]),
    ]


def _spread_rows(
    what: str, spreads: Sequence[Spread | None], names: Sequence[str] = ("p50", "p95")
) -> list[tuple[str, list[str]]]:
    return [(f"{what} {name}", [_pick(spread, name) for spread in spreads]) for name in names]


def _p50(what: str, spread: Spread | None, bound_ms: float) -> Target:
    met = None if spread is None else spread.p50 <= bound_ms
    return Target(f"{what} p50 within {bound_ms:g} ms", met, f"{_pick(spread, 'p50')} ms")


def _listening_record(one: Listening) -> dict[str, Any]:
    shown = [{"at": s.at} | msgspec.to_builtins(s.segment) for s in one.shown]
    return {"model": one.model, "text": one.text, "shown": shown}


def _streams(level: Level) -> str:
    return f"{level.streams} stream" + ("s" if level.streams > 1 else "")


def _share(rate: float) -> str:
    return f"{rate:.3f}"


def _rate(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.2f}"


def _pick(spread: Spread | None, name: str) -> str:
    return "-" if spread is None else f"{getattr(spread, name):.0f}"


def _record(spread: Spread | None) -> dict[str, float] | None:
    return None if spread is None else asdict(spread)
