"""Time of one operator on one device: the slower of computing and moving, plus a launch.

``t = max(F / (e P q), bytes / (m BW)) + conversion + t0`` with efficiencies by kernel
class and ``q`` by tiles and waves.
Source: Williams, Waterman and Patterson, Roofline (2009), with the class efficiencies
of the files in ``efficiency``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import sqrt

from graphcost.engine.constants import Constants, Row, constants_of
from graphcost.engine.curves import COMPUTES, curve_work, kernel_of, reading
from graphcost.engine.quantisation import K_STEP, is_aligned, tile_share
from graphcost.hardware import Device
from graphcost.ir import MAC_FLOPS, Phase
from graphcost.ops import OpClass
from graphcost.recipe import Precision, Recipe
from graphcost.training import PlannedOp
from graphcost.training.work import Part, Work

SLOW_WIDTH = 256
"""Channels of all groups at which the slow path's row holds."""

_KINDS = {"matmul": "linear", "depthwise": "depthwise_3", "norm": "layer_norm"}
"""Rows for operators whose kernel is not described, where the class has none of its own name."""


class Bound(StrEnum):
    """What limits an operator."""

    COMPUTE = "compute"
    MEMORY = "memory"
    FREE = "free"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class OpTime:
    """An operator's predicted time; ``efficiency`` is the share of the bounding resource's nominal rate.

    ``source``: the file and row that the efficiency is from.
    """

    time_s: float
    bound: Bound
    efficiency: float
    source: str = ""


@dataclass(frozen=True, slots=True)
class Terms:
    """Seconds that an operator would take at full efficiency, apart from what ``row`` makes of them.

    ``matrix_s`` has the losses of size in it (``q``); ``convert_s`` is the traffic of
    bringing images into a convolution's own order and back.
    """

    row: Row
    matrix_s: float
    vector_s: float
    memory_s: float
    convert_s: float
    launches: int
    on_vector_units: bool = False
    steps: int = 0


