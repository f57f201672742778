"""What each operator's kernels cost under a recipe: passes, copies, fusion, number format."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from graphcost.graph import cost_key
from graphcost.ir import OpCost, OpNode, Phase
from graphcost.ops import OpClass, backward_cost, find_rule, forward_cost
from graphcost.recipe import Precision, Recipe
from graphcost.training.fusion import Fusion, Group
from graphcost.training.plan import PlannedOp
from graphcost.training.saved import TapeOp
from graphcost.training.views import Laid

ON_CHIP_ROW_BYTES = 64 * 1024
"""assumed: a longer row of a softmax or normalisation does not stay on chip and is read twice."""

_MATRIX = frozenset({OpClass.MATMUL, OpClass.CONV, OpClass.DEPTHWISE, OpClass.ATTENTION, OpClass.RECURRENT})
_PEAKS = frozenset({"float16", "bfloat16", "float32"})
_FREE = OpCost()


class Kernels:
    """Planned operators of one step, each rule asked once for operators that look the same to it."""

    def __init__(self, laid: Sequence[Laid], ids: Sequence[str], fusion: Fusion, recipe: Recipe) -> None:
        self._laid = laid
        self._ids = ids
        self._fusion = fusion
        self._recipe = recipe
        self._known: dict[Hashable, OpCost | None] = {}
        self._fetched: set[tuple[int, str, Phase]] = set()

    def forward(self, position: int) -> PlannedOp:
        """The operator's forward pass."""
        op = self._laid[position]
        cost = self._forward_cost(op)
        launches = _launches(op)
        if cost is not None and op.node.repeat != 1:
            cost = cost * op.node.repeat
        group = self._group(position)
        if group is not None and cost is not None:
            cost = self._fused_forward(cost, op, group)
            launches = int(self._fusion.leads(position))
        return self._planned(position, Phase.FORWARD, cost, launches)

    def backward(self, one: TapeOp) -> PlannedOp:
        """The operator's backward pass."""
        op = self._laid[one.position]
        cost = self._backward_cost(op, one.wrt)
        launches = int(cost is None or cost.bytes > 0)
        if cost is not None and op.node.repeat != 1:
            cost = cost * op.node.repeat
        group = self._group(one.position)
        if group is not None and cost is not None and op.op_class not in _MATRIX:
            cost = self._fused_backward(cost, op, one.wrt, group)
            launches = int(group.members[-1] == one.position or self._laid[group.members[0]].op_class in _MATRIX)
            launches = min(launches, int(cost.bytes > 0))
        return self._planned(one.position, Phase.BACKWARD, cost, launches)

    def gradient_sum(self, position: int, index: int) -> PlannedOp:
        """The sum of a further part of the gradient of an operator's input."""
        node = self._laid[position].node
        spec = node.require(index)
        size = spec.size_bytes
        stored = next((param.name for slot, param in node.params if slot == index), "")
        cost = OpCost(0, spec.numel, 2 * size, size)
        if self._group(position) is not None:  # rides in the kernel that reads the sum
            cost = OpCost(0, spec.numel, size, 0)
        return replace(
            self._planned(position, Phase.BACKWARD, cost, int(cost.write_bytes > 0)),
            name=f"gradient sum of {stored or node.input_names[index]}",
            op_type="Add",
            op_class=OpClass.POINTWISE,
            repeat=1,
        )

    def _group(self, position: int) -> Group | None:
        """The operator's group where it has company."""
        group = self._fusion.group_of[position]
        return group if group is not None and len(group.members) > 1 else None

    def _planned(self, position: int, phase: Phase, cost: OpCost | None, launches: int) -> PlannedOp:
        op = self._laid[position]
        known = find_rule(op.node) is not None
        free = op.is_view and (cost is None or cost.bytes == 0)
        return PlannedOp(
            id=self._ids[position],
            name=op.node.name,
            op_type=op.node.op_type,
            op_class=(OpClass.FREE if free else op.op_class) if known else None,
            phase=phase,
            cost=cost,
            repeat=op.node.repeat,
            dtype=_dtype(op, self._recipe.precision),
            launches=launches,
            matrix_share=_matrix_share(op.node) if op.op_class in _MATRIX else 1.0,
        )

    def _forward_cost(self, op: Laid) -> OpCost | None:
        """One trip of an eager kernel, with the copies it needs first."""
        if op.is_view:
            return _FREE if find_rule(op.node) is not None else None
        rule = find_rule(op.node)
        copied = op.copied_bytes
        if rule is not None and rule.is_free:
            return OpCost(0, 0, copied, copied)
        cost = self._asked(op.node, None)
        if cost is None:
            return None
        more = _extra_pass_bytes(op) if self._recipe.trains or op.node.op_type != "BatchNormalization" else 0
        return cost + OpCost(0, 0, copied + more, copied) if copied or more else cost

    def _backward_cost(self, op: Laid, wrt: frozenset[int]) -> OpCost | None:
        """One trip: a view of everything passes its gradient on; copies are undone by copies."""
        if op.is_view and find_rule(op.node) is not None:
            source, out = op.node.spec(0), op.node.outputs[0] if op.node.outputs else None
            if source is not None and out is not None and source.numel == out.numel:
                return _FREE
        cost = self._asked(op.node, wrt)
        copied = op.copied_bytes
        return cost if cost is None or not copied else cost + OpCost(0, 0, copied, copied)

    def _asked(self, node: OpNode, wrt: frozenset[int] | None) -> OpCost | None:
        seen = cost_key(node)
        key = (seen, wrt)
        if seen is not None and key in self._known:
            return self._known[key]
        cost = forward_cost(node) if wrt is None else backward_cost(node, wrt)
        if seen is not None:
            self._known[key] = cost
        return cost

    def _fused_forward(self, cost: OpCost, op: Laid, group: Group) -> OpCost:
        """Without what the group has on chip: results of members, and tensors that one of them read before."""
        read, write = cost.read_bytes, cost.write_bytes
        stored = {index for index, _ in op.node.params}
        for index, (name, spec) in enumerate(zip(op.reads, op.node.inputs, strict=False)):
            if spec is None or index in stored:
                continue
            if name in self._fusion.inside or not self._first_read(group, name, Phase.FORWARD):
                read -= spec.size_bytes
        for name, spec in zip(op.writes, op.node.outputs, strict=False):
            if spec is not None and name in self._fusion.inside:
                write -= spec.size_bytes
            self._first_read(group, name, Phase.FORWARD)  # on chip for the members that follow
        return OpCost(cost.matmul_flops, cost.elementwise_flops, max(0, read), max(0, write))

    def _fused_backward(self, cost: OpCost, op: Laid, wrt: frozenset[int], group: Group) -> OpCost:
        """A group's backward kernel reads what is outside once and writes the gradients that leave it."""
        node, inside = op.node, self._fusion.inside
        passes = 2 if _extra_pass_bytes(op) else 1
        stored = {index for index, _ in node.params}
        read = write = 0
        for name, spec in zip(op.writes, node.outputs, strict=False):
            if spec is not None and spec.is_float and name not in inside:
                read += spec.size_bytes
        for index, (name, spec) in enumerate(zip(op.reads, node.inputs, strict=False)):
            if spec is None or not spec.is_float:
                continue
            if name not in inside and self._first_read(group, name, Phase.BACKWARD):
                read += spec.size_bytes
            if index in wrt and (index in stored or name not in inside):
                write += spec.size_bytes
        return OpCost(cost.matmul_flops, cost.elementwise_flops, min(cost.read_bytes, passes * read), write)

    def _first_read(self, group: Group, name: str, phase: Phase) -> bool:
        key = (group.first, name, phase)
        if key in self._fetched:
            return False
        self._fetched.add(key)
        return True


