"""The terminal report: verdict and reason first, then the parts, then the heaviest operators."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Callable, Sequence

from graphcost.report.parts import (
    VERDICTS,
    bill_lines,
    memory_line,
    parts_of,
    phases_of,
    plural,
    precision_text,
    share_text,
)
from graphcost.report.tables import DEFAULT_WIDTH, table_text
from graphcost.result import Analysis, OpInfo
from graphcost.units import (
    format_bytes,
    format_count,
    format_flops,
    format_macs,
    format_rate,
    format_seconds,
    format_share,
)

_BAR = 24


def text_report(
    results: Sequence[Analysis],
    *,
    width: int = DEFAULT_WIDTH,
    top: int = 10,
    per_op: bool = False,
    by: str | None = None,
) -> str:
    """One result in full; several as one table, then each one's verdict line."""
    if len(results) == 1:
        return _full(results[0], width, top, per_op, by)
    return _table(results, width)


def _table(results: Sequence[Analysis], width: int) -> str:
    columns = ["model", "verdict", "comm", "step", "samples/s", "bound", "MAC", "params", "unknown"]
    rows = [
        [
            r.model.name,
            r.step.verdict,
            format_share(r.step.comm_share),
            format_seconds(r.step.step_s),
            format_rate(r.step.samples_per_s),
            r.step.bound,
            format_macs(r.graph.macs),
            format_count(r.graph.params),
            str(sum(entry.count for entry in r.graph.coverage.unknown)),
        ]
        for r in results
    ]
    place = results[0].placement
    head = (
        f"{place.arch}, {plural(place.gpus, 'GPU')} on {plural(place.servers, 'server')} of "
        f"{place.cluster}, {place.profile} profile\n"
    )
    return head + table_text(columns, rows, right=(2, 3, 4, 6, 7, 8), width=width)


def _full(r: Analysis, width: int, top: int, per_op: bool, by: str | None) -> str:
    parts = [verdict_text(r, width), _step(r, width), _messages(r, width)]
    parts += [_memory(r, width), _bill(r, width), _graph(r, width)]
    if by is not None:
        parts.append(_grouped(r.ops, by, width, top))
    else:
        parts.append(_operators(r.ops, width, None if per_op else top))
    parts += [_symbolic(r, width)] if r.symbolic is not None else []
    return "\n".join([*parts, _coverage(r)]) + "\n"


def verdict_text(r: Analysis, width: int = DEFAULT_WIDTH) -> str:
    """What was analysed where, and the verdict with its reason."""
    return f"{_head(r)}\n{_verdict(r, width)}"


def _head(r: Analysis) -> str:
    place = r.placement
    default = " (the default cluster)" if place.cluster_source == "default" else ""
    unit = "micro-batch" if "=" in place.arch else "GPU"  # a mesh shares one among its GPUs
    batch = f"batch {place.batch_per_gpu} per {unit}" if place.batch_per_gpu is not None else "no batch dimension"
    ps = f", {place.ps} parameter server{'s' if place.ps != 1 else ''}" if place.ps else ""
    precision = precision_text(r.training.precision, r.training.master_weights)
    trainer = f", {r.training.trainer}" if r.training.trainer != "torch" else ""
    return (
        f"{r.model.name}: {place.arch}, {plural(place.gpus, 'GPU')} on {plural(place.servers, 'server')} "
        f"of {place.cluster}{default}{ps}\n"
        f"{place.device}, {batch}, {precision}, {r.training.optimizer}{trainer}, "
        f"{place.profile} profile, {place.execution}, overlap {place.overlap}\n"
    )


def _verdict(r: Analysis, width: int) -> str:
    step = r.step
    share = share_text(step.comm_share, step.comm_share_low, step.comm_share_high)
    line = (
        f"{VERDICTS[step.verdict]}: communication is {share} of the step, limit {format_share(step.max_comm_share)}"
    )
    lines = [line, step.reason]
    if step.comm_share_at_batch_32 is not None:
        lines.append(
            f"the file fixes the batch at 1; at batch 32 communication is {format_share(step.comm_share_at_batch_32)}"
        )
    wrapped = [
        textwrap.fill(text, width, subsequent_indent="  ", initial_indent="" if i == 0 else "  ")
        for i, text in enumerate(lines)
    ]
    return "\n".join(wrapped) + "\n"


def _step(r: Analysis, width: int) -> str:
    step = r.step
    interval = (
        f" ({format_seconds(step.step_low_s)} to {format_seconds(step.step_high_s)})"
        if step.step_low_s != step.step_high_s
        else ""
    )
    rate = f", {format_rate(step.samples_per_s)} samples/s" if step.samples_per_s is not None else ""
    head = (
        f"step {format_seconds(step.step_s)}{interval}{rate}, scaling "
        f"{format_share(step.scaling_efficiency)}, bound by {step.bound}"
    )
    if step.interval_evidence.startswith("no measurement"):
        head += f"\n  interval: {step.interval_evidence}"
    rows = [
        [
            f"  {part.name}",
            format_seconds(part.seconds),
            format_share(part.share),
            "#" * round(part.share * _BAR),
            part.note,
        ]
        for part in parts_of(r)
    ]
    table = table_text(["", "", "", "", ""], rows, right=(1, 2), width=width, header=False)
    return head + "\n" + table + _phases(r)


def _phases(r: Analysis) -> str:
    phases = ", ".join(f"{name} {format_seconds(seconds)}" for name, seconds in phases_of(r))
    return f"  of which {phases}\n" if phases else ""


