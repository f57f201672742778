"""Losses over class scores."""

from __future__ import annotations

from graphcost.ir import OpCost, OpNode
from graphcost.ops._conventions import LOSS_BACKWARD, REDUCTION, SOFTMAX
from graphcost.ops._rule import OpClass, read_bytes, rule, traffic
from graphcost.ops._shapes import rank_at_least, shape_error


def _check_labels(node: OpNode) -> None:
    scores = rank_at_least(node, node.require(0), 2, "the scores")
    labels = node.require(1).shape
    if labels != (scores[0], *scores[2:]):
        raise shape_error(node, f"labels must have shape {[scores[0], *scores[2:]]}")


def _weight_flops(node: OpNode) -> int:
    """Picking and summing the labels' terms, and weighing them where weights are given."""
    return node.require(1).numel * (REDUCTION + (node.spec(2) is not None))


def _cross_entropy_backward(node: OpNode, wrt: frozenset[int]) -> OpCost:
    if 0 not in wrt:
        return OpCost()
    scores = node.require(0)
    return OpCost(0, LOSS_BACKWARD * scores.numel, read_bytes(*node.inputs, node.out), scores.size_bytes)


@rule(
    "SoftmaxCrossEntropyLoss",
    op_class=OpClass.SOFTMAX,
    backward=_cross_entropy_backward,
    saves=("in0", "in1"),
)
def softmax_cross_entropy(node: OpNode) -> OpCost:
    """Scores ``[N, C, *]``, labels ``[N, *]``: a softmax over all scores, then a sum over the labels.

    Source: ONNX SoftmaxCrossEntropyLoss-13.
    """
    _check_labels(node)
    return traffic(node, elementwise_flops=SOFTMAX * node.require(0).numel + _weight_flops(node))


def _nll_backward(node: OpNode, wrt: frozenset[int]) -> OpCost:
    if 0 not in wrt:
        return OpCost()
    labels = node.require(1)
    return OpCost(0, labels.numel, read_bytes(labels, node.spec(2), node.out), node.require(0).size_bytes)


@rule("NegativeLogLikelihoodLoss", op_class=OpClass.REDUCE, backward=_nll_backward, saves=("in1",))
def negative_log_likelihood(node: OpNode) -> OpCost:
    """Log-probabilities ``[N, C, *]``, labels ``[N, *]``: reads the labelled entries alone.

    Source: ONNX NegativeLogLikelihoodLoss-22.
    """
    _check_labels(node)
    scores, labels = node.require(0), node.require(1)
    picked_bytes = scores.size_bytes // scores.shape[1] if scores.shape[1] else 0
    read = picked_bytes + read_bytes(labels, node.spec(2))
    return OpCost(0, _weight_flops(node), read, read_bytes(*node.outputs))
