"""The roofs of a device's roofline plot, at the formats that a step computes in."""

from __future__ import annotations

from dataclasses import dataclass

from graphcost.engine.constants import constants_of
from graphcost.engine.roofline import by_winograd
from graphcost.hardware import Device
from graphcost.training import StepPlan


@dataclass(frozen=True, slots=True)
class Roof:
    """A rate that no operator exceeds: ``flops_per_s`` of one kind of unit in one format."""

    name: str
    flops_per_s: float


def roofs_of(device: Device, plan: StepPlan) -> tuple[Roof, ...]:
    """Peaks of the formats in which the plan's matrix products run, and of the vector units; highest first.

    Winograd's convolutions do with fewer products than are counted: a roof of their own, where the plan has them.
    """
    dtypes = {op.dtype for op in (*plan.forward, *plan.backward) if op.cost is not None and op.cost.matmul_flops}
    peaks: dict[str, float] = {}
    for dtype in dtypes:
        known = dtype == "tf32" or dtype in device.peak_flops_per_s
        units = "vector units" if dtype in device.vector_dtypes else "matrix units"
        name = dtype if known else str(plan.precision)
        peaks[f"{name}, {units}"] = device.peak(name)
    winograd = constants_of(device, plan.recipe.stack).rules["winograd"]
    if winograd > 1 and any(by_winograd(op) for op in (*plan.forward, *plan.backward)):
        peaks["float32, Winograd"] = winograd * device.peak("float32")
    vector = device.vector_peak("float32")
    if vector is not None:
        peaks.setdefault("float32, vector units", vector)
    return tuple(sorted((Roof(name, peak) for name, peak in peaks.items()), key=lambda roof: -roof.flops_per_s))
