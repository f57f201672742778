"""Stacked bars of steps, for one result or several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphcost.report.palette import HIDDEN, PARTS
from graphcost.report.parts import parts_of
from graphcost.report.plots.figure import bar_style, number_axis, plain
from graphcost.result import Analysis
from graphcost.units import format_seconds, format_share

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def step_bars(axes: Axes, results: Sequence[Analysis], labels: Sequence[str]) -> None:
    """One bar a result from the top, with the share that communication has at its end; hidden beside it, thin."""
    places = range(len(results))
    left = [0.0] * len(results)
    for name, ink in PARTS.items():
        if name == HIDDEN:
            hidden = [r.step.hidden_comm_s for r in results]
            if any(hidden):
                lower = [place + 0.37 for place in places]
                axes.barh(lower, hidden, height=0.14, label=HIDDEN, **bar_style(ink))
            continue
        widths = [next(part.seconds for part in parts_of(r) if part.name == name) for r in results]
        if any(widths):
            axes.barh(places, widths, left=left, height=0.56, label=name, **bar_style(ink))
            left = [start + width for start, width in zip(left, widths, strict=True)]
    for place, r in zip(places, results, strict=True):
        said = f" {format_seconds(r.step.step_s)}, {format_share(r.step.comm_share)} comm"
        axes.text(r.step.step_s, place, said, va="center", fontsize=8)
    axes.set_yticks(list(places), [plain(label) for label in labels])
    axes.invert_yaxis()
    longest = max([r.step.step_s for r in results] + [r.step.hidden_comm_s for r in results])
    axes.set_xlim(0, 1.28 * longest if longest > 0 else 1.0)
    number_axis(axes, "x", format_seconds)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    handles, names = axes.get_legend_handles_labels()
    if handles:
        axes.legend(handles, names, loc="lower left", bbox_to_anchor=(0, 1), ncols=len(handles), borderaxespad=0.1,
                    handlelength=1.6, columnspacing=1.2)  # fmt: skip
