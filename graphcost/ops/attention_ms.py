"""ONNX Runtime's attention operators (domain com.microsoft).

Those with a weight at input 1 project Q, K and V themselves, which counts; the others
take them projected. Lengths come from the present output, else past plus new.
"""

from __future__ import annotations

from dataclasses import dataclass

from graphcost.ir import MAC_FLOPS, OpCost, OpNode
from graphcost.ops._attention import Square, cached_traffic, gradient_traffic, square_backward
from graphcost.ops._backward import no_gradient
from graphcost.ops._conventions import ROTARY
from graphcost.ops._rule import BackwardRule, ForwardRule, OpClass, rule, traffic
from graphcost.ops._shapes import (
    attr_int,
    attr_ints,
    rank_at_least,
    rank_exactly,
    shape_error,
    split_evenly,
)

MICROSOFT = "com.microsoft"


def _cached_length(node: OpNode, past_index: int, present_index: int, new_len: int, told: int | None) -> int:
    """Key length: past plus new where the past length is told, else present's, else past's plus new."""
    past = node.spec(past_index)
    if told is not None and (known := node.values.get(told)):
        return int(known[0]) + new_len
    present = node.outputs[present_index] if len(node.outputs) > present_index else None
    if present is not None:
        return rank_at_least(node, present, 2, "present")[-2]
    return new_len if past is None else rank_at_least(node, past, 2, "past")[-2] + new_len