class DeviceModel:
    """One device under one recipe: terms and times of operators, the same question asked once."""

    def __init__(self, device: Device, recipe: Recipe) -> None:
        self.device = device
        self.constants = constants_of(device, recipe.stack, trains=recipe.trains)
        self._precision = recipe.precision
        self._vector = device.vector_peak("float32") or device.peak(_vector_dtype(device, recipe.precision))
        self._units = device.compute_units or 100  # assumed: a large GPU's, where a device states none
        self._known: dict[tuple[object, ...], OpTime] = {}

    def time(self, op: PlannedOp) -> OpTime:
        """Time of all trips of ``op``. An operator without a rule takes no time here: coverage reports it."""
        if op.cost is None or op.op_class is None:
            return OpTime(0.0, Bound.UNKNOWN, 0.0)
        if op.op_class is OpClass.FREE or (op.cost.flops == 0 and op.cost.bytes == 0):
            return OpTime(0.0, Bound.FREE, 0.0)
        if self.device.curves:
            return _measured_time(op, self.device)
        key = (op.work, op.op_class, op.cost, op.dtype, op.launches, op.repeat, op.phase)
        if key not in self._known:
            self._known[key] = self._time(self.terms(op))
        return self._known[key]

    def _time(self, terms: Terms) -> OpTime:
        row, rules = terms.row, self.constants.rules
        share = row.fp32 if terms.on_vector_units else row.compute
        compute_s = terms.matrix_s / share + terms.vector_s / rules["vector"]
        memory_s = terms.memory_s / row.memory
        bound = Bound.COMPUTE if compute_s > memory_s else Bound.MEMORY
        busy_s = max(compute_s, memory_s)
        total_s = (
            busy_s + rules["convert"] * terms.convert_s + terms.launches * rules["launch"] * self.device.launch_s
            + terms.steps * rules["recurrent_step_s"]
        )  # fmt: skip
        ideal_s = terms.matrix_s + terms.vector_s if bound is Bound.COMPUTE else terms.memory_s
        fallback = ", no file for this architecture" if self.constants.is_fallback else ""
        source = f"efficiency/{self.constants.generation}.toml [{row.name}]{fallback}"
        return OpTime(total_s, bound, ideal_s / total_s if total_s else 0.0, source)

    def terms(self, op: PlannedOp) -> Terms:
        """What the efficiencies are applied to."""
        assert op.cost is not None
        work = op.work or Work(_KINDS.get(str(op.op_class), str(op.op_class)))
        row, share = self._row_and_share(op, work)
        matrix_s, done = 0.0, self._share_done(work)
        if op.cost.matmul_flops:
            # What the autocast lists leave in fp32 runs at the precision's own peak where a device states no other.
            known = op.dtype == "tf32" or op.dtype in self.device.peak_flops_per_s
            rate = share * self.device.peak(op.dtype if known else self._precision.value)
            matrix_s = done * op.cost.matmul_flops / rate
        return Terms(
            row=row,
            matrix_s=matrix_s,
            vector_s=done * op.cost.elementwise_flops / self._vector,
            memory_s=(op.cost.bytes * self._row_stretch(work) + _again_bytes(op, work)) / self.device.mem_bytes_per_s,
            convert_s=self._converted_bytes(op, work) * op.repeat / self.device.mem_bytes_per_s,
            launches=op.launches * op.repeat,
            on_vector_units=op.dtype in self.device.vector_dtypes,
            steps=work.steps * op.repeat,
        )

    def _share_done(self, work: Work) -> float:
        """What is done of the counted FLOPs: a causal kernel skips tiles, at a somewhat lower rate for the rest."""
        return 1.0 if work.causal_share is None else work.causal_share / self.constants.rules["causal_rate"]

    def _row_stretch(self, work: Work) -> float:
        """A layer norm gives every row a block of threads: a row too short to fill it takes as long."""
        return max(1.0, self.constants.rules["norm_row_bytes"] / work.row_bytes) if work.row_bytes else 1.0

    def _converted_bytes(self, op: PlannedOp, work: Work) -> int:
        """Matrix units take channels last: in the other order a convolution turns its data and its result."""
        matrix_units = op.dtype in ("float16", "bfloat16", "tf32") and op.dtype not in self.device.vector_dtypes
        turned = work.kind.startswith("conv") and not work.channels_last and matrix_units
        return 2 * work.image_bytes if turned else 0

    def _row_and_share(self, op: PlannedOp, work: Work) -> tuple[Row, float]:
        """The row, and the share of the rate that the sizes of ``work`` allow."""
        if op.phase is Phase.UPDATE:
            return self.constants.row("update"), 1.0
        rules = self.constants.rules
        half = op.dtype in ("float16", "bfloat16")
        k_step = K_STEP if half or op.dtype == "tf32" else 1
        if work.kind in ("linear", "bmm"):
            k_step = int(rules["matrix_k_stage" if k_step > 1 else "vector_k_stage"])
        if work.kind == "conv_grouped":
            return self._grouped(work)
        row = self.constants.row(work.kind, channels_last=work.channels_last)
        if op.op_class is OpClass.DEPTHWISE:
            return row, 1.0  # no matrix product: bound by memory, whatever the kernel
        share = tile_share(work.m, work.n, work.k, work.batch, self._units, k_step)
        if work.steps:
            share = self._recurrent_share(op, work, share, k_step)
        if work.kind in ("linear", "bmm") and half and work.k and not is_aligned(work.n, work.k):
            share *= rules["misaligned"]
        if half and work.filters and work.kind != "conv_stem" and not is_aligned(work.channels, work.filters):
            share *= rules["misaligned_conv"]
        if by_winograd(op):
            share *= rules["winograd"]
        return row, share

    def _recurrent_share(self, op: PlannedOp, work: Work, of_step: float, k_step: int) -> float:
        """Products of a step's few rows one after another, and those over all steps at once (input, weights)."""
        assert op.cost is not None
        flops = op.cost.matmul_flops / op.repeat
        stepped = min(flops, MAC_FLOPS * work.m * work.n * work.k * work.batch * work.steps)
        at_once = tile_share(work.m * work.steps, work.n, work.k, work.batch, self._units, k_step)
        return flops / (stepped / of_step + (flops - stepped) / at_once) if flops else 1.0

    def _grouped(self, work: Work) -> tuple[Row, float]:
        """Grouped convolutions: few channels a group fill little of a tile, and cuDNN of some years has a cliff.

        The rate grows as ``c / (c + half)``. Channels last on such a stack (``grouped_cliff``):
        a fast path for many groups of some sizes, with the root of ``c``, and a slow one whose
        rate grows with the whole width, as though it took the groups one after another.
        """
        rules, channels = self.constants.rules, max(1, work.channels)
        if not (work.channels_last and rules["grouped_cliff"]):
            row = self.constants.row("conv_grouped", channels_last=work.channels_last)
            return row, channels / (channels + rules["grouped_half_channels"])
        fast = work.groups >= 16 and work.dilation == 1 and work.groups % 8 == 0 and channels in (4, 8, 16, 32, 64)
        row = self.constants.row("conv_grouped_fast" if fast else "conv_grouped_slow", channels_last=True)
        if fast:
            return row, min(1.0, sqrt(channels / 64))
        width = (work.groups * channels / SLOW_WIDTH) ** rules["grouped_slow_exponent"]
        return row, min(4.0, width) * (rules["grouped_slow_strided"] if work.stride > 1 else 1.0)


