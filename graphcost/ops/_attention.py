"""What all attention operators share: the square of queries and keys, and its costs.

Both products count the full square: no causal or window discount, padding included.
"""

from __future__ import annotations

from dataclasses import dataclass

from graphcost.ir import MAC_FLOPS, OpCost, OpNode, TensorSpec
from graphcost.ops._conventions import POINTWISE, SOFTMAX, SOFTMAX_BACKWARD, TRANSCENDENTAL
from graphcost.ops._rule import read_bytes


@dataclass(frozen=True, slots=True)
class Square:
    """Scores ``[batch, q_heads, q_len, kv_len]``; heads of ``qk_dim`` for Q and K, ``v_dim`` for V."""

    batch: int
    q_heads: int
    q_len: int
    kv_len: int
    qk_dim: int
    v_dim: int

    @property
    def scores(self) -> int:
        """Elements of the score tensor."""
        return self.batch * self.q_heads * self.q_len * self.kv_len

    @property
    def qk_flops(self) -> int:
        """FLOPs of ``Q @ K^T``."""
        return MAC_FLOPS * self.scores * self.qk_dim

    @property
    def pv_flops(self) -> int:
        """FLOPs of ``P @ V``."""
        return MAC_FLOPS * self.scores * self.v_dim

    @property
    def matmul_flops(self) -> int:
        """FLOPs of both products."""
        return self.qk_flops + self.pv_flops

    def softmax_flops(self, added: int = 0, softcap: bool = False) -> int:
        """FLOPs of scaling, ``added`` masks or biases, soft cap and softmax."""
        each = POINTWISE + SOFTMAX + added * POINTWISE
        return self.scores * (each + (TRANSCENDENTAL + 2 * POINTWISE if softcap else 0))


def square_backward(square: Square, q: bool, k: bool, v: bool) -> tuple[int, int]:
    """(matmul FLOPs, elementwise FLOPs) of the unfused gradients; all three cost twice the forward.

    ``dV = P^T dO``; ``dP = dO V^T`` serves both ``dQ = dS K`` and ``dK = dS^T Q``.
    """
    matmul = square.pv_flops * (v + (q or k)) + square.qk_flops * (q + k)
    elementwise = square.scores * (SOFTMAX_BACKWARD + POINTWISE) if q or k else 0
    return matmul, elementwise


def gradient_traffic(node: OpNode, wrt: frozenset[int]) -> tuple[int, int]:
    """(read, written) bytes: every input, the output and its gradient; then the needed gradients."""
    read = read_bytes(*node.inputs) + 2 * node.out.size_bytes
    return read, sum(node.require(index).size_bytes for index in wrt)


def cached_traffic(node: OpNode, caches: dict[int, int], kv_len: int, new_len: int) -> OpCost:
    """Bytes of an attention with a key-value cache; ``caches`` maps past inputs to present outputs.

    Where past and present have one shape they are one buffer: the positions before the
    new ones are read and the new ones written. Otherwise present is a new tensor.
    """
    read, written = read_bytes(*node.inputs), read_bytes(*node.outputs)
    for past_index, present_index in caches.items():
        past = node.spec(past_index)
        present = node.outputs[present_index] if present_index < len(node.outputs) else None
        if past is None or present is None or past.shape != present.shape or not past.shape[-2]:
            continue
        read += _rows_bytes(past, kv_len - new_len) - past.size_bytes
        written += _rows_bytes(present, new_len) - present.size_bytes
    return OpCost(0, 0, read, written)


def _rows_bytes(cache: TensorSpec, positions: int) -> int:
    capacity = cache.shape[-2]
    return cache.size_bytes * max(0, min(positions, capacity)) // capacity
