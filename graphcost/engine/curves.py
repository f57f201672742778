"""Operator times from curves measured on a machine: seconds over work, by class, kernel and pass.

A curve's work is FLOPs where a kernel computes and bytes where it moves. The most exact curve is of one kernel
(``conv/conv_1x1.wgrad``, ``pointwise/Gelu.backward``), the next of a whole class (``conv.backward``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from graphcost.curves import RateCurve
from graphcost.ir import OpCost, Phase
from graphcost.ops import OpClass
from graphcost.training.plan import PlannedOp
from graphcost.training.work import Part

COMPUTES = frozenset({OpClass.MATMUL, OpClass.CONV, OpClass.ATTENTION, OpClass.RECURRENT})
"""Classes whose time follows FLOPs. Depthwise convolutions have few of them a byte: they move."""

STANDS_FOR: Mapping[str, str] = MappingProxyType(
    {
        "attention": "matmul", "recurrent": "matmul", "depthwise": "pool", "conv": "matmul", "norm": "softmax",
        "softmax": "norm", "reduce": "pointwise", "pool": "reduce", "gather": "copy", "copy": "pointwise",
        "update": "pointwise",
    }
)  # fmt: skip
"""Where a class was not measured: the one that takes its place (assumed, nearest in kind)."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """What a curve is of. ``pass_name``: of products and convolutions the part, of others the phase."""

    op_class: str
    kind: str
    pass_name: str
    dtype: str = "float32"

    @property
    def phase(self) -> Phase:
        """The phase that such a kernel runs in."""
        if self.pass_name == Phase.UPDATE:
            return Phase.UPDATE
        return Phase.FORWARD if self.pass_name == Phase.FORWARD else Phase.BACKWARD

    @property
    def names(self) -> tuple[str, str]:
        """Names of its own curve and of its class's, as device files hold them: float32 is not said."""
        suffix = "" if self.dtype == "float32" else f".{self.dtype}"
        return f"{self.op_class}/{self.kind}.{self.pass_name}{suffix}", f"{self.op_class}.{self.phase}{suffix}"


@dataclass(frozen=True, slots=True)
class Reading:
    """A curve chosen for a kernel; ``instead``: what had to take its place, empty where the class was measured."""

    curve: RateCurve
    work: float
    instead: str = ""


def kernel_of(op: PlannedOp) -> Kernel:
    """The kernel of a planned operator that has a class."""
    assert op.op_class is not None
    if op.phase is Phase.UPDATE:
        return Kernel("update", op.op_type, str(op.phase), op.dtype)
    part = op.work.part if op.work is not None else None
    if part is Part.BIAS:
        kind = "bias" if op.op_class is OpClass.MATMUL else f"{op.op_class}_bias"
        return Kernel("reduce", kind, str(Phase.BACKWARD), op.dtype)
    if op.op_class in COMPUTES or op.op_class is OpClass.DEPTHWISE:
        kind = op.work.kind if op.work is not None else str(op.op_class)
        return Kernel(str(op.op_class), kind, str(part or op.phase), op.dtype)
    sums = op.phase is Phase.BACKWARD and part is Part.FORWARD  # gradient sums run as additions do
    return Kernel(str(op.op_class), op.op_type, str(Phase.FORWARD if sums else op.phase), op.dtype)


def reading(curves: Mapping[str, RateCurve], kernel: Kernel, cost: OpCost) -> Reading:
    """The nearest curve that was measured, and the work to read it at; ``curves`` is not empty.

    In order: the kernel's own, its class's, float32's, the other phase's, those of a related class. A class
    that none is related to takes the slowest curve over bytes at its own bytes, else the slowest of all: unknown
    is never nothing.
    """
    for name, op_class in _related(kernel):
        if name in curves:
            own = op_class == kernel.op_class
            return Reading(curves[name], curve_work(op_class, cost), "" if own else name)
    moving = [name for name in curves if name.partition(".")[0].partition("/")[0] not in COMPUTES]
    size = float(cost.bytes)
    if moving:
        name = max(moving, key=lambda one: curves[one].at(size))
        return Reading(curves[name], size, name)
    name = max(curves, key=lambda one: curves[one].at(float(cost.flops)))
    return Reading(curves[name], float(cost.flops), name)


def stand_ins(curves: Mapping[str, RateCurve], ops: Iterable[PlannedOp]) -> Counter[tuple[str, str]]:
    """How many of ``ops`` have no curve of their class: (class, the curve that took its place) -> operators."""
    found: Counter[tuple[str, str]] = Counter()
    for op in ops if curves else ():
        if op.op_class in (None, OpClass.FREE) or op.cost is None or not (op.cost.bytes or op.cost.flops):
            continue
        if op.launches == 0 and op.phase is not Phase.UPDATE:
            continue
        kernel = kernel_of(op)
        instead = reading(curves, kernel, op.cost).instead
        if instead:
            found[kernel.op_class, instead] += 1
    return found


def _related(kernel: Kernel) -> Iterator[tuple[str, str]]:
    """Names of curves, nearest first, with the class that each is of."""
    exact = [kernel.names, Kernel(kernel.op_class, kernel.kind, kernel.pass_name).names]
    for own, _ in exact:
        yield own, kernel.op_class
    seen: set[str] = set()
    op_class = kernel.op_class
    while op_class and op_class not in seen:
        for phase in (kernel.phase, Phase.FORWARD, Phase.UPDATE):
            for dtype in (kernel.dtype, "float32"):
                yield Kernel(op_class, "", str(phase), dtype).names[1], op_class
        seen.add(op_class)
        op_class = STANDS_FOR.get(op_class, "")


def curve_work(op_class: str, cost: OpCost) -> float:
    """What a class's curve runs over."""
    return float(cost.flops if op_class in COMPUTES else cost.bytes)
