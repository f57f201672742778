"""``graphcost compare --pareto`` as text, JSON, Markdown and CSV."""

from __future__ import annotations

import csv
import json
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from typing import Any

from graphcost._version import __version__
from graphcost.pareto import Pareto, Point, Standing
from graphcost.report.parts import plural
from graphcost.report.tables import DEFAULT_WIDTH, markdown_table, table_text
from graphcost.result import SCHEMA_VERSION
from graphcost.units import format_kwh, format_seconds, format_usd

MOST_ROWS = 20
"""Rows of each part in text; the rest is counted, and in every other format."""

MOST_REFUSALS = 3

BASIS = (
    "best estimates of time, US dollars and kWh of a million samples; servers are rented whole; "
    "energy of the GPUs alone, power shares assumed"
)

_COLUMNS = ["#", "cluster", "GPUs", "arch", "time", "USD", "kWh", "standing"]


def render_pareto(found: Sequence[Pareto], form: str, *, width: int = DEFAULT_WIDTH) -> str:
    """``found`` in one of ``PARETO_FORMATS``."""
    return PARETO_FORMATS[form](found, width)


def _standing(point: Point) -> str:
    if point.dominated_by is not None:
        return f"dominated by {point.dominated_by + 1}"
    return str(point.standing)


def _cells(number: int, point: Point) -> list[str]:
    place = point.analysis.placement
    return [
        str(number),
        place.cluster,
        str(place.gpus),
        place.arch,
        "?" if point.s is None else format_seconds(point.s),
        "?" if point.usd is None else format_usd(point.usd).removeprefix("$"),
        "?" if point.kwh is None else format_kwh(point.kwh).removesuffix(" kWh"),
        _standing(point),
    ]


def _text(found: Sequence[Pareto], width: int) -> str:
    return "\n".join(_one_text(one, width) for one in found)


def _one_text(one: Pareto, width: int) -> str:
    shown: list[list[str]] = []
    left: list[str] = []
    for standing in Standing:
        rows = [_cells(i, point) for i, point in enumerate(one.points, 1) if point.standing is standing]
        most = len(rows) if standing is Standing.FRONTIER else MOST_ROWS
        shown += rows[:most]
        if rows[most:]:
            left.append(f"{len(rows) - most} more {standing}")
    best = sum(point.standing is Standing.FRONTIER for point in one.points)
    lines = [
        f"{one.name}: {best} of {plural(len(one.points), 'placement')} on the frontier, {one.profile} profile",
        textwrap.fill(BASIS, width, initial_indent="  ", subsequent_indent="  "),
        table_text(_COLUMNS, shown, right=(0, 2, 4, 5, 6), width=width).rstrip("\n"),
    ]
    if left:
        lines.append(f"not shown: {', '.join(left)} (--format json or csv has all)")
    reasons = Counter(point.reason for point in one.points if point.standing is Standing.NOT_JUDGED)
    lines += [f"{plural(count, 'placement')} not judged: {reason}" for reason, count in reasons.items()]
    lines += [f"not possible: {_refused(entry)}" for entry in _refusals(one)[:MOST_REFUSALS]]
    if len(one.refused) > MOST_REFUSALS:
        lines.append(
            f"not possible: {plural(len(one.refused) - MOST_REFUSALS, 'more placement')} (--format json has all)"
        )
    return "\n".join(lines) + "\n"


def _refused(entry: Mapping[str, Any]) -> str:
    arch = f", {entry['arch']}" if entry["arch"] else ""
    gpus = f" on {plural(entry['gpus'], 'GPU')}" if entry["gpus"] else ""
    return f"{entry['cluster']}{arch}{gpus}: {entry['reason']}"


def _refusals(one: Pareto) -> list[dict[str, Any]]:
    return [{"cluster": e.cluster, "arch": e.arch, "gpus": e.gpus, "reason": e.reason} for e in one.refused]


def _fields(point: Point) -> dict[str, Any]:
    """A point flat, as CSV and JSON have it; intervals are the step's."""
    analysis = point.analysis
    place, step, energy, cost = analysis.placement, analysis.step, analysis.bill.energy, analysis.bill.cost
    return {
        "cluster": place.cluster,
        "device": place.device,
        "gpus": place.gpus,
        "servers": place.servers,
        "arch": place.arch,
        "batch_per_gpu": place.batch_per_gpu,
        "step_s": step.step_s,
        "step_low_s": step.step_low_s,
        "step_high_s": step.step_high_s,
        "samples_per_s": step.samples_per_s,
        "s_per_million_samples": point.s,
        "usd_per_million_samples": point.usd,
        "usd_per_million_samples_low": cost.usd_per_million_samples_low if cost else None,
        "usd_per_million_samples_high": cost.usd_per_million_samples_high if cost else None,
        "gpu_kwh_per_million_samples": point.kwh,
        "power_share": energy.power_share if energy else None,
        "usd_per_hour": cost.usd_per_hour if cost else None,
        "price_source": cost.source if cost else None,
        "price_date": cost.date if cost else None,
        "peak_bytes": analysis.training.memory.peak_bytes,
        "comm_share": step.comm_share,
        "verdict": step.verdict,
        "standing": str(point.standing),
        "dominated_by": point.dominated_by,
        "reason": point.reason,
    }


def _json(found: Sequence[Pareto], width: int) -> str:
    data = {
        "schema_version": SCHEMA_VERSION,
        "graphcost_version": __version__,
        "command": "compare",
        "basis": BASIS,
        "pareto": [
            {
                "model": one.name,
                "source": one.source,
                "profile": one.profile,
                "points": [_fields(point) for point in one.points],
                "refused": _refusals(one),
            }
            for one in found
        ],
    }
    return json.dumps(data, indent=2, allow_nan=False)


def _markdown(found: Sequence[Pareto], width: int) -> str:
    return "\n".join(
        f"### {one.name}\n\n{BASIS}\n\n"
        + markdown_table(_COLUMNS, [_cells(i, point) for i, point in enumerate(one.points, 1)])
        for one in found
    )


def _csv(found: Sequence[Pareto], width: int) -> str:
    rows = [{"model": one.name, **_fields(point)} for one in found for point in one.points]
    buffer = StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


PARETO_FORMATS: Mapping[str, Callable[[Sequence[Pareto], int], str]] = {
    "text": _text,
    "json": _json,
    "markdown": _markdown,
    "csv": _csv,
}
