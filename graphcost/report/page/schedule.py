"""``schedule compare`` as one page: schedulers with intervals, paired differences, completion times as curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphcost.report.page.document import document
from graphcost.report.page.markup import Cell, Html, chart, element, joined, section, table
from graphcost.sim.comparing import Difference, Interval, Row, ScheduleComparison
from graphcost.units import format_seconds, format_share

PERCENTILES = (10, 25, 50, 75, 90, 95, 99)

MOST_POINTS = 200
"""Of a curve; more jobs are thinned evenly, the longest kept."""

_FOOTER = "Simulated; nothing was run."


def schedule_page(found: ScheduleComparison, title: str, setting: Sequence[str]) -> str:
    """The page of ``found``; ``setting``: sentences on what was simulated."""
    body = joined(
        (
            element("div", *(element("p", one) for one in setting), class_="verdict"),
            section(
                "Schedulers",
                _schedulers((*found.rows, found.bound)),
                element(
                    "p",
                    f"Means over {len(found.seeds)} traces; {100 * found.confidence:.0f} % bootstrap intervals over "
                    f"traces ({found.resamples:,} resamples). bound: every job alone on the tasks that suit it best.",
                    class_="note",
                ),
                id_="schedulers",
            ),
            section("Paired differences in mean completion", _differences(found), id_="differences"),
            section("Completion times of all jobs", _completion(found), id_="times"),
        ),
        "\n",
    )
    return document(title, body, {"models": [curves_of(found)]}, scripts=("schedule.js",), footer=_FOOTER)


def _schedulers(rows: Sequence[Row]) -> Html:
    heads = ("scheduler", "mean completion", "from", "to", "p95", "makespan", "GPU use")
    return table(heads, [_row(row) for row in rows], caption="Schedulers and the bound")


def _row(row: Row) -> list[str | Cell]:
    jct, use = row.figures["mean_jct_s"], row.figures["utilisation"]
    return [
        row.scheduler,
        _time(None if jct is None else jct.mean),
        _time(None if jct is None else jct.low),
        _time(None if jct is None else jct.high),
        _mean(row.figures["p95_jct_s"]),
        _mean(row.figures["makespan_s"]),
        Cell("-", None) if use is None else Cell(format_share(use.mean), use.mean),
    ]


def _differences(found: ScheduleComparison) -> Html:
    heads = ("scheduler", "against", "difference", "from", "to", "seconds", "sooner on", "later on")
    return table(heads, [_difference(one) for one in found.differences], caption="Differences, trace by trace")


def _difference(one: Difference) -> list[str | Cell]:
    shares = (one.relative.mean, one.relative.low, one.relative.high)
    return [
        one.scheduler,
        one.against,
        *(Cell(f"{100 * share:+.1f} %", share) for share in shares),
        Cell(f"{one.mean_jct_s.mean:+,.0f} s", one.mean_jct_s.mean),
        *(Cell(f"{count}", count) for count in (one.sooner_on, one.later_on)),
    ]


def curves_of(found: ScheduleComparison) -> dict[str, Any]:
    """What the chart draws: by scheduler (seconds, share of its finished jobs that took no longer), each from 0 on.

    ``low``, ``high``: the whole powers of ten around all times.
    """
    drawn = {name: _points(times) for name, times in found.completion_s.items() if times}
    every = [seconds for points in drawn.values() for seconds, _ in points]
    low, high = (np.floor(np.log10(min(every))), np.ceil(np.log10(max(every)))) if every else (0, 1)
    return {
        "curves": [{"name": name, "points": points} for name, points in drawn.items()],
        "low": float(10**low),
        "high": float(10 ** max(high, low + 1)),
    }


def _points(times: Sequence[float]) -> list[list[float]]:
    ordered = np.sort(np.array(times))
    count = len(ordered)
    kept = np.unique(np.linspace(0, count - 1, min(count, MOST_POINTS)).round().astype(int))
    points = [[float(f"{ordered[at]:.5g}"), float((at + 1) / count)] for at in kept]
    return [[points[0][0], 0.0], *points]


def _completion(found: ScheduleComparison) -> Html:
    """The cumulative distribution, its figures under it."""
    medians = "; ".join(
        f"{name} {format_seconds(float(np.median(times)))}" for name, times in found.completion_s.items() if times
    )
    said = f"Half of the jobs took no longer than: {medians}."
    note = "Finished jobs of all traces together; the scale of time is logarithmic."
    return chart("completion", 0, "Jobs that took no longer", said, _percentiles(found), note)


def _percentiles(found: ScheduleComparison) -> Html:
    """The cumulative distribution in figures."""
    rows: list[list[str | Cell]] = [
        [name, *(_time(float(value)) for value in np.percentile(times, PERCENTILES))]
        for name, times in found.completion_s.items()
        if times
    ]
    heads = ("scheduler", *(f"{percent} %" for percent in PERCENTILES))
    return table(heads, rows, caption="So many of the jobs took no longer")


def _mean(figure: Interval | None) -> Cell:
    return _time(None if figure is None else figure.mean)


def _time(seconds: float | None) -> Cell:
    return Cell("-", None) if seconds is None else Cell(format_seconds(seconds), seconds)
