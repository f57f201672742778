"""Time of one operator on one device: the slower of computing and moving, plus a launch.

``t = max(F / (e_c P), bytes / (e_m BW)) + t0`` with efficiencies by operator class.
Source: Williams, Waterman and Patterson, Roofline (2009), with the class efficiencies
of ``efficiency.toml``.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any

from graphcost.engine.curves import COMPUTES, curve_for, work_of
from graphcost.hardware import Device
from graphcost.ir import Phase
from graphcost.ops import OpClass
from graphcost.recipe import Precision
from graphcost.training import PlannedOp


class Bound(StrEnum):
    """What limits an operator."""

    COMPUTE = "compute"
    MEMORY = "memory"
    FREE = "free"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class OpTime:
    """An operator's predicted time; ``efficiency`` is the share of the bounding resource's nominal rate."""

    time_s: float
    bound: Bound
    efficiency: float


@cache
def efficiencies() -> dict[str, Any]:
    """The table of ``efficiency.toml``."""
    return tomllib.loads(files("graphcost.engine").joinpath("efficiency.toml").read_text("utf-8"))


EFFICIENCY_SOURCE = "class table (graphcost/engine/efficiency.toml)"


def op_time(op: PlannedOp, device: Device, precision: Precision) -> OpTime:
    """Time of all trips of ``op``. An operator without a rule takes no time here: coverage reports it."""
    if op.cost is None or op.op_class is None:
        return OpTime(0.0, Bound.UNKNOWN, 0.0)
    if op.op_class is OpClass.FREE or (op.cost.flops == 0 and op.cost.bytes == 0):
        return OpTime(0.0, Bound.FREE, 0.0)
    if device.curves:
        return _measured_time(op, device)
    entry = efficiencies()["update" if op.phase is Phase.UPDATE else op.op_class]
    compute_s = _compute_s(op, device, precision, entry["compute"])
    memory_s = op.cost.bytes / (entry["memory"] * device.mem_bytes_per_s)
    bound = Bound.COMPUTE if compute_s > memory_s else Bound.MEMORY
    busy_s = max(compute_s, memory_s)
    total_s = busy_s + device.launch_s * op.launches * op.repeat
    nominal = entry["compute"] if bound is Bound.COMPUTE else entry["memory"]
    return OpTime(total_s, bound, nominal * busy_s / total_s if total_s else 0.0)


def _measured_time(op: PlannedOp, device: Device) -> OpTime:
    """From the machine's own curves, where the device file has them; an unmeasured class takes its nearest."""
    assert op.cost is not None and op.op_class is not None
    name = "update" if op.phase is Phase.UPDATE else str(op.op_class)
    curve = curve_for(device.curves, name, op.phase, op.dtype)
    bound = Bound.COMPUTE if name in COMPUTES else Bound.MEMORY
    if curve is None or (op.launches == 0 and op.phase is not Phase.UPDATE):
        return OpTime(0.0, Bound.UNKNOWN if curve is None else Bound.FREE, 0.0)
    work = work_of(name, op.cost)
    seconds = op.repeat * curve.at(work / op.repeat)
    peak = max(device.peak_flops_per_s.values()) if bound is Bound.COMPUTE else device.mem_bytes_per_s
    return OpTime(seconds, bound, work / seconds / peak)


def host_time(launches: int, phase: Phase, *, compiled: bool) -> float:
    """Host time of launching ``launches`` operators (of the update: parameter tensors) one after another."""
    host = efficiencies()["host"]
    if compiled:
        return float(launches * host["compiled_op_s"])
    key = {Phase.FORWARD: "forward_op_s", Phase.BACKWARD: "backward_op_s", Phase.UPDATE: "param_tensor_s"}[phase]
    return float(launches * host[key])


def _compute_s(op: PlannedOp, device: Device, precision: Precision, share: float) -> float:
    assert op.cost is not None
    vector = device.vector_peak("float32") or device.peak("tf32" if precision is Precision.TF32 else precision.value)
    seconds = op.cost.elementwise_flops / (share * vector)
    if op.cost.matmul_flops:
        # What the autocast lists leave in fp32 runs at the precision's own peak where a device states no other.
        dtype = op.dtype if op.dtype == "tf32" or op.dtype in device.peak_flops_per_s else precision.value
        seconds += op.cost.matmul_flops / (share * op.matrix_share * device.peak(dtype))
    return seconds
