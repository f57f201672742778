"""Analyses as a LaTeX table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphcost.report.tables import latex_table
from graphcost.result import Analysis
from graphcost.units import (
    format_bytes,
    format_count,
    format_flops,
    format_macs,
    format_rate,
    format_seconds,
    format_share,
)


def latex_report(results: Sequence[Analysis], *, per_op: bool = False, top: int = 10, **_: Any) -> str:
    """One row a model; with ``per_op`` one row an operator."""
    if per_op:
        columns = ["operator", "name", "FLOP", "bytes", "parameters", "time"]
        rows = [
            [
                op.op_type,
                op.name,
                format_count(op.matmul_flops + op.elementwise_flops),
                format_bytes(op.read_bytes + op.write_bytes),
                format_count(op.params),
                "-" if op.time_s is None else format_seconds(op.time_s),
            ]
            for result in results
            for op in result.ops
        ]
        return latex_table(columns, rows)
    columns = ["model", "GPUs", "MAC", "training FLOP", "parameters", "memory", "step", "samples/s", "communication"]
    return latex_table(columns, [_row(result) for result in results])


def _row(r: Analysis) -> list[str]:
    training = r.training
    return [
        r.model.name,
        str(r.placement.gpus),
        format_macs(r.graph.macs),
        format_flops(training.forward_flops + training.backward_flops + training.update_flops),
        format_count(r.graph.params),
        format_bytes(training.memory.peak_bytes),
        format_seconds(r.step.step_s),
        format_rate(r.step.samples_per_s),
        format_share(r.step.comm_share),
    ]
