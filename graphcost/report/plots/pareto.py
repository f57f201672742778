"""The plot of ``compare --pareto``: time against money and against energy, the frontier filled and named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphcost.parallel.mesh import spoken
from graphcost.pareto import Pareto, Point, Standing
from graphcost.report.palette import SERIES
from graphcost.report.plots.figure import draw, number_axis, plain
from graphcost.units import format_kwh, format_seconds, format_usd

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
NAMED = 6
"""Points of the frontier that are named in the picture, from the fastest; the table names all."""


LOG_FROM = 20
"""An axis over more than this ratio is logarithmic, others begin at zero."""


def pareto_plot(found: Sequence[Pareto], path: str) -> None:
    """One row a model: USD and kWh of a million samples, by cluster. Hollow points are dominated.

    Points that do not fit, or that are not judged, are left out, as they are off the frontier; how many is told.
    """

    def fill(figure: Figure) -> None:
        rows = figure.subplots(len(found), 2, squeeze=False, sharey="row")
        for (usd, kwh), one in zip(rows, found, strict=True):
            _panel(usd, one, "usd")
            _panel(kwh, one, "kwh")
            usd.set(title=_title(one), xlabel="USD of a million samples", ylabel="time of a million samples")
            kwh.set(xlabel="kWh of a million samples, GPUs alone")
            number_axis(usd, "y", format_seconds)
            number_axis(usd, "x", lambda value: format_usd(value).removeprefix("$"))
            number_axis(kwh, "x", lambda value: format_kwh(value).removesuffix(" kWh"))
            if usd.get_legend_handles_labels()[1]:
                kwh.legend(loc="best")

    draw(path, 7.2, 3.4 * len(found), fill)


def _title(one: Pareto) -> str:
    left_out = sum(point.standing not in (Standing.FRONTIER, Standing.DOMINATED) for point in one.points)
    return plain(one.name) + (f", {left_out} not drawn: they do not fit, or lack a price" if left_out else "")


def _panel(axes: Axes, one: Pareto, measure: str) -> None:
    drawn = [point for point in one.points if point.standing in (Standing.FRONTIER, Standing.DOMINATED)]
    clusters = list(dict.fromkeys(point.analysis.placement.cluster for point in drawn))
    for standing, whole in ((Standing.DOMINATED, False), (Standing.FRONTIER, True)):
        for index, cluster in enumerate(clusters):
            some = [p for p in drawn if p.standing is standing and p.analysis.placement.cluster == cluster]
            colour = SERIES[index % len(SERIES)].light
            axes.plot(
                [_value(point, measure) for point in some], [_value(point, "s") for point in some], linestyle="none",
                marker=MARKS[index % len(MARKS)], markersize=5, color=colour, zorder=3 if whole else 2,
                markerfacecolor=colour if whole else "none", label=cluster if whole else None,
            )  # fmt: skip
    for axis, name in (("x", measure), ("y", "s")):
        values = [_value(point, name) for point in drawn]
        if values and min(values) > 0 and max(values) > LOG_FROM * min(values):
            axes.set(**{f"{axis}scale": "log"})
        else:
            axes.set(**{f"{axis}lim": (0, 1.12 * max(values, default=1.0))})
    best = sorted((p for p in drawn if p.standing is Standing.FRONTIER), key=lambda point: point.s or 0.0)
    for point in best[:NAMED]:
        where = (_value(point, measure), _value(point, "s"))
        axes.annotate(_label(point), where, xytext=(4, 4), textcoords="offset points", fontsize=7)


def _value(point: Point, measure: str) -> float:
    """``s``, ``usd`` or ``kwh`` of a point that was judged, so that all three are known."""
    return float(getattr(point, measure))


def _label(point: Point) -> str:
    place = point.analysis.placement
    return f"{spoken(place.arch)}, {place.gpus}"
