"""How an operator works on divided values: which of its inputs are shares, and what its result is.

A rule answers with ``Local``, or None: this operator needs whole inputs. Column and row
splits of products are Megatron-LM's (Shoeybi et al. 2019, arXiv 1909.08053, section 3); the
vocabulary's rows are divided as there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from graphcost.errors import PlacementError
from graphcost.ir import OpNode, TensorSpec
from graphcost.ops import OpClass, op_class_of
from graphcost.parallel.splits import HeadsError, Split, aligned, reshaped

Splits = Sequence[Split | None]

VOCABULARY_ROWS = 16_384
"""assumed: a table of so many rows is a vocabulary and is divided; smaller ones (positions, types) are held whole."""


@dataclass(frozen=True, slots=True)
class Local:
    """What one GPU of the group runs in place of an operator.

    ``inputs``, ``outputs``: how each is divided. ``params``: axis along which a stored input is
    divided, by slot. ``partial``: the result is a part of a sum. ``begins``: whole inputs that
    divided work begins at, whose gradients are parts of a sum. ``columns``: a product that
    divides its result.
    """

    inputs: tuple[Split | None, ...]
    outputs: tuple[Split | None, ...]
    params: Mapping[int, int] = field(default_factory=dict)
    attrs: Mapping[str, Any] = field(default_factory=dict)
    partial: bool = False
    begins: tuple[int, ...] = ()
    columns: bool = False


def local_of(node: OpNode, splits: Splits, parts: int, *, barred: bool = False) -> Local | None:
    """The divided form of ``node``, whose inputs are divided as ``splits`` says; None: it needs them whole.

    ``barred``: a product that must not divide its result, because nothing after it can use that.
    Raises ``PlacementError`` where ``parts`` does not divide an attention's heads.
    """
    if not node.outputs or node.outputs[0] is None:
        return None
    if node.op_type in _BY_TYPE:
        return _BY_TYPE[node.op_type](node, splits, parts, barred)
    if not any(splits):
        return None
    by_class = {
        OpClass.POINTWISE: _pointwise, OpClass.NORM: _along_rows, OpClass.SOFTMAX: _along_rows,
        OpClass.REDUCE: _reduced,
    }  # fmt: skip
    rule = by_class.get(op_class_of(node) or OpClass.FREE)
    return rule(node, splits, parts, barred) if rule is not None else None


def require_heads(node: OpNode, parts: int) -> None:
    """Raise ``PlacementError`` for an attention whose heads ``parts`` does not divide: one kernel, or a product."""
    counts = [int(node.attrs[name]) for name in ("q_num_heads", "kv_num_heads") if name in node.attrs]
    left, right = node.spec(0), node.spec(1)
    if left is not None and right is not None and len(left.shape) == len(right.shape) == 4 and not node.params:
        if node.op_type == "MatMul":
            counts.append(node.out.shape[1])
        elif node.op_type == "Attention":
            counts += [left.shape[1], right.shape[1]]
    for heads in counts:
        if heads % parts:
            raise PlacementError(f"tp={parts} does not divide the {heads} heads of {node.module or node.name}")


def _whole(node: OpNode) -> tuple[Split | None, ...]:
    return (None,) * len(node.inputs)


def _is_weight(node: OpNode, slot: int, rank: int = 2) -> bool:
    spec = node.spec(slot)
    return len(node.params_at(slot)) == 1 and spec is not None and len(spec.shape) == rank


def _product(node: OpNode, splits: Splits, parts: int, barred: bool) -> Local | None:
    """MatMul, or Gemm with a bias: by columns of the weight, or by rows where the data is divided already."""
    if not _is_weight(node, 1):
        return _batched(node, splits) if node.op_type == "MatMul" else None
    data, out = node.require(0), node.out
    turned = node.op_type == "Gemm" and bool(node.attrs.get("transB", 0))
    if node.op_type == "Gemm" and node.attrs.get("transA", 0):
        return None
    rows, columns = (1, 0) if turned else (0, 1)
    split, last = splits[0], len(data.shape) - 1
    inputs = list(_whole(node))
    if split is not None and not split.sequence:
        if split.axis != last:
            return None
        inputs[0], inputs[1] = split, Split(rows)
        return Local(tuple(inputs), (None,), {1: rows}, partial=True)
    n = node.require(1).shape[columns]
    vocabulary = n > VOCABULARY_ROWS
    if barred or (n % parts and not vocabulary) or n < parts:
        return None
    inputs[1] = Split(columns)
    params = {1: columns}
    if len(node.inputs) > 2 and (bias := node.spec(2)) is not None and bias.shape:
        inputs[2] = Split(len(bias.shape) - 1)
        if node.params_at(2):
            params[2] = len(bias.shape) - 1
    return Local(tuple(inputs), (Split(len(out.shape) - 1),), params, begins=(0,), columns=True)


def _batched(node: OpNode, splits: Splits) -> Local | None:
    """A product of two values, divided along the same leading axis (heads)."""
    left, right = splits[0], splits[1] if len(splits) > 1 else None
    if left is None or right is None or left.sequence or right.sequence:
        return None
    a, b, out = (len(spec.shape) for spec in (node.require(0), node.require(1), node.out))
    found = aligned(left, a, out)
    if found != aligned(right, b, out) or left.axis >= a - 2 or right.axis >= b - 2:
        return None
    return Local((left, right), (found,))


def _lookup(node: OpNode, splits: Splits, parts: int, barred: bool) -> Local | None:
    """A vocabulary divided by rows; or a part taken out of a divided value."""
    axis = int(node.attrs.get("axis", 0))
    if _is_weight(node, 0):
        table = node.require(0)
        if axis != 0 or any(splits) or table.shape[0] <= VOCABULARY_ROWS or node.params_at(0)[0].sparse:
            return None
        return Local((Split(0), *_whole(node)[1:]), (None,), {0: 0}, partial=True)
    split, data, index = splits[0] if splits else None, node.spec(0), node.spec(1)
    if split is None or data is None or index is None or index.shape or any(splits[1:]):
        return None
    axis %= len(data.shape)
    if axis == split.axis:
        return None
    return Local(tuple(splits), (replace(split, axis=split.axis - (axis < split.axis)),))


def _reshape(node: OpNode, splits: Splits, parts: int, barred: bool) -> Local | None:
    split, data = splits[0] if splits else None, node.spec(0)
    if split is None or data is None:
        return None
    outputs = []
    for out in node.outputs:
        try:
            found = reshaped(data.shape, out.shape, split, parts) if out is not None else None
        except HeadsError as error:
            raise PlacementError(
                f"tp={parts} does not divide the {error.heads} heads of {node.module or node.name}"
            ) from None
        if found is None or out is None:
            return None
        if out.shape[found.axis] % parts and out.shape[found.axis] != data.shape[split.axis]:
            return None  # only an axis that stays as it is may have been rounded up
        outputs.append(found)
    return Local((split, *_whole(node)[1:]), tuple(outputs))


def _transpose(node: OpNode, splits: Splits, parts: int, barred: bool) -> Local | None:
    split = splits[0] if splits else None
    if split is None:
        return None
    order = tuple(node.attrs.get("perm") or reversed(range(len(node.require(0).shape))))
    return Local((split,), (replace(split, axis=order.index(split.axis)),))


def _part(node: OpNode, splits: Splits, parts: int, barred: bool) -> Local | None:
    """Slice and Split: a part of a divided axis is divided itself."""
    split, data = splits[0] if splits else None, node.spec(0)
    if split is None or data is None:
        return None
    outputs: list[Split | None] = []
    for out in node.outputs:
        if out is None or len(out.shape) != len(data.shape) or out.shape[split.axis] % parts:
            return None
        cut = out.shape[split.axis] != data.shape[split.axis]
        if cut and split.sequence:
            return None
        outputs.append(replace(split, outer=1) if cut else split)
    return Local((split, *_whole(node)[1:]), tuple(outputs))


def _concat(node: OpNode, splits: Splits, parts: int, barred: bool) -> Local | None:
    found = {split for split in splits if split is not None}
    if len(found) != 1:
        return None
    split = found.pop()
    if int(node.attrs.get("axis", 0)) % len(node.out.shape) == split.axis or None in splits:
        return None
    return Local((split,) * len(node.inputs), (split,))


def _attention(node: OpNode, splits: Splits, parts: int, barred: bool) -> Local | None:
    """One kernel: queries, keys and values divided by heads, each GPU with heads of its own."""
    if len(splits) < 3 or any(split is None or split.sequence for split in splits[:3]):
        return None
    query = node.require(0)
    axis = 2 if len(query.shape) == 3 else 1
    names = [name for name in ("q_num_heads", "kv_num_heads", "num_heads") if name in node.attrs]
    counts = [int(node.attrs[name]) for name in names]
    if len(query.shape) == 4:
        counts += [query.shape[1], node.require(1).shape[1]]
    if any(heads % parts for heads in counts):
        raise PlacementError(f"tp={parts} does not divide the {min(counts)} heads of {node.module or node.name}")
    if any(split is None or split.axis != axis for split in splits[:3]) or not counts or any(splits[3:]):
        return None
    by_head = [
        Split(1) if spec is not None and len(spec.shape) == 4 and spec.shape[1] == counts[0] else None
        for spec in node.inputs[3:]
    ]
    outputs: list[Split | None] = [Split(axis)]
    outputs += [Split(1) if spec is not None and len(spec.shape) == 4 else None for spec in node.outputs[1:]]
    attrs = {name: int(node.attrs[name]) // parts for name in names}
    return Local((*splits[:3], *by_head), tuple(outputs), attrs=attrs)


def _rotary(node: OpNode, splits: Splits, parts: int, barred: bool) -> Local | None:
    split = splits[0] if splits else None
    if split is None or any(splits[1:]):
        return None
    heads = int(node.attrs.get("num_heads", 0))
    three = len(node.require(0).shape) == 3
    if split.axis != (2 if three else 1) or split.sequence:
        return None
    if three and heads and heads % parts:
        raise PlacementError(f"tp={parts} does not divide the {heads} heads of {node.module or node.name}")
    return Local((split, *_whole(node)[1:]), (split,), attrs={"num_heads": heads // parts} if heads else {})


def _pointwise(node: OpNode, splits: Splits, parts: int, barred: bool) -> Local | None:
    """Broadcasting: every operand that has the divided axis is a share of it."""
    rank = len(node.out.shape)
    found = {
        aligned(split, len(spec.shape), rank)
        for split, spec in zip(splits, node.inputs, strict=False)
        if split is not None and spec is not None
    }
    if len(found) != 1:
        return None
    split = found.pop()
    size = node.out.shape[split.axis]
    inputs: list[Split | None] = []
    params = {}
    for slot, spec in enumerate(node.inputs):
        axis = split.axis - rank + len(spec.shape) if spec is not None else -1
        divided = spec is not None and axis >= 0 and spec.shape[axis] == size and size > 1
        inputs.append(Split(axis, split.outer, split.sequence) if divided else None)
        if divided and node.params_at(slot):
            params[slot] = axis
        if splits[slot] is not None and not divided:
            return None
    return Local(tuple(inputs), tuple(_same(spec, node.out, split) for spec in node.outputs), params)


def _same(spec: TensorSpec | None, like: TensorSpec, split: Split) -> Split | None:
    return split if spec is not None and spec.shape == like.shape else None


def _along_rows(node: OpNode, splits: Splits, parts: int, barred: bool) -> Local | None:
    """Normalisations and softmax over axes that are whole."""
    split, rank = splits[0], len(node.require(0).shape)
    per_row = ("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization", "Softmax", "LogSoftmax")
    if split is None or any(splits[1:]) or node.op_type not in per_row:
        return None
    if split.axis >= int(node.attrs.get("axis", -1)) % rank:
        return None
    size = node.require(0).shape[split.axis]
    outputs = tuple(
        split if spec is not None and len(spec.shape) == rank and spec.shape[split.axis] == size else None
        for spec in node.outputs
    )
    return Local((split, *_whole(node)[1:]), outputs)


def _reduced(node: OpNode, splits: Splits, parts: int, barred: bool) -> Local | None:
    """A reduction that keeps its axes and leaves the divided one alone."""
    split, data = splits[0], node.require(0)
    if split is None or len(node.out.shape) != len(data.shape):
        return None
    if node.out.shape[split.axis] != data.shape[split.axis] or data.shape[split.axis] == 1:
        return None
    return Local((split, *_whole(node)[1:]), (split,))


_BY_TYPE: Mapping[str, Callable[[OpNode, Splits, int, bool], Local | None]] = {
    "MatMul": _product, "Gemm": _product, "Gather": _lookup,
    "Reshape": _reshape, "Flatten": _reshape, "Squeeze": _reshape, "Unsqueeze": _reshape, "Identity": _reshape,
    "Transpose": _transpose, "Slice": _part, "Split": _part, "Concat": _concat, "Expand": _pointwise,
    "Attention": _attention, "MultiHeadAttention": _attention, "RotaryEmbedding": _rotary,
}  # fmt: skip