@dataclass(frozen=True, slots=True)
class Projecting:
    """Where an operator that projects Q, K, V itself keeps its inputs; -1 where it has none."""

    mask: int
    past: int = -1
    attention_bias: int = -1
    past_length: int | None = None
    token_offset: int = -1

    def sizes(self, node: OpNode) -> tuple[int, Square]:
        """(FLOPs of the projection, the square).

        Input ``[B, S, I]`` or ``[tokens, I]``, weight ``[I, 2 H + Hv]``; raises ``ShapeError``.
        """
        x = rank_at_least(node, node.require(0), 2, "the input")
        features, width = rank_exactly(node, node.require(1), 2, "the weight")
        if x[-1] != features:
            raise shape_error(node, f"the weight must have {x[-1]} rows, not {features}")
        tokens = node.require(0).numel // max(1, features)
        if self.token_offset >= 0:
            batch, length = rank_exactly(node, node.require(self.token_offset), 2, "token_offset")
        else:
            batch, length = rank_exactly(node, node.require(0), 3, "the input")[:2]
        heads = attr_int(node, "num_heads")
        q_hidden, _, v_hidden = (
            attr_ints(node, "qkv_hidden_sizes") or (split_evenly(node, width, 3, "the weight's width"),) * 3
        )
        if 2 * q_hidden + v_hidden != width:
            raise shape_error(node, f"the weight must have {2 * q_hidden + v_hidden} columns, not {width}")
        kv_len = length
        if self.past >= 0:
            kv_len = _cached_length(node, self.past, 1, length, self.past_length)
        dims = [split_evenly(node, hidden, heads, "hidden size") for hidden in (q_hidden, v_hidden)]
        return MAC_FLOPS * tokens * features * width, Square(batch, heads, length, kv_len, *dims)

    def forward(self) -> ForwardRule:
        """The forward rule."""

        def forward(node: OpNode) -> OpCost:
            """``softmax(x Wq (x Wk)^T) x Wv`` with the packed projection, the full square.

            Source: com.microsoft.Attention, QAttention, PackedAttention, DecoderMaskedSelfAttention
            (ONNX Runtime contrib operators).
            """
            projection, square = self.sizes(node)
            added = sum(i >= 0 and node.spec(i) is not None for i in (self.mask, self.attention_bias))
            extra = square.softmax_flops(added)
            if (bias := node.spec(2)) is not None:
                extra += bias.numel * (node.require(0).numel // max(1, node.require(0).shape[-1]))
            caches = {self.past: 1} if self.past >= 0 else {}
            moved = cached_traffic(node, caches, square.kv_len, square.q_len)
            return OpCost(projection + square.matmul_flops, extra) + moved

        return forward

    def backward(self) -> BackwardRule:
        """The backward rule: the square's gradients, then one projection for each of dX and dW."""

        def backward(node: OpNode, wrt: frozenset[int]) -> OpCost:
            if not wrt:
                return OpCost()
            projection, square = self.sizes(node)
            matmul, elementwise = square_backward(square, True, True, True)
            matmul += projection * len(wrt & {0, 1})
            return OpCost(matmul, elementwise, *gradient_traffic(node, wrt))

        return backward


def _projecting(*op_types: str, where: Projecting, trainable: bool = True) -> None:
    rule(
        *op_types,
        domain=MICROSOFT,
        op_class=OpClass.ATTENTION,
        backward=where.backward() if trainable else no_gradient,
        saves=("in0", "out0") if trainable else (),
    )(where.forward())


_projecting("Attention", where=Projecting(mask=3, past=4, attention_bias=5, past_length=6))
_projecting("QAttention", where=Projecting(mask=5, past=8), trainable=False)
_projecting("PackedAttention", where=Projecting(mask=-1, attention_bias=5, token_offset=3))
_projecting(
    "DecoderMaskedSelfAttention",
    where=Projecting(mask=3, past=4, attention_bias=5, past_length=6),
    trainable=False,
)


def _kv(node: OpNode, heads: int, q_hidden: int) -> tuple[int, int]:
    """(new key length, value head size) of keys in any of the accepted forms."""
    key, value = node.require(1), node.spec(2)
    if len(key.shape) == 5:  # packed KV [B, L, N, 2, D]
        return key.shape[1], key.shape[4]
    if len(key.shape) == 4:  # [B, N, L, D], as a cache holds them
        return key.shape[2], node.require(2).shape[3]
    _, length, hidden = rank_exactly(node, key, 3, "the key")
    if hidden != q_hidden:
        raise shape_error(node, f"the key's hidden size must be {q_hidden}, not {hidden}")
    v_hidden = hidden if value is None else rank_at_least(node, value, 3, "the value")[-1]
    return length, split_evenly(node, v_hidden, heads, "the value's hidden size")


def multi_head_square(node: OpNode, past: int, past_length: int) -> tuple[Square, int]:
    """(square, new keys) of projected heads: query ``[B, S, H]`` or packed ``[B, S, N, 3, D]``."""
    query, heads = rank_at_least(node, node.require(0), 3, "the query"), attr_int(node, "num_heads")
    batch, q_len = query[:2]
    if len(query) == 5:
        new_len, qk_dim = q_len, query[4]
        v_dim = qk_dim
    elif node.spec(1) is None:  # packed [B, S, 2 H + Hv]
        qk_dim = v_dim = split_evenly(node, query[2], 3 * heads, "the packed hidden size")
        new_len = q_len
    else:
        qk_dim = split_evenly(node, query[2], heads, "the query's hidden size")
        new_len, v_dim = _kv(node, heads, query[2])
    kv_len = _cached_length(node, past, 1, new_len, past_length)
    return Square(batch, heads, q_len, kv_len, qk_dim, v_dim), new_len


def _multi_head_rule(past: int, past_length: int, added: tuple[int, ...], bias: int) -> ForwardRule:
    def forward(node: OpNode) -> OpCost:
        """``2 B N S L (D + Dv)`` over past and new keys, the full square; a projection bias is added.

        Source: com.microsoft.MultiHeadAttention, DecoderMaskedMultiHeadAttention (ONNX Runtime
        contrib operators).
        """
        square, new_len = multi_head_square(node, past, past_length)
        extra = square.softmax_flops(sum(node.spec(index) is not None for index in added))
        if (vector := node.spec(bias)) is not None:
            extra += vector.numel * square.batch * square.q_len
        moved = cached_traffic(node, {past: 1, past + 1: 2}, square.kv_len, new_len)
        return OpCost(square.matmul_flops, extra) + moved

    return forward


def _multi_head_backward(node: OpNode, wrt: frozenset[int]) -> OpCost:
    if not wrt:
        return OpCost()
    square, _ = multi_head_square(node, 6, 8)
    packed_all = node.spec(1) is None
    packed_kv = not packed_all and node.spec(2) is None
    any_of_three = packed_all or 3 in wrt  # a packed tensor or the bias needs all three
    matmul, elementwise = square_backward(
        square, any_of_three or 0 in wrt, any_of_three or 1 in wrt, any_of_three or 2 in wrt or packed_kv
    )
    return OpCost(matmul, elementwise, *gradient_traffic(node, wrt))


rule(
    "MultiHeadAttention",
    domain=MICROSOFT,
    op_class=OpClass.ATTENTION,
    backward=_multi_head_backward,
    saves=("in0", "in1", "in2", "out0"),
)(_multi_head_rule(past=6, past_length=8, added=(4, 5), bias=3))
rule("DecoderMaskedMultiHeadAttention", domain=MICROSOFT, op_class=OpClass.ATTENTION, backward=no_gradient)(
    _multi_head_rule(past=5, past_length=7, added=(3, 4), bias=10)
)


@rule("PackedMultiHeadAttention", domain=MICROSOFT, op_class=OpClass.ATTENTION, backward=no_gradient)
def packed_multi_head(node: OpNode) -> OpCost:
    """query ``[tokens, H]`` or ``[tokens, N, 3, D]``, token_offset ``[B, S]`` at input 4: the padded square.

    Source: com.microsoft.PackedMultiHeadAttention (ONNX Runtime contrib operators).
    """
    query, heads = rank_at_least(node, node.require(0), 2, "the query"), attr_int(node, "num_heads")
    batch, length = rank_exactly(node, node.require(4), 2, "token_offset")
    if len(query) == 4:
        qk_dim = v_dim = query[3]
    else:
        qk_dim = split_evenly(node, query[1], heads, "the query's hidden size")
        v_dim = split_evenly(node, node.require(2).shape[-1], heads, "the value's hidden size")
    square = Square(batch, heads, length, length, qk_dim, v_dim)
    extra = square.softmax_flops(int(node.spec(6) is not None))
    if (vector := node.spec(3)) is not None:
        extra += vector.numel * query[0]
    return traffic(node, matmul_flops=square.matmul_flops, elementwise_flops=extra)


def group_query_square(node: OpNode) -> tuple[Square, int, int]:
    """(square, new keys, elements that a rotary embedding turns) of GroupQueryAttention."""
    heads, kv_heads = attr_int(node, "num_heads"), attr_int(node, "kv_num_heads")
    batch, q_len, hidden = rank_exactly(node, node.require(0), 3, "the query")
    if kv_heads <= 0 or heads % kv_heads:
        raise shape_error(node, f"{heads} query heads are not a multiple of {kv_heads} key heads")
    key = node.spec(1)
    if key is None:  # packed: [B, S, (N + 2 Nkv) D]
        dim, new_len = split_evenly(node, hidden, heads + 2 * kv_heads, "the packed hidden size"), q_len
    else:
        dim = split_evenly(node, hidden, heads, "the query's hidden size")
        _, new_len, kv_hidden = rank_exactly(node, key, 3, "the key")
        if kv_hidden != kv_heads * dim:
            raise shape_error(node, f"the key's hidden size must be {kv_heads * dim}, not {kv_hidden}")
    total = node.values.get(6)
    kv_len = int(total[0]) if total else _cached_length(node, 3, 1, new_len, None)
    rotated = batch * dim * (heads * q_len + kv_heads * new_len) if attr_int(node, "do_rotary", 0) else 0
    return Square(batch, heads, q_len, kv_len, dim, dim), new_len, rotated


def _group_query_backward(node: OpNode, wrt: frozenset[int]) -> OpCost:
    if not wrt:
        return OpCost()
    square, _, rotated = group_query_square(node)
    packed = node.spec(1) is None
    matmul, elementwise = square_backward(square, 0 in wrt, packed or 1 in wrt, packed or 2 in wrt)
    return OpCost(matmul, elementwise + ROTARY * rotated, *gradient_traffic(node, wrt))


@rule(
    "GroupQueryAttention",
    domain=MICROSOFT,
    op_class=OpClass.ATTENTION,
    backward=_group_query_backward,
    saves=("in0", "in1", "in2", "out0"),
)
def group_query(node: OpNode) -> OpCost:
    """query ``[B, S, N * D]``, key and value ``[B, S, Nkv * D]``, caches ``[B, Nkv, P, D]``: the full square.

    The key length is total_sequence_length (input 6) where known, else the present cache's.
    Source: com.microsoft.GroupQueryAttention (ONNX Runtime contrib operators; arXiv:2305.13245).
    """
    square, new_len, rotated = group_query_square(node)
    softcap = float(node.attrs.get("softcap", 0.0)) > 0
    extra = square.softmax_flops(int(node.spec(10) is not None), softcap) + ROTARY * rotated
    return OpCost(square.matmul_flops, extra) + cached_traffic(node, {3: 1, 4: 2}, square.kv_len, new_len)
