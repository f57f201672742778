"""The plot of ``compare``: bars by architecture, or how throughput scales where there are several GPU counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphcost.comparison import Comparison
from graphcost.parallel.mesh import is_mesh, spoken
from graphcost.report.palette import SERIES
from graphcost.report.plots.bars import step_bars
from graphcost.report.plots.figure import draw, number_axis, plain
from graphcost.result import Analysis
from graphcost.units import format_count, format_share

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "h")
DASHES = ("-", "--", "-.", ":")


def comparison_plot(comparisons: Sequence[Comparison], path: str) -> None:
    """One row a model."""
    scaling = any(len({r.placement.gpus for r in one.ranked}) > 1 for one in comparisons)
    heights = [3.1 if scaling else 1.0 + 0.42 * len(one.ranked) for one in comparisons]

    def fill(figure: Figure) -> None:
        rows = figure.subplots(len(comparisons), 2 if scaling else 1, squeeze=False, height_ratios=heights)
        for axes, one in zip(rows, comparisons, strict=True):
            if scaling:
                _throughput(axes[0], one)
                _shares(axes[1], one)
            else:
                step_bars(axes[0], one.ranked, [spoken(r.placement.arch) for r in one.ranked])
                axes[0].set_title(_title(one), pad=18)

    draw(path, 7.2, sum(heights) + 0.3 * len(comparisons), fill)


def _title(one: Comparison) -> str:
    place = one.ranked[0].placement
    gpus = sorted({r.placement.gpus for r in one.ranked})
    count = f", {gpus[0]} GPU{'s' if gpus[0] > 1 else ''}" if len(gpus) == 1 else ""
    return f"{plain(one.name)} on {place.cluster}{count}"


def _lines(one: Comparison) -> dict[str, list[Analysis]]:
    """Results by architecture, by growing number of GPUs; of meshes the fastest for each number."""
    by_arch: dict[str, list[Analysis]] = {}
    known: set[tuple[str, int]] = set()
    for r in sorted(one.ranked, key=lambda r: (r.placement.gpus, is_mesh(r.placement.arch), r.step.step_s)):
        name = "best mesh" if is_mesh(r.placement.arch) else r.placement.arch
        if (name, r.placement.gpus) not in known:
            known.add((name, r.placement.gpus))
            by_arch.setdefault(name, []).append(r)
    return dict(sorted(by_arch.items()))


def _throughput(axes: Axes, one: Comparison) -> None:
    for index, (arch, results) in enumerate(_lines(one).items()):
        known = [r for r in results if r.step.samples_per_s]
        _line(axes, index, arch, [r.placement.gpus for r in known], [r.step.samples_per_s or 0.0 for r in known])
    _gpu_axis(axes, one)
    axes.set(yscale="log", title=_title(one), ylabel="samples/s")
    number_axis(axes, "y", format_count)


def _shares(axes: Axes, one: Comparison) -> None:
    for index, (arch, results) in enumerate(_lines(one).items()):
        _line(axes, index, arch, [r.placement.gpus for r in results], [r.step.comm_share for r in results])
    limit = one.ranked[0].step.max_comm_share
    axes.axhline(limit, color="0.3", linewidth=0.9, linestyle=(0, (1, 2)))
    axes.text(0.01, limit, " limit", transform=axes.get_yaxis_transform(), va="bottom", fontsize=7.5)
    _gpu_axis(axes, one)
    axes.set(ylim=(0, 1), title="communication, share of the step")
    number_axis(axes, "y", lambda value: format_share(value).replace(".0", ""))
    axes.legend(loc="best")


def _line(axes: Axes, index: int, label: str, x: Sequence[float], y: Sequence[float]) -> None:
    axes.plot(
        x, y, DASHES[index % len(DASHES)], marker=MARKS[index % len(MARKS)], markersize=4.5, linewidth=1.4,
        color=SERIES[index % len(SERIES)].light, label=label,
    )  # fmt: skip


def _gpu_axis(axes: Axes, one: Comparison) -> None:
    counts = sorted({r.placement.gpus for r in one.ranked})
    axes.set_xscale("log", base=2)
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.minorticks_off()
    axes.set_xlabel("GPUs")
