"""The plot of ``analyze``: where the step goes, and the operators under the device's roofs."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10, sqrt
from typing import TYPE_CHECKING

from graphcost.report.palette import SERIES
from graphcost.report.plots.bars import step_bars
from graphcost.report.plots.figure import draw, number_axis
from graphcost.report.roofline import points_of
from graphcost.result import Analysis
from graphcost.units import format_flops_per_s

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKS = {"compute": ("o", SERIES[0]), "memory": ("D", SERIES[1])}


def analysis_plot(results: Sequence[Analysis], path: str) -> None:
    """One bar a model; of a single model its roofline too, where the profile times operators."""
    alone = results[0] if len(results) == 1 else None
    with_roofline = alone is not None and alone.predicted is not None and bool(alone.predicted.ops)
    bars_in = 1.0 + 0.42 * len(results)

    def fill(figure: Figure) -> None:
        if with_roofline:
            above, below = figure.subplots(2, 1, height_ratios=[bars_in, 3.6])
            _roofline(below, results[0])
        else:
            above = figure.subplots()
        step_bars(above, results, [r.model.name for r in results])

    draw(path, 6.8, bars_in + (3.9 if with_roofline else 0.0), fill)


def _roofline(axes: Axes, r: Analysis) -> None:
    details, predicted = r.details, r.predicted
    assert details is not None and predicted is not None
    points = points_of(predicted.ops)
    total_s = sum(point.time_s for point in points) or 1.0
    for bound, (mark, ink) in _MARKS.items():
        those = [point for point in points if point.bound == bound]
        if those:
            axes.scatter(
                [p.flop_per_byte for p in those], [p.flops_per_s for p in those],
                s=[max(8.0, min(700.0, 3000 * p.time_s / total_s)) for p in those], marker=mark, color=ink.light,
                alpha=0.75, linewidths=0.5, edgecolors="white", label=f"{bound}-bound", zorder=3,
            )  # fmt: skip
    rate, top = details.mem_bytes_per_s, max(roof.flops_per_s for roof in details.roofs)
    low = 10.0 ** floor(log10(min([p.flop_per_byte for p in points] + [1.0])))
    high = 10.0 ** ceil(log10(max([p.flop_per_byte for p in points] + [2 * top / rate])))
    axes.plot([low, top / rate], [low * rate, top], color="0.15", linewidth=1.1, zorder=2)
    for index, roof in enumerate(details.roofs):
        dash = ("-", "--", ":")[index % 3]
        axes.plot(
            [roof.flops_per_s / rate, high], [roof.flops_per_s] * 2, dash, color="0.15", linewidth=1.1, zorder=2
        )
        said = f"{roof.name}, {format_flops_per_s(roof.flops_per_s)}"
        axes.text(high, roof.flops_per_s * 1.06, said, ha="right", va="bottom", fontsize=7.5)
    floor_rate = min([p.flops_per_s for p in points] + [low * rate])
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(10.0 ** floor(log10(floor_rate)), 4 * top))
    axes.set(
        xlabel="FLOP per byte", title=f"Kernels under the nominal roofs of {details.device}; area: share of time"
    )
    number_axis(axes, "x", lambda value: f"{value:g}")
    number_axis(axes, "y", format_flops_per_s)
    legend = axes.legend(loc="lower right")
    for handle in legend.legend_handles:
        if handle is not None and hasattr(handle, "set_sizes"):
            handle.set_sizes([sqrt(900.0)])
