"""Charts of figures in files: groups of bars, and panels of lines; .svg or .png by the suffix.

The same figures give the same bytes (no dates, no random ids), so committed charts differ only
where figures do. Colours can be told apart by colour-blind readers, and lines by their dashes too.
matplotlib (extra `charts`) is loaded when the first chart is drawn, without its global state.
Does NOT know what the figures mean.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from plait.bench.serving import BenchError
from plait.bench.writing import check_writable, filling

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's, the dark ones first; the yellow one cannot be seen on white.
COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#444444")
DASHES: Final = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)), (0, (8, 2)))
INK, GRID = "#333333", "#DDDDDD"
STYLE: Final[Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # matplotlib brings it, so layouts are alike everywhere
    "font.size": 9,
    "svg.fonttype": "none",  # texts stay texts: they can be searched, and diffs read
    "svg.hashsalt": "plait",
    "text.parse_math": False,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "legend.borderpad": 0.0,
    "legend.labelspacing": 0.3,
}
METADATA: Final[dict[str, dict[str, Any]]] = {".svg": {"Date": None}, ".png": {"Software": None}}
PNG_DPI = 130
BAR_INCHES, LEAST_INCHES, BARS_HEIGHT_INCHES = 0.55, 6.4, 3.8
GROUP_FILL, WIDEST_BAR = 0.82, 0.5  # of a group's width
CHARACTERS_PER_INCH, TITLE_CHARACTERS_PER_INCH = 13.0, 9.5  # on average, rather too few
PANEL_INCHES = (5.2, 2.1)
LEGEND_COLUMNS, LEGEND_CHARACTERS, LEGEND_SAMPLE_CHARACTERS = 4, 70, 8  # of a panel
HEADROOM, LEGEND_ROOM = 1.1, 0.16  # above the highest point, so that no line runs through names


@dataclass(frozen=True, slots=True)
class Panel:
    """One set of lines over the same `x`; a NaN in a line is a gap in it.

    `unit` is the vertical axis's label, `x_label` the horizontal one's, with its unit.
    """

    title: str
    unit: str
    x: Sequence[float]
    lines: Mapping[str, Sequence[float]]
    x_label: str


def check_charts(path: Path) -> None:
    """Raises BenchError when no chart could be written there, before a long run finds out."""
    _check_suffix(path)
    _figure(1.0, 1.0)
    check_writable(path)


def _check_suffix(path: Path) -> None:
    if path.suffix not in METADATA:
        raise BenchError(f"{path.name} is no chart: its name must end in .svg or .png")


def bar_chart(
    path: Path,
    title: str,
    groups: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    unit: str,
) -> None:
    """One bar per group and series, each with its value; None is shown as "n/a".

    Raises BenchError without matplotlib, for another suffix than .svg and .png, and where it cannot
    be written.
    """
    _check_suffix(path)
    bars = len(groups) * len(series)
    width = max(LEAST_INCHES, 1.2 + BAR_INCHES * (bars + len(groups)))
    with _style():
        figure = _figure(width, BARS_HEIGHT_INCHES)
        axes: Axes = figure.add_subplot()
        _draw_bars(axes, series)
        room = width / max(1, len(groups)) * CHARACTERS_PER_INCH
        names = [textwrap.fill(group, max(8, int(room))) for group in groups]
        axes.set_xticks(range(len(groups)), names)
        axes.tick_params(axis="x", length=0)
        axes.set_xlim(-0.6, len(groups) - 0.4)
        axes.set_ylabel(unit)
        _thousands(axes)
        axes.margins(y=0.12)
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]) if _has_negative(series) else 0.0)
        _head(figure, title, axes if len(series) > 1 else None)
        _save(figure, path)


def line_charts(path: Path, title: str, panels: Sequence[Panel], *, columns: int = 1) -> None:
    """The panels in rows of `columns`, each with its own axes.

    Raises BenchError without matplotlib, for another suffix than .svg and .png, and where it cannot
    be written.
    """
    _check_suffix(path)
    rows = math.ceil(len(panels) / columns)
    width, height = PANEL_INCHES[0] * columns, PANEL_INCHES[1] * rows + 0.4
    with _style():
        figure = _figure(max(LEAST_INCHES, width), height)
        for number, panel in enumerate(panels):
            axes: Axes = figure.add_subplot(rows, columns, number + 1)
            below = panels[number + columns :: columns]
            _draw_panel(axes, panel, labelled=all(panel.x_label != b.x_label for b in below))
        _head(figure, title, None)
        _save(figure, path)


# --- drawing -----------------------------------------------------------------------------------


def _draw_bars(axes: Axes, series: Mapping[str, Sequence[float | None]]) -> None:
    width = min(WIDEST_BAR, GROUP_FILL / max(1, len(series)))
    for number, (name, values) in enumerate(series.items()):
        shift = (number - (len(series) - 1) / 2) * width
        places = [group + shift for group in range(len(values))]
        heights = [0.0 if value is None else value for value in values]
        bars = axes.bar(places, heights, 0.92 * width, label=name, color=_pick(COLOURS, number))
        axes.bar_label(bars, [_value(value) for value in values], padding=2, fontsize=8)


def _draw_panel(axes: Axes, panel: Panel, *, labelled: bool) -> None:
    for number, (name, values) in enumerate(panel.lines.items()):
        look = {"color": _pick(COLOURS, number), "linestyle": _pick(DASHES, number)}
        axes.plot(panel.x, values, label=name, linewidth=1.4, **look)
    axes.set_title(panel.title, loc="left", fontsize=9, fontweight="bold")
    axes.set_ylabel(panel.unit)
    _thousands(axes)
    axes.set_xlabel(panel.x_label if labelled else "")
    axes.margins(x=0.01)
    highest = max((v for values in panel.lines.values() for v in values if v == v), default=0.0)
    columns = _legend_columns(list(panel.lines))
    rows = math.ceil(len(panel.lines) / columns) if len(panel.lines) > 1 else 0
    axes.set_ylim(bottom=0, top=(HEADROOM + LEGEND_ROOM * rows) * (highest or 1.0))
    if rows:
        legend = axes.legend(loc="upper left", ncols=columns, fontsize=7.5, columnspacing=1.2)
        legend.set_in_layout(False)  # or a long name would make the panel narrower


def _legend_columns(names: Sequence[str]) -> int:
    """As many as fit beside each other: a line's sample takes as much room as some letters."""
    widest = max(map(len, names), default=0) + LEGEND_SAMPLE_CHARACTERS
    return max(1, min(LEGEND_COLUMNS, len(names), LEGEND_CHARACTERS // widest))


def _head(figure: Figure, title: str, legend_of: Axes | None) -> None:
    wrapped = textwrap.fill(title, int(figure.get_figwidth() * TITLE_CHARACTERS_PER_INCH))
    figure.suptitle(wrapped, x=0.01, ha="left", fontsize=11, fontweight="bold")
    if legend_of is not None:
        handles, names = legend_of.get_legend_handles_labels()
        columns = min(LEGEND_COLUMNS, len(names))
        figure.legend(handles, names, loc="outside lower center", ncols=columns)


def _thousands(axes: Axes) -> None:
    from matplotlib.ticker import StrMethodFormatter

    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))


def _value(value: float | None) -> str:
    """As few digits as tell it: three, and all of those before the point."""
    if value is None:
        return "n/a"
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{min(digits, 4)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _has_negative(series: Mapping[str, Sequence[float | None]]) -> bool:
    return any(value is not None and value < 0 for values in series.values() for value in values)


def _pick(choices: Sequence[Any], number: int) -> Any:
    return choices[number % len(choices)]


# --- matplotlib --------------------------------------------------------------------------------


def _figure(width: float, height: float) -> Figure:
    """Of that many inches; not one of pyplot's, which would keep it."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise BenchError(
            "charts need matplotlib, which is not installed: pip install 'plait[charts]'"
        ) from missing
    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def _style() -> Any:
    from matplotlib import rc_context  # of this block alone

    return rc_context(STYLE)


def _save(figure: Figure, path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    canvas = FigureCanvasSVG(figure) if path.suffix == ".svg" else FigureCanvasAgg(figure)
    options: dict[str, Any] = {} if path.suffix == ".svg" else {"dpi": PNG_DPI}
    with filling(path):
        canvas.print_figure(str(path), metadata=METADATA[path.suffix], **options)