def _messages(r: Analysis, width: int) -> str:
    """What is sent and how it was counted; the sources are in the JSON."""
    rows = [
        [f"  {one.what}", format_seconds(one.time_s), f"{format_seconds(one.exposed_s)} exposed", one.formula]
        for one in r.communication
    ]
    return table_text(["", "", "", ""], rows, right=(1, 2), width=width, header=False) if rows else ""


def _memory(r: Analysis, width: int) -> str:
    text = memory_line(r)
    if r.max_batch is not None:
        text += f"; largest batch that fits: {r.max_batch}" if r.max_batch else "; not even a batch of 1 fits"
    return textwrap.fill(text, width, subsequent_indent="  ")


def _bill(r: Analysis, width: int) -> str:
    glued = (line.replace(" %", "\0%") for line in bill_lines(r))  # a number keeps its sign
    return "\n".join(textwrap.fill(line, width, subsequent_indent="  ") for line in glued).replace("\0", " ")


def _graph(r: Analysis, width: int) -> str:
    graph = r.graph
    forward, backward, moved = r.training.forward_flops, r.training.backward_flops, r.training.bytes
    text = (
        f"graph {format_macs(graph.macs)}, {format_flops(graph.matmul_flops)} matmul, "
        f"{format_flops(graph.elementwise_flops)} elementwise, {format_count(graph.params)} parameters "
        f"({format_bytes(graph.param_bytes)}), {format_count(graph.buffers)} buffers; "
        f"training {format_flops(forward + backward + r.training.update_flops)} a step; forward traffic "
        f"{format_bytes(moved.eager_bytes)} eager, {format_bytes(moved.fused_bytes)} fused, "
        f"{format_bytes(moved.weights_bytes)} weights alone"
    )
    return textwrap.fill(text, width, subsequent_indent="  ") + "\n"


def _symbolic(r: Analysis, width: int) -> str:
    found = r.symbolic or {}
    lines = [f"forward costs in {', '.join(found['sizes'])}"]
    lines += [f"  where {condition}" for condition in found["conditions"]]
    skipped = {"sizes", "conditions", "not_polynomial"}
    lines += [
        textwrap.fill(f"{name} = {text}", width, initial_indent="  ", subsequent_indent="    ")
        for name, text in found.items()
        if name not in skipped
    ]
    lines += [f"  {name}: {reason}" for name, reason in list(found["not_polynomial"].items())[:10]]
    return "\n".join(lines) + "\n"


def _operators(ops: Sequence[OpInfo], width: int, top: int | None) -> str:
    timed = any(op.time_s is not None for op in ops)
    ranked = sorted(ops, key=lambda op: -(op.time_s or 0.0) if timed else -(op.matmul_flops + op.elementwise_flops))
    shown = list(ops) if top is None else [op for op in ranked if op.counted][:top]
    if not shown:
        return ""
    total_s = sum(op.time_s or 0.0 for op in ops)
    columns = ["operator", "name", "FLOP", "bytes", "parameters"]
    rows = [
        [
            op.op_type,
            _short(op.name),
            format_count(op.matmul_flops + op.elementwise_flops),
            format_bytes(op.read_bytes + op.write_bytes),
            format_count(op.params),
        ]
        for op in shown
    ]
    right = [2, 3, 4]
    if timed:
        columns = ["time", "share", *columns, "bound"]
        rows = [
            [
                format_seconds(op.time_s or 0.0),
                format_share((op.time_s or 0.0) / total_s if total_s else 0.0),
                *row,
                op.bound,
            ]
            for op, row in zip(shown, rows, strict=True)
        ]
        right = [0, 1, 4, 5, 6]
    title = "operators in execution order" if top is None else f"heaviest of {len(ops)} operators"
    what = " (time: forward and backward; FLOP, bytes: forward)" if timed else ""
    return title + what + "\n" + table_text(columns, rows, right=right, width=width)


def _grouped(ops: Sequence[OpInfo], by: str, width: int, top: int) -> str:
    keys: dict[str, Callable[[OpInfo], str]] = {
        "module": lambda op: op.module or "(top)",
        "op": lambda op: op.op_type,
        "class": lambda op: op.op_class,
    }
    key = keys[by]
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0, 0, 0, 0])
    for op in ops:
        entry = sums[key(op)]
        for index, amount in enumerate(
            (op.time_s or 0.0, op.matmul_flops + op.elementwise_flops, op.read_bytes + op.write_bytes, op.params, 1)
        ):
            entry[index] += amount
    rows = [
        [name, format_seconds(s[0]), format_count(s[1]), format_bytes(s[2]), format_count(s[3]), str(int(s[4]))]
        for name, s in sorted(sums.items(), key=lambda item: (-item[1][0], -item[1][1]))[:top]
    ]
    return f"by {by}\n" + table_text(
        [by, "time", "FLOP", "bytes", "parameters", "operators"], rows, right=(1, 2, 3, 4, 5), width=width
    )


def _coverage(r: Analysis) -> str:
    coverage = r.graph.coverage
    unknown = sum(entry.count for entry in coverage.unknown)
    names = f" ({', '.join(f'{e.op_type} x{e.count}' for e in coverage.unknown)})" if unknown else ""
    return (
        f"operators: {coverage.counted} counted, {coverage.free} free, {unknown} unknown{names}; "
        f"{coverage.folded} constant, folded"
    )


def _short(name: str, limit: int = 34) -> str:
    """The end of a long name says more than its beginning."""
    return name if len(name) <= limit else "..." + name[-(limit - 3) :]
