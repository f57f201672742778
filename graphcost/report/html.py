"""A self-contained HTML page: verdict, parts of the step, heaviest operators. No script, no network."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from graphcost.report.parts import memory_line, parts_of, phases_of
from graphcost.result import Analysis
from graphcost.units import format_bytes, format_count, format_seconds, format_share

_STYLE = """
.graphcost{font:14px/1.45 system-ui,sans-serif;max-width:60rem;margin:1rem}
.graphcost table{border-collapse:collapse;margin:.5rem 0}
.graphcost td,.graphcost th{padding:.15rem .7rem;text-align:left}
.graphcost td.n,.graphcost th.n{text-align:right;font-variant-numeric:tabular-nums}
.graphcost tr:nth-child(even){background:#8881}.graphcost .bar{height:.7rem;background:#3b7dd8;min-width:1px}
.graphcost .flagged{color:#b00020}.graphcost .clear{color:#1b7f3b}.graphcost .too-close{color:#9a6700}
"""


def html_report(results: Sequence[Analysis], *, top: int = 10, **_: Any) -> str:
    """One section a model; also what notebooks show."""
    sections = "\n".join(_section(result, top) for result in results)
    return f'<div class="graphcost"><style>{_STYLE}</style>\n{sections}</div>\n'


def _section(r: Analysis, top: int) -> str:
    place, step = r.placement, r.step
    rows = "".join(
        f'<tr><td>{part.name}</td><td class="n">{format_seconds(part.seconds)}</td>'
        f'<td class="n">{format_share(part.share)}</td>'
        f'<td><div class="bar" style="width:{12 * part.share:.2f}rem"></div></td><td>{escape(part.note)}</td></tr>'
        for part in parts_of(r)
    )
    phases = ", ".join(f"{name} {format_seconds(seconds)}" for name, seconds in phases_of(r))
    ranked = sorted(r.ops, key=lambda op: -(op.time_s or 0.0))[:top]
    ops = "".join(
        f"<tr><td>{escape(op.op_type)}</td><td>{escape(op.name)}</td>"
        f'<td class="n">{format_seconds(op.time_s or 0.0)}</td>'
        f'<td class="n">{format_count(op.matmul_flops + op.elementwise_flops)}</td>'
        f'<td class="n">{format_bytes(op.read_bytes + op.write_bytes)}</td><td>{escape(op.bound)}</td></tr>'
        for op in ranked
    )
    return (
        f"<h2>{escape(r.model.name)}</h2><p>{escape(place.arch)}, {place.gpus} GPUs, {escape(place.cluster)}, "
        f"batch {place.batch_per_gpu}, {escape(r.training.precision)}, {escape(place.profile)} profile</p>"
        f'<p class="{step.verdict}"><strong>{escape(step.verdict)}</strong>: '
        f"communication is {format_share(step.comm_share)} "
        f"of the step, limit {format_share(step.max_comm_share)}</p><p>{escape(step.reason)}</p>"
        f"<p>step {format_seconds(step.step_s)} ({format_seconds(step.step_low_s)} to "
        f"{format_seconds(step.step_high_s)})</p>"
        f"<table>{rows}</table>"
        f"<p>{'of which ' if phases else ''}{phases}</p>"
        f"<p>{escape(memory_line(r))}</p>"
        '<table><tr><th>operator</th><th>name</th><th class="n">time</th>'
        '<th class="n">FLOP</th><th class="n">bytes</th><th>bound</th></tr>'
        f"{ops}</table>"
    )
