"""What each operator's kernels cost under a recipe: passes, copies, fusion, number format."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from graphcost.graph import cost_key
from graphcost.ir import OpCost, OpNode, Phase
from graphcost.ops import OpClass, backward_cost, find_rule, forward_cost
from graphcost.recipe import Execution, Precision, Recipe
from graphcost.training.fusion import Fusion, Group
from graphcost.training.plan import PlannedOp
from graphcost.training.saved import TapeOp
from graphcost.training.views import Laid
from graphcost.training.work import SPLIT_BACKWARD, Part, Work, work_of

ON_CHIP_ROW_BYTES = 64 * 1024
"""assumed: a longer row of a softmax or normalisation does not stay on chip and is read twice."""

_MATRIX = frozenset({OpClass.MATMUL, OpClass.CONV, OpClass.DEPTHWISE, OpClass.ATTENTION, OpClass.RECURRENT})
_PEAKS = frozenset({"float16", "bfloat16", "float32"})
_PRODUCTS = frozenset({"Mul", "Div"})
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

    def forward(self, position: int) -> list[PlannedOp]:
        """The operator's forward pass, after the copies it needs."""
        op = self._laid[position]
        cost = self._forward_cost(op)
        work = work_of(op, Part.FORWARD, cost)
        group = self._group(position)
        alone = _copies_alone(op, group)
        if cost is not None:
            cost = (cost if alone else cost + _copied(op)) * op.node.repeat
        launches = int(_runs(op)) + (0 if alone else len(op.copied))
        if group is not None and cost is not None:
            cost = self._fused_forward(cost, op, group)
            launches = int(self._fusion.leads(position))
        copies = self._copies(position, Phase.FORWARD) if alone and cost is not None else []
        return [*copies, self._planned(position, Phase.FORWARD, cost, launches, work)]

    def backward(self, one: TapeOp) -> list[PlannedOp]:
        """The operator's backward pass: one kernel an operand of a contraction; copies are undone by copies."""
        op = self._laid[one.position]
        group = self._group(one.position)
        alone = _copies_alone(op, group)
        made = []
        for part, wrt in _gradients(op, one.wrt):
            cost = self._backward_cost(op, wrt)
            work = work_of(op, part, cost)
            if cost is not None:
                cost = (cost if alone else cost + _copied(op)) * op.node.repeat
            launches = int(cost is None or cost.bytes > 0)
            if group is not None and cost is not None and op.op_class not in _MATRIX:
                cost = self._fused_backward(cost, op, wrt, group)
                ends = group.members[-1] == one.position or self._laid[group.members[0]].op_class in _MATRIX
                launches = int(ends and cost.bytes > 0)
            made.append(self._planned(one.position, Phase.BACKWARD, cost, launches, work))
        alone = alone and op.node.op_type != "MatMul"  # its gradients are seen as the operands lay before
        copies = self._copies(one.position, Phase.BACKWARD) if alone and made[0].cost is not None else []
        return [*made, *copies]

    def _copies(self, position: int, phase: Phase) -> list[PlannedOp]:
        """Inputs that are brought into another order first, or whose gradients are brought back."""
        op = self._laid[position]
        made = []
        for index in op.copied:
            size = op.node.require(index).size_bytes * op.node.repeat
            planned = self._planned(position, phase, OpCost(0, 0, size, size), 1, Work("copy"))
            source = op.node.input_names[index] if index < len(op.node.input_names) else op.node.name
            made.append(replace(planned, name=f"copy of {source}", op_type="Copy", op_class=OpClass.COPY))
        return made

    def gradient_sum(self, position: int, index: int, rows_bytes: int | None = None) -> PlannedOp:
        """The sum of a further part of the gradient of an operator's input.

        ``rows_bytes``: of a table whose gradient is rows, all rows so far, this operator's among them;
        torch adds such gradients by putting them behind one another.
        """
        node = self._laid[position].node
        spec = node.require(index)
        size = spec.size_bytes
        stored = next((param.name for slot, param in node.params if slot == index), "")
        cost = OpCost(0, spec.numel, 2 * size, size)
        if rows_bytes is not None:
            cost = OpCost(0, 0, rows_bytes, rows_bytes)
        elif self._group(position) is not None:  # rides in the kernel that reads the sum
            cost = OpCost(0, spec.numel, size, 0)
        return replace(
            self._planned(position, Phase.BACKWARD, cost, int(cost.write_bytes > 0), Work("pointwise")),
            name=f"gradient sum of {stored or node.input_names[index]}",
            op_type="Add",
            op_class=OpClass.POINTWISE,
            repeat=1,
        )

    def _group(self, position: int) -> Group | None:
        """The operator's group where it has company."""
        group = self._fusion.group_of[position]
        return group if group is not None and len(group.members) > 1 else None

    def _planned(self, position: int, phase: Phase, cost: OpCost | None, launches: int, work: Work) -> PlannedOp:
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
            work=work,
        )

    def _forward_cost(self, op: Laid) -> OpCost | None:
        """One trip of an eager kernel, without the copies it needs first."""
        if op.is_view:
            return _FREE if find_rule(op.node) is not None else None
        rule = find_rule(op.node)
        if rule is not None and rule.is_free:
            return _FREE
        cost = self._asked(op.node, None)
        if cost is None:
            return None
        more = _extra_pass_bytes(op) if self._recipe.trains or op.node.op_type != "BatchNormalization" else 0
        return cost + OpCost(0, 0, more, 0) if more else cost

    def _backward_cost(self, op: Laid, wrt: frozenset[int]) -> OpCost | None:
        """One trip: a view of everything passes its gradient on."""
        if op.is_view and find_rule(op.node) is not None:
            source, out = op.node.spec(0), op.node.outputs[0] if op.node.outputs else None
            if source is not None and out is not None and source.numel == out.numel:
                return _FREE
        if op.node.op_type == "Concat" and len(op.node.inputs) > 1:
            return _FREE  # the gradients are views of the sum's
        cost = self._asked(op.node, wrt)
        is_product = op.node.op_type in _PRODUCTS or op.node.attrs.get("product")
        if cost is not None and is_product and self._recipe.execution is not Execution.COMPILED:
            cost += _product_kept(op.node, wrt)
        return cost

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


