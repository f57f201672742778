"""What page and fragment say of a result, in words and cells."""

from __future__ import annotations

from graphcost.report.page.markup import Cell
from graphcost.report.parts import memory_line, parts_of, phases_of, precision_text
from graphcost.result import Analysis, OpInfo
from graphcost.units import format_bytes, format_count, format_rate, format_seconds, format_share

RESULT_COLUMNS = (
    "architecture", "GPUs", "servers", "step", "samples/s", "communication", "verdict", "bound", "scaling", "memory",
)  # fmt: skip


def placed(r: Analysis) -> str:
    """Architecture, GPUs, cluster, batch, precision, optimizer, profile."""
    place, training = r.placement, r.training
    default = " (the default cluster)" if place.cluster_source == "default" else ""
    several = f"{place.gpus} GPUs on {place.servers} server{'' if place.servers == 1 else 's'} of"
    batch = "no batch dimension" if place.batch_per_gpu is None else f"batch {place.batch_per_gpu} per GPU"
    precision = precision_text(training.precision, training.master_weights)
    return (
        f"{place.arch}, {'1 GPU of' if place.gpus == 1 else several} {place.cluster}{default}, {place.device}, "
        f"{batch}, {precision}, {training.optimizer}, {place.profile} profile, {place.execution}, "
        f"overlap {place.overlap}"
    )


def headline(r: Analysis) -> str:
    """The verdict's figure, its interval and the limit."""
    step = r.step
    between = ""
    if step.comm_share_low < step.comm_share_high:
        between = f" ({format_share(step.comm_share_low)} to {format_share(step.comm_share_high)})"
    return (
        f"communication is {format_share(step.comm_share)}{between} of the step, "
        f"limit {format_share(step.max_comm_share)}"
    )


def phases_words(r: Analysis) -> str:
    """``of which forward ..., backward ..., update ...``; empty under ``paper``."""
    phases = ", ".join(f"{name} {format_seconds(seconds)}" for name, seconds in phases_of(r))
    return f"of which {phases}" if phases else ""


def memory_words(r: Analysis) -> str:
    """The peak, what it is made of, and the largest batch where somebody asked."""
    said = memory_line(r)
    if r.max_batch is not None:
        said += f"; largest batch that fits: {r.max_batch}" if r.max_batch else "; not even a batch of 1 fits"
    return said


def seconds_cell(value: float | None) -> Cell:
    """Seconds, or a dash where nothing is known."""
    return Cell("-" if value is None else format_seconds(value), value)


def part_rows(r: Analysis) -> list[tuple[str, Cell, Cell, str]]:
    """Name, seconds, share, what runs beside: one row a part of the step."""
    return [
        (part.name, seconds_cell(part.seconds), Cell(format_share(part.share), part.share), part.note)
        for part in parts_of(r)
    ]


def operator_cells(op: OpInfo) -> tuple[str | Cell, ...]:
    """Type, name, time, FLOP, bytes, bound."""
    flops, moved = op.matmul_flops + op.elementwise_flops, op.read_bytes + op.write_bytes
    return (
        op.op_type,
        op.name,
        seconds_cell(op.time_s),
        Cell(format_count(flops), flops),
        Cell(format_bytes(moved), moved),
        op.bound,
    )


def result_cells(r: Analysis) -> tuple[str | Cell, ...]:
    """The columns ``RESULT_COLUMNS``."""
    place, step, memory = r.placement, r.step, r.training.memory
    return (
        place.arch,
        Cell(str(place.gpus), place.gpus),
        Cell(str(place.servers), place.servers),
        seconds_cell(step.step_s),
        Cell(format_rate(step.samples_per_s), step.samples_per_s),
        Cell(format_share(step.comm_share), step.comm_share),
        step.verdict,
        step.bound,
        Cell(format_share(step.scaling_efficiency), step.scaling_efficiency),
        Cell(format_bytes(memory.peak_bytes) + ("" if memory.fits else " (does not fit)"), memory.peak_bytes),
    )
