"""The standard's attention operators: softmax attention and its linear kin."""

from __future__ import annotations

from graphcost.ir import MAC_FLOPS, OpCost, OpNode
from graphcost.ops._attention import Square, gradient_traffic, square_backward
from graphcost.ops._conventions import POINTWISE, TRANSCENDENTAL
from graphcost.ops._rule import OpClass, rule, traffic
from graphcost.ops._shapes import Shape, attr_int, attr_str, rank_exactly, shape_error, split_evenly


def _heads(node: OpNode, index: int, attribute: str, what: str) -> Shape:
    """Input ``index`` as ``[B, heads, S, D]``, from four axes or from ``[B, S, heads * D]``."""
    spec = node.require(index)
    if len(spec.shape) == 4:
        return spec.shape
    batch, length, hidden = rank_exactly(node, spec, 3, what)
    heads = attr_int(node, attribute)
    return batch, heads, length, split_evenly(node, hidden, heads, f"{what}'s hidden size")


def attention_square(node: OpNode) -> Square:
    """Sizes of ai.onnx Attention; raises ``ShapeError`` where Q, K and V do not fit each other."""
    batch, q_heads, q_len, qk_dim = _heads(node, 0, "q_num_heads", "Q")
    k = _heads(node, 1, "kv_num_heads", "K")
    v = _heads(node, 2, "kv_num_heads", "V")
    if k[0] != batch or v[0] != batch or k[1:3] != v[1:3] or k[3] != qk_dim:
        raise shape_error(
            node, "Q, K and V must share the batch, K and V their heads and length, Q and K the head size"
        )
    if k[1] == 0 or q_heads % k[1]:
        raise shape_error(node, f"{q_heads} query heads are not a multiple of {k[1]} key heads")
    present = node.outputs[1] if len(node.outputs) > 1 else None
    past = node.spec(4)
    kv_len = present.shape[2] if present is not None else k[2] + (past.shape[2] if past is not None else 0)
    return Square(batch, q_heads, q_len, kv_len, qk_dim, v[3])


def _attention_backward(node: OpNode, wrt: frozenset[int]) -> OpCost:
    if not wrt:
        return OpCost()
    square = attention_square(node)
    q, k, v = 0 in wrt, bool(wrt & {1, 4}), bool(wrt & {2, 5})  # past keys and values are keys and values
    matmul, elementwise = square_backward(square, q or 3 in wrt, k, v)
    if 3 in wrt and not q:  # the mask's gradient is dS itself: no product with K
        matmul -= square.qk_flops
    return OpCost(matmul, elementwise, *gradient_traffic(node, wrt))


@rule(
    "Attention",
    op_class=OpClass.ATTENTION,
    backward=_attention_backward,
    saves=("in0", "in1", "in2", "out0"),
)
def attention(node: OpNode) -> OpCost:
    """Q ``[B, Hq, Sq, D]``, K ``[B, Hkv, Skv, D]``, V ``[B, Hkv, Skv, Dv]``, or three axes with heads packed.

    ``2 B Hq Sq Skv (D + Dv)`` over past and new keys, the full square.
    Source: ONNX Attention-24 (arXiv:1706.03762, grouped heads arXiv:2305.13245).
    """
    square = attention_square(node)
    softcap = float(node.attrs.get("softcap", 0.0)) > 0
    extra = square.softmax_flops(added=int(node.spec(3) is not None), softcap=softcap)
    return traffic(node, matmul_flops=square.matmul_flops, elementwise_flops=extra)


def _linear_flops(node: OpNode) -> tuple[int, int]:
    """(matmul, elementwise) FLOPs of the recurrence over every token.

    Per token a key head forms ``k v^T`` and adds it to its state (one MAC an element), the
    delta rules also read ``S^T k`` from it, and every query head reads ``S^T q``.
    """
    q_heads, kv_heads = attr_int(node, "q_num_heads"), attr_int(node, "kv_num_heads")
    batch, steps, q_hidden = rank_exactly(node, node.require(0), 3, "query")
    v_hidden = rank_exactly(node, node.require(2), 3, "value")[2]
    key_dim = split_evenly(node, q_hidden, q_heads, "the query's hidden size")
    value_dim = split_evenly(node, v_hidden, kv_heads, "the value's hidden size")
    state = batch * steps * key_dim * value_dim
    update_rule = attr_str(node, "update_rule", "gated_delta")
    delta, gated = "delta" in update_rule, "gated" in update_rule
    matmul = MAC_FLOPS * state * (kv_heads * (2 if delta else 1) + q_heads)
    elementwise = state * kv_heads * POINTWISE if gated else 0
    elementwise += batch * steps * v_hidden * 2 * POINTWISE if delta else 0  # (v - retrieved) * beta
    if gated and (decay := node.spec(4)) is not None:
        elementwise += decay.numel * TRANSCENDENTAL
    return matmul, elementwise


def _linear_backward(node: OpNode, wrt: frozenset[int]) -> OpCost:
    if not wrt:
        return OpCost()
    matmul, elementwise = _linear_flops(node)
    return OpCost(2 * matmul, 2 * elementwise, *gradient_traffic(node, wrt))


@rule("LinearAttention", op_class=OpClass.ATTENTION, backward=_linear_backward, saves=("inputs", "out0"))
def linear_attention(node: OpNode) -> OpCost:
    """query ``[B, T, Hq * Dk]``, key ``[B, T, Hkv * Dk]``, value ``[B, T, Hkv * Dv]``.

    The state is ``[B, Hkv, Dk, Dv]``. Counted as the recurrence that defines it, not as a chunked form.
    Source: ONNX LinearAttention-27 (arXiv:2006.16236, arXiv:2412.06464).
    """
    matmul, elementwise = _linear_flops(node)
    return traffic(node, matmul_flops=matmul, elementwise_flops=elementwise)