def _runs(op: Laid) -> bool:
    """Whether the operator has a kernel of its own."""
    rule = find_rule(op.node)
    return not op.is_view and rule is not None and not rule.is_free


def _copies_alone(op: Laid, group: Group | None) -> bool:
    """Whether copies are kernels of their own: not a reshape's, and not where a compiler makes them in a loop."""
    return _runs(op) and (group is None or op.op_class in _MATRIX)


def _product_kept(node: OpNode, wrt: frozenset[int]) -> OpCost:
    """Eager gradients of a factor that was broadcast: the whole product is written, then summed down."""
    out = node.outputs[0] if node.outputs else None
    if out is None:
        return _FREE
    sums = sum(0 < node.require(index).numel < out.numel for index in wrt)
    return OpCost(0, 0, sums * out.size_bytes, sums * out.size_bytes)


def _copied(op: Laid) -> OpCost:
    return OpCost(0, 0, op.copied_bytes, op.copied_bytes)


def _gradients(op: Laid, wrt: frozenset[int]) -> list[tuple[Part, frozenset[int]]]:
    """Kernels of an operator's backward pass and the inputs that each gives the gradient of."""
    if op.node.op_type not in SPLIT_BACKWARD or op.node.domain:
        return [(Part.DGRAD, wrt)]
    parts = [(Part.DGRAD, wrt & {0}), (Part.WGRAD, wrt & {1}), (Part.BIAS, wrt - {0, 1})]
    return [(part, inputs) for part, inputs in parts if inputs]


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
