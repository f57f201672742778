"""Signs that a file was exported for inference, and what is assumed when its training is predicted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from graphcost.ir import BITS, BatchSource, Model, OpNode, Param, ParamKind
from graphcost.result import Finding

_CONVOLUTIONS = frozenset({"Conv", "FusedConv", "QLinearConv"})
_FOLDED_NAME = re.compile(r"^onnx::Conv_\d+$")
"""What torch's exporter calls a weight that it has multiplied with a batch norm's scale."""

_LEAST = 4
"""Convolutions from which on the absence of any norm says something (assumed)."""


def signs_of_inference(model: Model, larger: int | None = None) -> tuple[Finding, ...]:
    """A note for each sign: quantised weights, folded batch norms, a batch of 1 (``larger``: one that works too)."""
    found = [*_quantised(model), *_folded(model), *_batch_of_one(model, larger)]
    return tuple(Finding("inference-graph", "note", message, "model") for message in found)


def _quantised(model: Model) -> Iterator[str]:
    weights = {param.name: param for _, param in _params(model.nodes) if param.kind is ParamKind.WEIGHT}
    total = sum(param.numel for param in weights.values())
    small = [param for param in weights.values() if not param.spec.is_float and BITS[param.spec.dtype] <= 8]
    if small:
        share = sum(param.numel for param in small) / total
        dtypes = ", ".join(sorted({param.spec.dtype for param in small}))
        yield (
            f"an export for inference: {share:.0%} of the weights are stored as {dtypes}; for training they are "
            "assumed to be trained, in the chosen precision, and the operators are counted as the file has them"
        )


def _folded(model: Model) -> Iterator[str]:
    """Batch norm goes into the convolution before it when torch or an optimizer exports for inference.

    The exporter's names prove it. Without them, networks with shortcuts or depthwise convolutions, a bias on
    every convolution and no norm at all are read so: such networks are hardly trained without one (assumed).
    """
    convolutions = [node for node in model.nodes if node.op_type in _CONVOLUTIONS]
    if not convolutions or any("Norm" in node.op_type or node.op_type == "LRN" for node in model.nodes):
        return
    named = [n for n in convolutions if any(_FOLDED_NAME.match(param.name) for _, param in n.params)]
    biased = all(len(node.params) > 1 for node in convolutions)
    typical = any(_is_shortcut(node) or _is_depthwise(node) for node in model.nodes)
    assumed = (
        "training is predicted for the graph as it stands, without the norms' parameters, statistics and passes; "
        "export with training=torch.onnx.TrainingMode.TRAINING to have them"
    )
    if named:
        yield f"an export for inference: batch norm is folded into {len(named)} convolutions; {assumed}"
    elif biased and typical and len(convolutions) >= _LEAST:
        yield (
            f"perhaps an export for inference: all {len(convolutions)} convolutions have a bias and no norm "
            f"follows, as after folding batch norm; {assumed}"
        )


def _is_shortcut(node: OpNode) -> bool:
    """A sum of two activations of one shape."""
    return node.op_type == "Add" and not node.params and len(set(node.inputs)) == 1


def _is_depthwise(node: OpNode) -> bool:
    """Each channel has filters of its own."""
    weight = node.spec(1)
    return (
        node.op_type == "Conv" and int(node.attrs.get("group", 1)) > 1 and weight is not None and weight.shape[1] == 1
    )


def _batch_of_one(model: Model, larger: int | None) -> Iterator[str]:
    if model.batch == 1 and model.batch_source is BatchSource.FILE:
        hint = "" if larger is None else f"; --batch {larger} works"
        yield (
            "the file fixes the batch at 1, as exports for inference do, and training is predicted with 1 sample "
            f"per GPU{hint}"
        )


def _params(nodes: Iterable[OpNode]) -> Iterator[tuple[int, Param]]:
    for node in nodes:
        yield from node.params
