"""`plait bench gateway` end to end, with tiny sizes: every part measures and says what it found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plait.bench.gateway import costs, fanout, latency, memory, opens, rates, sides, windows
from plait.cli import main

pytestmark = pytest.mark.waits


def test_every_part_measures_and_is_written_down(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (costs, fanout, latency, opens, rates, sides, windows):
        monkeypatch.setattr(module, "SETTLE_SECONDS", 0.02)
    file, chart = tmp_path / "gateway.json", tmp_path / "gateway.svg"
    parts = ["rate", "cost", "opens", "latency", "fanout", "window"]
    small = ["--seconds=0.05", "--rounds=1", "--many=4", f"--chart={chart}"]

    assert main(["bench", "gateway", "--only", *parts, f"--json={file}", *small]) == 0

    record = json.loads(file.read_text())
    assert set(parts) <= record.keys()
    assert all(each["rounds"][0]["gateway"]["items"] > 0 for each in record["rate"])
    assert all(each["streams"] > 0 for each in record["opens"])
    assert record["latency"]["gateway"][0]["p50"] > 0
    assert chart.stat().st_size > 0
    assert "one connection saturated" in capsys.readouterr().out


async def test_memory_is_measured_of_connections_and_of_streams_that_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "REST_SECONDS", 0.05)
    async with sides.own_sides() as both:
        growths = [
            await memory.of_connections(both.gateway, 5),
            await memory.of_connections(both.bare, 5),
            await memory.of_quiet_streams(both.gateway, 5),
            await memory.of_paused_streams(both.gateway, 5),
        ]
    assert [growth.count for growth in growths] == [5, 5, 5, 5]
