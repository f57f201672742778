"""How much of the square of queries and keys a causal attention kernel works out.

FLOPs count the full square; a fused kernel cuts it into tiles and leaves out those above
the diagonal. Source: FlashAttention-2, arXiv 2307.08691, section 3.1 (causal masking).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from graphcost.ir import OpNode
from graphcost.ops._attention import Square
from graphcost.ops._shapes import attr_int
from graphcost.ops.attention import attention_square
from graphcost.ops.attention_ms import MICROSOFT, group_query_square, multi_head_square

CAUSAL_TILE = 128
"""Queries and keys of a tile (FlashAttention-2's largest block: 128 queries by 64 or 128 keys)."""


def tiles_share(queries: int, keys: int, past: int = 0) -> float:
    """Share of the tiles of ``queries x keys`` that hold a pair which is not masked.

    ``past``: keys before the first query's own.

    >>> tiles_share(128, 128), tiles_share(256, 256), tiles_share(1, 1024, past=1023)
    (1.0, 0.75, 1.0)
    """
    if queries <= 0 or keys <= 0:
        return 1.0
    last = (min(first + CAUSAL_TILE, queries) for first in range(0, queries, CAUSAL_TILE))
    reached = sum(-(-min(keys, past + end) // CAUSAL_TILE) for end in last)
    return reached / (-(-queries // CAUSAL_TILE) * -(-keys // CAUSAL_TILE))


def causal_share(node: OpNode) -> float | None:
    """Share of its counted square that a fused kernel of ``node`` works out; None where it is not causal."""
    found = _CAUSAL.get(node.kind)
    square_and_past = found(node) if found is not None else None
    if square_and_past is None:
        return None
    square, past = square_and_past
    return tiles_share(square.q_len, square.kv_len, past)


def _standard(node: OpNode) -> tuple[Square, int] | None:
    if not node.attrs.get("is_causal"):
        return None
    past = node.spec(4)
    return attention_square(node), past.shape[2] if past is not None else 0


def _multi_head(node: OpNode) -> tuple[Square, int] | None:
    if not attr_int(node, "unidirectional", 0):
        return None
    square, new_len = multi_head_square(node, 6, 8)
    return square, square.kv_len - new_len


def _group_query(node: OpNode) -> tuple[Square, int]:
    """Always causal (ONNX Runtime contrib operators)."""
    square, new_len, _ = group_query_square(node)
    return square, square.kv_len - new_len


_CAUSAL: Mapping[str, Callable[[OpNode], tuple[Square, int] | None]] = {
    "Attention": _standard,
    f"{MICROSOFT}.MultiHeadAttention": _multi_head,
    f"{MICROSOFT}.GroupQueryAttention": _group_query,
}
