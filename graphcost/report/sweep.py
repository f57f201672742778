"""``graphcost sweep`` as text, JSON, CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from typing import Any

from graphcost._version import __version__
from graphcost.report.parts import plural, share_text
from graphcost.report.tables import DEFAULT_WIDTH, latex_table, markdown_table, table_text
from graphcost.resources import RESOURCES
from graphcost.result import SCHEMA_VERSION
from graphcost.sweeping import Elasticity, Row, Sweep
from graphcost.units import format_rate, format_seconds
from graphcost.what_if import Outcome

_COLUMNS = ["step", "interval", "comm", "verdict", "samples/s", "speed-up"]
_NUMBERS = (
    "step_s", "step_low_s", "step_high_s", "comm_share", "comm_share_low", "comm_share_high", "verdict", "bound",
    "samples_per_s", "fits",
)  # fmt: skip


def render_sweep(found: Sweep, form: str, *, width: int = DEFAULT_WIDTH) -> str:
    """``found`` in one of ``SWEEP_FORMATS``."""
    return SWEEP_FORMATS[form](found, width)


def _text(found: Sweep, width: int) -> str:
    base, place = found.base, found.base.choice.placement
    batch = f"batch {base.batch} per GPU, " if base.batch is not None else ""
    parts = [
        f"{found.analysis.model.name} on {place.cluster.id} ({place.cluster.device.id}): {base.choice.arch.name}, "
        f"{plural(place.gpus, 'GPU')} on {plural(place.servers, 'server')}, {batch}{base.choice.profile} profile\n"
    ]
    for columns, rows in _tables(found):
        parts.append(table_text(columns, rows, right=(*range(len(columns) - 5), len(columns) - 2), width=width))
    parts += [f"{_told(row.settings)}: {row.refusal}\n" for row in found.rows if row.refusal]
    rows = [_elasticity_cells(one) for one in found.elasticities]
    parts.append(
        "elasticity: % of change of the step per % of change of the resource, at the base\n"
        + table_text(["resource", "now", "step", "samples/s"], rows, right=(2, 3), width=width)
    )
    parts += [f"{one.resource}: {one.note}\n" for one in found.elasticities if one.note]
    return "\n".join(parts)


def _tables(found: Sweep) -> list[tuple[list[str], list[list[str]]]]:
    """One table a resource, or one of all combinations; the base is the first row."""
    groups = [found.varied] if found.grid else [(name,) for name in found.varied]
    made = []
    for names in groups:
        rows = [row for row in found.rows if tuple(name for name, _ in row.settings) == names]
        now = [_now(found, name) for name in names]
        cells = [[f"base: {now[0]}", *now[1:], *_cells(found.base, 1.0)]]
        cells += [
            [*(RESOURCES[name].show(v) for name, v in row.settings), *_cells(row.outcome, row.throughput_speedup)]
            for row in rows
            if row.outcome is not None
        ]
        made.append(([*names, *_COLUMNS], cells))
    return made


def _now(found: Sweep, name: str) -> str:
    value = RESOURCES[name].of(found.base.options, found.base.choice, found.base.batch)
    return "none" if value is None else RESOURCES[name].show(value)


def _cells(outcome: Outcome, gain: float | None) -> list[str]:
    step = outcome.step
    interval = "-"
    if step.step_low_s != step.step_high_s:
        interval = f"{format_seconds(step.step_low_s)} to {format_seconds(step.step_high_s)}"
    return [
        format_seconds(step.step_s),
        interval,
        share_text(step.comm_share, step.comm_share_low, step.comm_share_high),
        f"{outcome.verdict}{'' if outcome.fits else ', does not fit'}",
        format_rate(outcome.samples_per_s),
        "-" if gain is None else f"{gain:.3g}x",
    ]


def _told(settings: Sequence[tuple[str, float]]) -> str:
    return ", ".join(f"{name} {RESOURCES[name].show(value)}" for name, value in settings)


def _elasticity_cells(one: Elasticity) -> list[str]:
    now = "none" if one.base is None else RESOURCES[one.resource].show(one.base)
    return [one.resource, now, *("-" if value is None else f"{value:+.3f}" for value in (one.step, one.throughput))]


def _numbers(outcome: Outcome | None) -> dict[str, Any]:
    if outcome is None:
        return dict.fromkeys(_NUMBERS)
    step = outcome.step
    return {
        "step_s": step.step_s, "step_low_s": step.step_low_s, "step_high_s": step.step_high_s,
        "comm_share": step.comm_share, "comm_share_low": step.comm_share_low,
        "comm_share_high": step.comm_share_high, "verdict": str(outcome.verdict), "bound": step.bound,
        "samples_per_s": outcome.samples_per_s, "fits": outcome.fits,
    }  # fmt: skip


def sweep_to_dict(found: Sweep) -> dict[str, Any]:
    """The JSON of a sweep; values in base units (bytes/s, FLOP/s, counts)."""
    analysis = found.analysis.to_dict()
    return {
        "schema_version": SCHEMA_VERSION,
        "graphcost_version": __version__,
        "command": "sweep",
        "model": analysis["model"],
        "placement": analysis["placement"],
        "grid": found.grid,
        "base": _numbers(found.base),
        "rows": [
            {
                "settings": dict(row.settings),
                **_numbers(row.outcome),
                "speedup": row.speedup,
                "throughput_speedup": row.throughput_speedup,
                "refusal": row.refusal,
            }
            for row in found.rows
        ],
        "elasticities": [
            {
                "resource": one.resource,
                "base": one.base,
                "over": None if one.over is None else list(one.over),
                "step": one.step,
                "throughput": one.throughput,
                "note": one.note,
            }
            for one in found.elasticities
        ],
    }


def _json(found: Sweep, width: int) -> str:
    return json.dumps(sweep_to_dict(found), indent=2, allow_nan=False)


def _csv(found: Sweep, width: int) -> str:
    """One row a combination, the base first; a resource that a row leaves at the base is empty."""
    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["model", *found.varied, *_NUMBERS, "speedup", "throughput_speedup", "refusal"])
    rows = [Row((), found.base, None, 1.0, 1.0), *found.rows]
    for row in rows:
        values = dict(row.settings)
        writer.writerow(
            [
                found.analysis.model.name,
                *(_plain(values.get(name)) for name in found.varied),
                *_numbers(row.outcome).values(),
                row.speedup,
                row.throughput_speedup,
                row.refusal,
            ]
        )
    return buffer.getvalue()


def _plain(value: float | None) -> float | int | None:
    return int(value) if value is not None and value.is_integer() else value


def _markdown(found: Sweep, width: int) -> str:
    rows = [_elasticity_cells(one) for one in found.elasticities]
    tables = [markdown_table(columns, cells) for columns, cells in _tables(found)]
    refused = "".join(f"- {_told(row.settings)}: {row.refusal}\n" for row in found.rows if row.refusal)
    elasticities = markdown_table(["resource", "now", "elasticity of the step", "of samples/s"], rows)
    notes = "".join(f"- {one.resource}: {one.note}\n" for one in found.elasticities if one.note)
    return "\n".join(filter(None, [f"### {found.analysis.model.name}\n", *tables, refused, elasticities, notes]))


def _latex(found: Sweep, width: int) -> str:
    """Tables of booktabs."""
    return "\n".join(latex_table(columns, cells) for columns, cells in _tables(found))


SWEEP_FORMATS: Mapping[str, Callable[[Sweep, int], str]] = {
    "text": _text,
    "json": _json,
    "csv": _csv,
    "markdown": _markdown,
    "latex": _latex,
}