def by_winograd(op: PlannedOp) -> bool:
    """Whether the kernel multiplies less often than its FLOPs say: dense 3x3 in fp32, not its weights'."""
    work = op.work
    return (
        work is not None and op.dtype == "float32" and work.kind == "conv" and work.window == 3
        and work.part is not Part.WGRAD
    )  # fmt: skip


def _again_bytes(op: PlannedOp, work: Work) -> int:
    """Weights of the state, fetched at every step but the first, which ``op.cost`` has."""
    if not work.steps:
        return 0
    value_bytes = 2 if op.dtype in ("float16", "bfloat16") else 4
    return (work.steps - 1) * work.batch * work.n * work.k * value_bytes * op.repeat


def _measured_time(op: PlannedOp, device: Device) -> OpTime:
    """From the machine's own curves, where the device file has them; ``source`` names what stands in for another."""
    assert op.cost is not None
    if op.launches == 0 and op.phase is not Phase.UPDATE:
        return OpTime(0.0, Bound.FREE, 0.0)
    kernel = kernel_of(op)
    found = reading(device.curves, kernel, op.cost)
    seconds = op.repeat * found.curve.at(found.work / op.repeat)
    bound = Bound.COMPUTE if kernel.op_class in COMPUTES else Bound.MEMORY
    peak = max(device.peak_flops_per_s.values()) if bound is Bound.COMPUTE else device.mem_bytes_per_s
    work = curve_work(kernel.op_class, op.cost)
    source = "curves measured on the machine"
    if found.instead:
        source += f", no curve for {kernel.op_class}: {found.instead}"
    return OpTime(seconds, bound, work / seconds / peak, source)


def _vector_dtype(device: Device, precision: Precision) -> str:
    return "tf32" if precision is Precision.TF32 else precision.value


def host_time(constants: Constants, launches: int, phase: Phase, *, compiled: bool) -> float:
    """Host time of launching ``launches`` operators (of the update: parameter tensors) one after another."""
    if compiled:
        return float(launches * constants.host["compiled_op_s"])
    key = {Phase.FORWARD: "forward_op_s", Phase.BACKWARD: "backward_op_s", Phase.UPDATE: "param_tensor_s"}[phase]
    return float(launches * constants.host[key])
