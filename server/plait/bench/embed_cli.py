"""`plait bench embed`: texts per second over the wire and without it, and how soon it stops.

Does NOT know how figures are shown (see `output`) nor judged (see `embed_report`).
"""

from __future__ import annotations

import argparse

from plait.bench import embed_report, embedding, stopping
from plait.bench.chatting import direct_engine
from plait.bench.meanwhile import progress
from plait.bench.output import Findings, add_output, positive, publish_measured
from plait.bench.serving import own_server
from plait.client import Client, connect
from plait.engines.base import LoadSpec

ENGINES = ("onnx", "scripted")
ROUNDS = 6
BULK_TEXTS = 1024
WARM_UP_ROUNDS = 1


def add_arguments(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    embed = kinds.add_parser("embed", help="texts per second over the wire and without it")
    embed.add_argument("--engine", choices=ENGINES, default="onnx", help="default: onnx")
    embed.add_argument("--model", help="default: the configured one")
    embed.add_argument(
        "--rounds", type=positive, default=ROUNDS, help=f"pairs per load (default: {ROUNDS})"
    )
    embed.add_argument(
        "--texts", type=positive, default=BULK_TEXTS, help=f"in bulk (default: {BULK_TEXTS})"
    )
    embed.add_argument("--cancels", type=int, default=40, help="0 leaves them out (default: 40)")
    embed.add_argument("--streams", type=positive, default=4, help="beside a cancel (default: 4)")
    embed.add_argument("--seed", type=int, default=1, help="of the cancels (default: 1)")
    add_output(embed)
    embed.set_defaults(run=_embed)


def _embed(parsed: argparse.Namespace) -> int:
    settings = {"embed_engine": parsed.engine, "embed_slots": max(8, parsed.streams)}
    if parsed.model is not None:
        settings["embed_model"] = parsed.model
    return publish_measured(parsed, _measure(parsed, settings, _spec(settings)))


async def _measure(
    parsed: argparse.Namespace, settings: dict[str, int | str], spec: LoadSpec
) -> Findings:
    loads = embedding.loads(parsed.texts)
    record = {"plan": {"rounds": parsed.rounds, "texts": parsed.texts, "model": spec.model}}
    findings = Findings(parsed.engine, [], [], record)
    results = []
    async with (
        own_server("scripted", **settings) as server,
        direct_engine(spec) as direct,
        connect(server.ws_url) as client,
    ):
        for load in loads:  # both sides meet every shape once before it counts
            await embedding.measure(server, client, direct, load, WARM_UP_ROUNDS, lambda _: None)
        for load in loads:
            with progress(load.name, parsed.rounds) as advance:
                results.append(
                    await embedding.measure(server, client, direct, load, parsed.rounds, advance)
                )
        findings.tables.append(embed_report.load_table(results, f"embed: {spec.model}"))
        findings.targets.extend(embed_report.load_targets(results))
        findings.record["loads"] = [embed_report.load_record(result) for result in results]
        if parsed.cancels:
            await _add_cancels(findings, client, parsed)
    return findings


async def _add_cancels(findings: Findings, client: Client, parsed: argparse.Namespace) -> None:
    with progress("cancels", parsed.cancels) as advance:
        cancels = await stopping.measure_cancels(
            embedding.embedders(client), parsed.streams, parsed.cancels, parsed.seed, advance
        )
    title = f"embed, cancelled: {findings.engine}"
    findings.tables.append(stopping.cancel_table(cancels, title))
    findings.targets.extend(stopping.cancel_targets(cancels, embed_report.RELEASE_P95_MS))
    findings.record["cancels"] = stopping.cancel_record(cancels)


def _spec(settings: dict[str, int | str]) -> LoadSpec:
    """What the server's worker loads with these settings; the same code builds both."""
    from plait.config import Config
    from plait.models import ModelStore
    from plait.specs import embed_spec

    config = Config(**settings)  # type: ignore[arg-type]
    if config.embed_engine == "scripted":
        return embed_spec(config, None)
    return embed_spec(config, ModelStore().ensure(config.embed_model, "onnx"))
