"""Markdown and CSV of analyses: one row a model."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from io import StringIO
from typing import Any

from graphcost.report.parts import bill_cells, bill_row, parts_of
from graphcost.report.tables import markdown_table
from graphcost.result import Analysis
from graphcost.units import format_bytes, format_count, format_macs, format_seconds, format_share


def markdown_report(results: Sequence[Analysis], **_: Any) -> str:
    """A table of verdicts, each reason, and where each step's time goes."""
    columns = [
        "model",
        "verdict",
        "communication",
        "step",
        "bound",
        "MAC",
        "parameters",
        "memory",
        "kWh/M samples",
        "USD/M samples",
    ]
    rows = [
        [
            r.model.name,
            r.step.verdict,
            format_share(r.step.comm_share),
            format_seconds(r.step.step_s),
            r.step.bound,
            format_macs(r.graph.macs),
            format_count(r.graph.params),
            format_bytes(r.training.memory.peak_bytes),
            *bill_cells(r),
        ]
        for r in results
    ]
    reasons = "\n".join(f"- **{r.model.name}**: {r.step.reason}" for r in results)
    parts = ["compute", "memory", "host", "input", "communication", "hidden", "forward", "backward", "update"]
    times = [[r.model.name, *map(_seconds, _times(r))] for r in results]
    return "\n".join([markdown_table(columns, rows), reasons, "", markdown_table(["model", *parts], times)])


def _times(r: Analysis) -> tuple[float | None, ...]:
    """The step's parts, which add up to it, what of communication is hidden, and its phases."""
    step = r.step
    phases = (step.forward_s, step.backward_s, step.update_s)
    return (*(part.seconds for part in parts_of(r)), step.hidden_comm_s, *phases)


def _seconds(value: float | None) -> str:
    return "-" if value is None else format_seconds(value)


def csv_report(results: Sequence[Analysis], *, per_op: bool = False, **_: Any) -> str:
    """One row a model, or one row an operator with ``per_op``."""
    if per_op:
        rows = [{"model": r.model.name, **asdict(op)} for r in results for op in r.ops]
    else:
        rows = [result_row(r) for r in results]
    return rows_csv(rows)


def result_row(r: Analysis) -> dict[str, Any]:
    """The numbers of one model by column."""
    return {
        "model": r.model.name,
        "arch": r.placement.arch,
        "gpus": r.placement.gpus,
        "cluster": r.placement.cluster,
        "macs": r.graph.macs,
        "params": r.graph.params,
        **asdict(r.step),
        **bill_row(r),
    }


def rows_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows of the same columns as CSV."""
    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    if rows:
        writer.writerow(rows[0])
        writer.writerows(row.values() for row in rows)
    return buffer.getvalue()
