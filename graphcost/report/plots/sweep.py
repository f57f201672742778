"""The plot of ``sweep``: step time and communication share over each resource that was varied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log10
from typing import TYPE_CHECKING, Protocol

from graphcost.report.palette import PARTS, SERIES
from graphcost.report.plots.comparison import DASHES, MARKS
from graphcost.report.plots.figure import draw, number_axis, plain
from graphcost.resources import RESOURCES, Resource
from graphcost.sweeping import Setting, Sweep
from graphcost.units import format_seconds, format_share
from graphcost.what_if import Outcome

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


@dataclass(frozen=True, slots=True)
class Line:
    """A ``SweepSeries``."""

    resource: str
    unit: str
    label: str
    values: tuple[float, ...]
    step_s: tuple[float, ...]
    comm_share: tuple[float, ...]


def lines_of(found: Sweep) -> list[Line]:
    """A sweep as lines: one a resource, or under ``grid`` over the first, one a combination of the others."""
    lines = []
    groups: dict[tuple[str, tuple[Setting, ...]], list[tuple[float, Outcome]]] = {}
    for row in found.rows:
        name, value = row.settings[0]
        if row.outcome is not None:
            groups.setdefault((name, row.settings[1:]), []).append((value, row.outcome))
    for (name, others), points in groups.items():
        points.sort(key=lambda point: point[0])
        unit, one = _scale(RESOURCES[name], points[-1][0])
        lines.append(
            Line(
                resource=name,
                unit=unit,
                label=", ".join(f"{other} {RESOURCES[other].show(value)}" for other, value in others) or name,
                values=tuple(value / one for value, _ in points),
                step_s=tuple(outcome.step.step_s for _, outcome in points),
                comm_share=tuple(outcome.step.comm_share for _, outcome in points),
            )
        )
    return lines


def _scale(resource: Resource, largest: float) -> tuple[str, float]:
    """The unit in which the largest value is shown, and how much of the base unit it is."""
    number, _, unit = resource.show(largest).partition(" ")
    thousands = round(log10(largest / resource.shown_unit / float(number.replace(",", ""))) / 3)
    return unit, resource.shown_unit * 1000.0**thousands


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