def _launches(op: Laid) -> int:
    """Eager kernels of one trip."""
    rule = find_rule(op.node)
    runs = not op.is_view and rule is not None and not rule.is_free
    return int(runs) + len(op.copied)


def _extra_pass_bytes(op: Laid) -> int:
    """Bytes of a second pass over the data: batch statistics, or rows too long to stay on chip."""
    spec = op.node.spec(0)
    if spec is None or not spec.shape or op.op_class not in (OpClass.NORM, OpClass.SOFTMAX):
        return 0
    if op.node.op_type == "BatchNormalization":
        return spec.size_bytes
    rows = spec.numel // max(1, spec.shape[-1])
    return spec.size_bytes if rows and spec.size_bytes // rows > ON_CHIP_ROW_BYTES else 0


def _dtype(op: Laid, precision: Precision) -> str:
    """The format an operator computes in, by the name of its peak."""
    out = next((spec.dtype for spec in op.node.outputs if spec is not None), "float32")
    if precision is Precision.TF32 and op.op_class in _MATRIX:
        return "tf32"
    return out if out in _PEAKS else "float32"


def _matrix_share(node: OpNode) -> float:
    """1 where the innermost sizes fill 16-byte loads, half else (NVIDIA's alignment rule; recalled)."""
    spec = node.outputs[0] if node.outputs else None
    if spec is None or spec.dtype not in ("float16", "bfloat16"):
        return 1.0
    tensors = [s for s in (node.spec(0), node.spec(1), spec) if s is not None and len(s.shape) > 1]
    axis = 1 if node.op_type in ("Conv", "ConvTranspose") else -1
    return 1.0 if all(s.shape[axis] % 8 == 0 for s in tensors) else 0.5
