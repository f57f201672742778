"""Mixtures of experts (domain com.microsoft): every token passes ``k`` experts.

assumed: tokens spread evenly, so that ``min(experts, tokens * k)`` experts' weights are read.
"""

from __future__ import annotations

from dataclasses import dataclass

from graphcost.ir import MAC_FLOPS, OpCost, OpNode
from graphcost.ops._backward import no_gradient
from graphcost.ops._conventions import POINTWISE, SOFTMAX, activation_flops
from graphcost.ops._rule import OpClass, read_bytes, rule
from graphcost.ops._shapes import attr_int, attr_str, rank_at_least, rank_exactly, shape_error


@dataclass(frozen=True, slots=True)
class Layer:
    """Input indices of the three weights, and how many inputs each takes with scales and bias."""

    weights: tuple[int, ...]
    per_weight: int


_FLOAT = Layer((2, 4, 6), 2)
_QUANTISED = Layer((2, 5, 8), 3)


def _sizes(node: OpNode, layer: Layer, packing: int) -> tuple[int, int, int, int]:
    """(tokens, experts, rows each expert's layers multiply by, hidden size of the first layer)."""
    x = rank_at_least(node, node.require(0), 2, "the input")
    tokens = node.require(0).numel // max(1, x[-1])
    experts = rank_exactly(node, node.require(1), 2, "router_probs")[1]
    weights_per_expert = 0
    for index in layer.weights:
        if (weight := node.spec(index)) is not None:
            shape = rank_exactly(node, weight, 3, f"weight {index}")
            if shape[0] != experts:
                raise shape_error(node, f"weight {index} must hold {experts} experts, not {shape[0]}")
            weights_per_expert += shape[1] * shape[2] * packing
    second = rank_exactly(node, node.require(layer.weights[1]), 3, "fc2")
    inner = second[1] * second[2] * packing // max(1, x[-1])
    return tokens, experts, weights_per_expert, inner


def _cost(node: OpNode, layer: Layer, packing: int) -> OpCost:
    tokens, experts, weights, inner = _sizes(node, layer, packing)
    chosen = tokens * attr_int(node, "k", 1)
    activation = activation_flops(attr_str(node, "activation_type", "relu"))
    routing = SOFTMAX * tokens * experts
    combining = 2 * POINTWISE * chosen * (node.require(0).numel // max(1, tokens))
    elementwise = routing + chosen * inner * activation + combining
    used = min(experts, chosen)
    expert_bytes = read_bytes(*node.inputs[2:]) * used // max(1, experts)
    read = read_bytes(node.require(0), node.require(1)) + expert_bytes
    return OpCost(MAC_FLOPS * chosen * weights, elementwise, read, read_bytes(*node.outputs))


def _moe_backward(node: OpNode, wrt: frozenset[int]) -> OpCost:
    """dX and dW one forward each, whichever of the experts' weights is needed."""
    if not wrt:
        return OpCost()
    once = _cost(node, _FLOAT, 1)
    passes = (0 in wrt) + any(index in wrt for index in _FLOAT.weights)
    written = sum(node.require(index).size_bytes for index in wrt)
    read = once.read_bytes + node.out.size_bytes
    return OpCost(passes * once.matmul_flops, once.elementwise_flops, read, written)


@rule("MoE", domain="com.microsoft", op_class=OpClass.MATMUL, backward=_moe_backward, saves=("in0", "in1"))
def moe(node: OpNode) -> OpCost:
    """input ``[*, H]``, router_probs ``[T, E]``, fc1 ``[E, f*I, H]``, fc2 ``[E, H, I]``, fc3 ``[E, I, H]``.

    Source: com.microsoft.MoE (ONNX Runtime contrib operators; arXiv:2101.03961).
    """
    return _cost(node, _FLOAT, 1)


@rule("QMoE", domain="com.microsoft", op_class=OpClass.MATMUL, backward=no_gradient)
def qmoe(node: OpNode) -> OpCost:
    """As MoE, weights packed ``8 / expert_weight_bits`` to a byte, with scales and bias after each.

    Source: com.microsoft.QMoE (ONNX Runtime contrib operators).
    """
    return _cost(node, _QUANTISED, 8 // attr_int(node, "expert_weight_bits", 4))
