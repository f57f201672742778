"""Plots of schedules: completion times as cumulative shares, and how a policy learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphcost.report.palette import SERIES
from graphcost.report.plots.comparison import DASHES, MARKS
from graphcost.report.plots.figure import draw, number_axis, plain
from graphcost.sim.comparing import ScheduleComparison
from graphcost.sim.learning.options import Record
from graphcost.units import format_seconds, format_share

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def completion_plot(found: ScheduleComparison, path: str) -> None:
    """A line a scheduler, and the bound: the share of all jobs that took no longer."""

    def fill(figure: Figure) -> None:
        axes: Axes = figure.subplots()
        for index, (name, times) in enumerate(found.completion_s.items()):
            ordered = np.sort(np.array(times))
            shares = np.arange(1, len(ordered) + 1) / len(ordered)
            axes.step(
                ordered, shares, DASHES[index % len(DASHES)], where="post", linewidth=1.3,
                color=SERIES[index % len(SERIES)].light, label=plain(name),
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set_ylim(0, 1.02)
        number_axis(axes, "x", format_seconds)
        number_axis(axes, "y", lambda value: format_share(value).replace(".0", ""))
        axes.set_xlabel("completion time of a job")
        axes.set_title(f"jobs of {len(found.seeds)} traces that took no longer")
        axes.legend(loc="lower right")

    draw(path, 7.2, 4.0, fill)


def learning_plot(records: Sequence[Record], references: Sequence[tuple[str, float]], path: str) -> None:
    """Mean completion on the validation traces over updates; ``references``: levels of other schedulers, seconds."""

    def fill(figure: Figure) -> None:
        axes: Axes = figure.subplots()
        done, at = 0, []
        for before, one in zip((None, *records), records, strict=False):
            if before is not None and before.phase != one.phase:
                done = before.updates
            at.append(done + one.updates)
        for index, phase in enumerate(dict.fromkeys(record.phase for record in records)):
            points = [(x, one.mean_jct_s) for x, one in zip(at, records, strict=True) if one.phase == phase]
            axes.plot(
                [x for x, _ in points], [y for _, y in points], marker=MARKS[index], markersize=4.5, linewidth=1.4,
                color=SERIES[index].light, label=phase,
            )  # fmt: skip
        for index, (name, level_s) in enumerate(references):
            axes.axhline(
                level_s, linestyle=DASHES[1 + index % 3], linewidth=1.0, color=SERIES[6].light, label=plain(name)
            )
        axes.set_ylim(bottom=0)
        number_axis(axes, "y", format_seconds)
        axes.set_xlabel("updates")
        axes.set_title("mean completion on the validation traces")
        axes.legend(loc="best")

    draw(path, 7.2, 3.4, fill)
