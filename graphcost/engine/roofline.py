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

from graphcost.hardware import Device
from graphcost.ir import OpCost, Phase
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

# torch autocast keeps these in fp32 (torch/amp autocast op lists: fp32 list).
_FP32_UNDER_AMP = frozenset({OpClass.SOFTMAX, OpClass.NORM, OpClass.REDUCE})


def op_time(op: PlannedOp, device: Device, precision: Precision) -> OpTime:
    """Time of all trips of ``op``. An operator without a rule takes no time here: coverage reports it."""
    if op.cost is None or op.op_class is None:
        return OpTime(0.0, Bound.UNKNOWN, 0.0)
    if op.op_class is OpClass.FREE or (op.cost.flops == 0 and op.cost.bytes == 0):
        return OpTime(0.0, Bound.FREE, 0.0)
    entry = efficiencies()[op.op_class]
    compute_s = _compute_s(op, device, precision, entry["compute"])
    traffic = op.cost.bytes * traffic_scale(op.op_class, precision)
    memory_s = traffic / (entry["memory"] * device.mem_bytes_per_s)
    bound = Bound.COMPUTE if compute_s > memory_s else Bound.MEMORY
    busy_s = max(compute_s, memory_s)
    total_s = busy_s + device.launch_s * op.repeat
    nominal = entry["compute"] if bound is Bound.COMPUTE else entry["memory"]
    return OpTime(total_s, bound, nominal * busy_s / total_s if total_s else 0.0)


def update_time(cost: OpCost, tensors: int, device: Device) -> float:
    """Time of the optimizer: memory bound, one fused kernel sequence per parameter tensor."""
    if cost.bytes == 0:
        return 0.0
    share: float = efficiencies()["update"]["memory"]
    return cost.bytes / (share * device.mem_bytes_per_s) + tensors * device.launch_s


def host_time(launches: int, phase: Phase, *, compiled: bool) -> float:
    """Host time of launching ``launches`` operators one after another."""
    host = efficiencies()["host"]
    if compiled:
        return float(launches * host["compiled_op_s"])
    key = {Phase.FORWARD: "forward_op_s", Phase.BACKWARD: "backward_op_s", Phase.UPDATE: "param_tensor_s"}[phase]
    return float(launches * host[key])


def _compute_s(op: PlannedOp, device: Device, precision: Precision, share: float) -> float:
    assert op.cost is not None
    matmul_s = op.cost.matmul_flops / (share * device.peak(precision.value)) if op.cost.matmul_flops else 0.0
    vector = device.vector_peak("float32") or device.peak("tf32" if precision is Precision.TF32 else precision.value)
    return matmul_s + op.cost.elementwise_flops / (share * vector)


def traffic_scale(op_class: OpClass, precision: Precision) -> float:
    """Bytes under ``precision`` relative to the fp32 the graph is counted in."""
    if precision is Precision.BF16:
        return 0.5
    if precision.is_amp:
        return 1.0 if op_class in _FP32_UNDER_AMP else 0.5
    return 1.0
