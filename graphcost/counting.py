"""The forward pass of a model in a few numbers: what a paper's table states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphcost.frontends.options import LoadOptions
from graphcost.graph import UnknownOp, totals_of
from graphcost.ir import BatchSource, Model
from graphcost.sources import load_model


@dataclass(frozen=True, slots=True)
class Count:
    """Exact forward totals for the batch loaded."""

    name: str
    source: str
    format: str
    inputs: Mapping[str, Mapping[str, Any]]
    bindings: Mapping[str, int]
    batch: int | None
    batch_source: str
    notes: tuple[str, ...]
    ops: int
    macs: int
    matmul_flops: int
    elementwise_flops: int
    read_bytes: int
    write_bytes: int
    params: int
    param_bytes: int
    buffers: int
    buffer_bytes: int
    counted: int
    free: int
    folded: int
    unknown: tuple[UnknownOp, ...]


def count_model(source: Any, options: LoadOptions) -> Count:
    """Load and count; raises what ``load`` raises."""
    model: Model = load_model(source, options)
    found = totals_of(model)
    notes = list(model.notes)
    if model.batch_source is BatchSource.ASSUMED:
        notes.append(f"batch {model.batch} is assumed; --batch sets it")
    return Count(
        name=model.name, source=model.source, format=model.format,
        inputs={name: {"shape": list(spec.shape), "dtype": spec.dtype} for name, spec in model.inputs.items()},
        bindings=dict(model.bindings), batch=model.batch, batch_source=str(model.batch_source), notes=tuple(notes),
        ops=found.ops, macs=found.macs, matmul_flops=found.cost.matmul_flops,
        elementwise_flops=found.cost.elementwise_flops, read_bytes=found.cost.read_bytes,
        write_bytes=found.cost.write_bytes, params=found.params, param_bytes=found.param_bytes,
        buffers=found.buffers, buffer_bytes=found.buffer_bytes, counted=found.coverage.counted,
        free=found.coverage.free, folded=model.folded, unknown=found.coverage.unknown,
    )  # fmt: skip
