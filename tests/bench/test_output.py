"""What is shown and written when a benchmark has measured, and when a file then fails."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from plait.bench import output
from plait.bench.output import Findings, publish_measured
from plait.bench.report import Table
from plait.bench.serving import BenchError


async def measured(**more: Any) -> Findings:
    return Findings("scripted", [Table("Figures", ["p50"], [("ms", ["7"])])], [], {}, **more)


def test_the_head_labels_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert publish_measured(Namespace(json=None, check=False), measured()) == 0

    labels = [line.split(" ")[0] for line in capsys.readouterr().out.splitlines()[:4]]
    assert labels == ["date:", "machine:", "Python", "engine:"]


def test_where_the_files_are_is_said_on_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures, chart = tmp_path / "a.json", tmp_path / "a.svg"

    publish_measured(Namespace(json=figures, chart=chart, check=False), measured(draw=chart.touch))

    assert capsys.readouterr().err == f"chart: {chart}\nfigures: {figures}\n"


def test_a_file_that_fails_after_all_is_one_line_below_the_table_and_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise BenchError("no room")

    monkeypatch.setattr(output, "write_json", full)

    assert publish_measured(Namespace(json=tmp_path / "a.json", check=False), measured()) == 1

    said = capsys.readouterr()
    assert "Figures" in said.out
    assert said.err == "plait: no room\n"
