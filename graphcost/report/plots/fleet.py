"""The figures of the fleet commands as one picture: a row for each of the page's groups."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from functools import partial
from math import ceil, floor, log2
from typing import TYPE_CHECKING

from graphcost.report.fleet_figures import Bars, Curves, Group, Result, figures_of, words
from graphcost.report.palette import SERIES
from graphcost.report.plots.comparison import DASHES, MARKS
from graphcost.report.plots.figure import bar_style, draw, number_axis, plain
from graphcost.units import format_share

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH_IN, _ACROSS = 9.6, 2
_GROUP_IN, _LEGEND_IN, _BAR_IN, _CURVES_IN = 0.4, 0.19, 0.3, 2.2
_ABOVE_IN, _TICKS_IN, _NAMES_IN = 0.32, 0.38, 0.66
"""Of a figure: its title, ticks under it, ticks and a name."""
_CHARACTER_IN = 0.078
_MARK_COLUMNS = 118


def fleet_plot(found: Result, path: str) -> None:
    """Every figure; what is not measured says so above them and in every title. Raises ``UsageError``.

    Places are computed, not solved for: a solver's last digit would change from run to run.
    """
    lines = [(group, _lines(group)) for group in figures_of(found) if group.figures]
    head = _head(found)
    word = f" ({found.table.mark.split()[0].lower()})" if found.table.mark else ""
    head_in = 0.25 + 0.16 * len(head)
    tall_in = head_in + sum(_GROUP_IN + sum(map(_height_in, rows)) for _, rows in lines) + 0.1

    def fill(figure: Figure) -> None:
        figure.set_layout_engine("none")
        weight = "bold" if word else "normal"
        figure.text(0.01, 1 - 0.1 / tall_in, "\n".join(head), va="top", fontsize=9, fontweight=weight)
        at_in = tall_in - head_in
        for group, rows in lines:
            figure.text(
                0.01, (at_in - 0.3) / tall_in, group.title + word, fontsize=10.5, fontweight="bold", va="bottom"
            )
            at_in -= _GROUP_IN
            for row in rows:
                at_in -= _height_in(row)
                _fill_row(figure, row, at_in, tall_in)

    draw(path, _WIDTH_IN, tall_in, fill)


def _head(found: Result) -> list[str]:
    info = found.hardware
    lines = textwrap.wrap(plain(found.table.mark, 400), _MARK_COLUMNS) if found.table.mark else []
    lines.append(f"{plain(found.table.file)}: {found.table.jobs:,} jobs on {info.cluster}, {info.profile} profile")
    if not any(group.figures for group in figures_of(found)):
        lines.append("nothing to draw: no PS/Worker jobs")
    return lines


def _lines(group: Group) -> list[Sequence[Bars | Curves]]:
    """Bars take a row of their own; curves stand side by side."""
    made: list[Sequence[Bars | Curves]] = []
    beside: list[Bars | Curves] = []
    for figure in group.figures:
        if isinstance(figure, Bars):
            made.append([figure])
            beside = []
        elif beside and len(beside) < _ACROSS:
            beside.append(figure)
        else:
            beside = [figure]
            made.append(beside)
    return made


def _height_in(row: Sequence[Bars | Curves]) -> float:
    first = row[0]
    if isinstance(first, Bars):
        return _ABOVE_IN + _LEGEND_IN * _legend_rows(first) + _BAR_IN * len(first.labels) + _TICKS_IN
    return _ABOVE_IN + _CURVES_IN + _NAMES_IN


def _legend_columns(figure: Bars) -> int:
    longest = max(len(one.name) for one in figure.series)
    return max(1, min(len(figure.series), int(_WIDTH_IN * 10 / (longest + 6))))


def _legend_rows(figure: Bars) -> int:
    return ceil(len(figure.series) / _legend_columns(figure))


def _fill_row(figure: Figure, row: Sequence[Bars | Curves], bottom_in: float, tall_in: float) -> None:
    def axes(left_in: float, width_in: float, height_in: float, under_in: float) -> Axes:
        return figure.add_axes(
            (left_in / _WIDTH_IN, (bottom_in + under_in) / tall_in, width_in / _WIDTH_IN, height_in / tall_in)
        )

    column_in = _WIDTH_IN / len(row)
    for at, one in enumerate(row):
        if isinstance(one, Bars):
            left_in = 0.2 + _CHARACTER_IN * max(len(plain(label)) for label in one.labels)
            _bars(axes(left_in, _WIDTH_IN - left_in - 0.3, _BAR_IN * len(one.labels), _TICKS_IN), one)
        else:
            _curves(axes(at * column_in + 0.75, column_in - 1.05, _CURVES_IN, _NAMES_IN), one)


def _bars(axes: Axes, figure: Bars) -> None:
    places = range(len(figure.labels))
    left = [0.0] * len(figure.labels)
    for one in figure.series:
        axes.barh(
            places,
            one.values,
            left=left,
            height=0.62,
            label=one.name,
            **bar_style(one.ink),
        )
        left = [start + width for start, width in zip(left, one.values, strict=True)]
    axes.set_yticks(list(places), [plain(label) for label in figure.labels])
    axes.set_ylim(len(places) - 0.45, -0.55)  # from the top, as thick for one bar as for many
    axes.set_xlim(0, max(1.0, *left))  # ideal overlap: shares may add to more than the step
    number_axis(axes, "x", _percent)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.set_title(figure.title, fontsize=9, pad=6 + 13 * _legend_rows(figure))
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=_legend_columns(figure), borderaxespad=0.1,
                handlelength=1.6, columnspacing=1.2)  # fmt: skip


def _curves(axes: Axes, figure: Curves) -> None:
    many = any(len(curve.points) > 16 for curve in figure.curves)
    for index, curve in enumerate(figure.curves):
        axes.plot(
            [x for x, _ in curve.points], [y for _, y in curve.points], DASHES[index % len(DASHES)],
            marker="" if many else MARKS[index % len(MARKS)], markersize=4.5, linewidth=1.5,
            color=SERIES[index % len(SERIES)].light, label=plain(curve.name),
        )  # fmt: skip
    if figure.x == "share":
        axes.set_xlim(0, 1)
        number_axis(axes, "x", _percent)
    else:
        _doublings(axes, [x for curve in figure.curves for x, _ in curve.points], figure.x)
    if figure.y == "share":
        axes.set_ylim(0, 1)
    number_axis(axes, "y", _percent if figure.y == "share" else partial(words, figure.y))
    axes.set(title=figure.title, xlabel=figure.across, ylabel=figure.up)
    axes.legend(loc="best")


def _doublings(axes: Axes, values: list[float], kind: str) -> None:
    first = floor(log2(min(values)))
    high = max(first + 1, ceil(log2(max(values))))
    every = max(1, ceil((high - first) / 8))
    low = floor(first / every) * every  # so that 1 is a tick
    axes.set_xscale("log", base=2)
    axes.set_xticks([2.0**power for power in range(low, high + 1, every)])
    axes.minorticks_off()
    number_axis(axes, "x", partial(words, kind))


def _percent(value: float) -> str:
    return format_share(value).replace(".0", "")
