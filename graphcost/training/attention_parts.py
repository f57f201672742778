"""Attention without a fused kernel: scale, product, mask, softmax, product, each an operator of its own.

Source: torch's math backend (``_scaled_dot_product_attention_math``), which is also how
models were written before there was one operator for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from graphcost.ir import OpNode, TensorSpec


def taken_apart(operators: Iterable[tuple[str, OpNode]]) -> Iterator[tuple[str, OpNode]]:
    """``operators`` with every Attention of plain Q, K and V replaced; others stay as they are."""
    for owner, node in operators:
        parts = _parts(node)
        if parts is None:
            yield owner, node
        else:
            yield from ((owner, part) for part in parts)


def _parts(node: OpNode) -> list[OpNode] | None:
    """None where heads are shared or packed, keys are cached, or several tensors share the mask's slot."""
    specs = [node.spec(index) for index in range(3)]
    out = node.outputs[0] if node.outputs else None
    if node.op_type != "Attention" or node.domain or node.spec(4) is not None or len(node.input_names) < 3:
        return None
    if out is None or any(spec is None or len(spec.shape) != 4 for spec in specs):
        return None
    q, k, v = (spec for spec in specs if spec is not None)
    if k.shape[1] != q.shape[1] or sum(slot == 3 for slot, _ in node.params) > 1:
        return None
    names = node.input_names
    scores = TensorSpec((*q.shape[:3], k.shape[2]), q.dtype)
    turned = TensorSpec((*k.shape[:2], k.shape[3], k.shape[2]), k.dtype)
    result = node.output_names[0] if node.output_names else node.name

    def made(step: str, op_type: str, inputs: tuple[TensorSpec, ...], spec: TensorSpec, *sources: str) -> OpNode:
        last = step == "values"
        return OpNode(
            name=f"{node.name} {step}",
            op_type=op_type,
            inputs=inputs,
            outputs=(spec,),
            attrs={"perm": (0, 1, 3, 2)} if op_type == "Transpose" else {"axis": -1} if op_type == "Softmax" else {},
            input_names=sources,
            output_names=(result if last else f"{result}.{step}",),
            repeat=node.repeat,
            module=node.module,
            origin=node.origin,
        )

    scalar = TensorSpec((), q.dtype)
    nodes = [
        made("scaled", "Mul", (q, scalar), q, names[0], ""),
        made("turned", "Transpose", (k,), turned, names[1]),
        made("scores", "MatMul", (q, turned), scores, f"{result}.scaled", f"{result}.turned"),
    ]
    mask, last = node.spec(3), f"{result}.scores"
    if mask is not None:
        added = made("masked", "Add", (scores, mask), scores, last, names[3] if len(names) > 3 else "")
        held = tuple((1, param) for slot, param in node.params if slot == 3)
        nodes.append(replace(added, params=held))
        last = f"{result}.masked"
    nodes.append(made("softmax", "Softmax", (scores,), scores, last))
    nodes.append(made("values", "MatMul", (scores, v), out, f"{result}.softmax", names[2]))
    return nodes
