"""Charts say what their figures are, come out the same every time, and name what is missing."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from plait.bench.charts import Panel, bar_chart, check_charts, line_charts
from plait.bench.serving import BenchError

GROUPS = ["Plait", "mlx_lm.server"]
SERIES: dict[str, list[float | None]] = {"0 %": [0.0, 1.5], "20 %": [1.0, None]}
PANELS = [
    Panel("RSS", "MiB", [0, 5, 10], {"gateway": [90, 91, 91], "worker": [300, 301, 300]}, "s"),
    Panel("Lag p99", "ms", [0, 5, 10], {"lag": [1.0, math.nan, 2.0]}, "s"),
    Panel("Streams", "streams", [], {"active": []}, "s"),
]


def texts(path: Path) -> list[str]:
    return [text.strip() for text in ElementTree.parse(path).getroot().itertext() if text.strip()]


def test_a_bar_chart_names_its_groups_series_unit_and_values(tmp_path: Path) -> None:
    path = tmp_path / "new" / "chart.svg"

    bar_chart(path, "Wasted", GROUPS, SERIES, "tokens")

    assert {"Wasted", *GROUPS, *SERIES, "tokens", "1.5", "n/a"} <= set(texts(path))


def test_panels_of_lines_name_what_they_show_gaps_and_emptiness_included(tmp_path: Path) -> None:
    path = tmp_path / "chart.svg"

    line_charts(path, "Soak", PANELS, columns=2)

    assert {"Soak", "RSS", "MiB", "gateway", "worker", "Lag p99", "ms", "s"} <= set(texts(path))


def test_a_title_that_is_too_long_for_one_line_has_several(tmp_path: Path) -> None:
    path = tmp_path / "chart.svg"

    bar_chart(path, "Wasted " * 30, GROUPS, SERIES, "tokens")

    assert "Wasted " * 20 not in path.read_text()
    assert path.read_text().count("Wasted") >= 30


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_the_same_figures_give_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    first, second = (tmp_path / f"{name}.{suffix}" for name in ("a", "b"))

    for path in (first, second):
        line_charts(path, "Soak", PANELS[:1])

    assert first.read_bytes() == second.read_bytes()


def test_a_png_is_written_for_its_suffix(tmp_path: Path) -> None:
    path = tmp_path / "chart.png"

    bar_chart(path, "Wasted", GROUPS, {"0 %": [-1.0, 1234.0]}, "tokens")

    assert path.read_bytes().startswith(b"\x89PNG")


def test_another_suffix_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"must end in \.svg or \.png"):
        check_charts(tmp_path / "chart.pdf")


def test_a_missing_matplotlib_is_named_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)

    with pytest.raises(BenchError, match=r"pip install 'plait\[charts\]'"):
        bar_chart(tmp_path / "chart.svg", "Wasted", GROUPS, SERIES, "tokens")


def test_a_missing_matplotlib_is_said_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)

    with pytest.raises(BenchError, match="matplotlib"):
        check_charts(tmp_path / "new" / "chart.svg")

    assert list(tmp_path.iterdir()) == []


def test_the_benchmarks_load_no_matplotlib_until_they_draw() -> None:
    code = "import sys, plait.bench.cli, plait.bench.charts; print('matplotlib' in sys.modules)"

    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert run.stdout.strip() == "False"
