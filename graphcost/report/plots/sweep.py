"""The plot of ``sweep``: step time and communication share over each resource that was varied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from graphcost.report.palette import PARTS, SERIES
from graphcost.report.plots.comparison import DASHES, MARKS
from graphcost.report.plots.figure import draw, number_axis, plain
from graphcost.units import format_seconds, format_share

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class SweepSeries(Protocol):
    """One line: what the step becomes as one resource changes.

    ``values`` are in ``unit`` (``Gb/s``, ``GPUs``), ``step_s`` in seconds, ``comm_share`` in 0..1, all of one
    length. Series of one ``resource`` share a pair of axes; ``label`` tells them apart.
    """

    @property
    def resource(self) -> str: ...  # noqa: D102
    @property
    def unit(self) -> str: ...  # noqa: D102
    @property
    def label(self) -> str: ...  # noqa: D102
    @property
    def values(self) -> Sequence[float]: ...  # noqa: D102
    @property
    def step_s(self) -> Sequence[float]: ...  # noqa: D102
    @property
    def comm_share(self) -> Sequence[float]: ...  # noqa: D102


def sweep_plot(series: Sequence[SweepSeries], path: str) -> None:
    """A row a resource: the step on the left, the share of communication on the right."""
    by_resource: dict[tuple[str, str], list[SweepSeries]] = {}
    for one in series:
        by_resource.setdefault((one.resource, one.unit), []).append(one)

    def fill(figure: Figure) -> None:
        rows = figure.subplots(len(by_resource), 2, squeeze=False)
        for axes, ((resource, unit), lines) in zip(rows, by_resource.items(), strict=True):
            across = f"{resource}, {unit}" if unit else resource
            _draw(axes[0], lines, [one.step_s for one in lines], across, format_seconds)
            _draw(
                axes[1], lines, [one.comm_share for one in lines], across, lambda v: format_share(v).replace(".0", "")
            )
            axes[0].set_title("step")
            axes[1].set_title("communication, share of the step")
            axes[0].set_ylim(bottom=0)
            axes[1].set_ylim(0, max(1.05 * max(max(one.comm_share, default=0) for one in lines), 0.1))
            if len(lines) > 1:
                axes[1].legend(loc="best")

    draw(path, 7.2, 2.7 * max(1, len(by_resource)), fill)


def _draw(
    axes: Axes,
    lines: Sequence[SweepSeries],
    heights: Sequence[Sequence[float]],
    across: str,
    words: Callable[[float], str],
) -> None:
    for index, (one, y) in enumerate(zip(lines, heights, strict=True)):
        alone = PARTS["compute"] if len(lines) == 1 else SERIES[index % len(SERIES)]
        axes.plot(
            one.values, y, DASHES[index % len(DASHES)], marker=MARKS[index % len(MARKS)], markersize=4.5,
            linewidth=1.4, color=alone.light, label=plain(one.label),
        )  # fmt: skip
    ticks = sorted({float(value) for one in lines for value in one.values})
    if ticks and ticks[0] > 0 and ticks[-1] / ticks[0] >= 8:
        axes.set_xscale("log")
    if len(ticks) <= 9:
        axes.set_xticks(ticks)
        axes.minorticks_off()
    number_axis(axes, "x", lambda value: f"{value:g}")
    number_axis(axes, "y", words)
    axes.set_xlabel(across)
