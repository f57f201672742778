"""Operators that move or make data without arithmetic: free views, and copies that cost bytes."""

from __future__ import annotations

from graphcost.ir import OpCost, OpNode
from graphcost.ops._backward import copy_backward, no_gradient, spread_backward
from graphcost.ops._rule import OpClass, free, read_bytes, rule, traffic

MICROSOFT = "com.microsoft"

free("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "BitCast", why="a view: no data moves")
free("ExpandDims", why="a view: no data moves", domain=MICROSOFT)
free("Shape", "Size", why="reads metadata alone")
free("Constant", why="stored with the model; its readers count the bytes")
free("Optional", "OptionalGetElement", "OptionalHasElement", why="wraps a value; no data moves")
free(
    "SequenceAt",
    "SequenceConstruct",
    "SequenceEmpty",
    "SequenceErase",
    "SequenceInsert",
    "SequenceLength",
    why="edits a list of tensors; no data moves",
)


@rule("Transpose", "Concat", "Split", "ReverseSequence", "Trilu", op_class=OpClass.COPY, backward=copy_backward)
@rule("DepthToSpace", "SpaceToDepth", "Pad", op_class=OpClass.COPY, backward=copy_backward)
@rule("Trilu", "Pad", domain=MICROSOFT, op_class=OpClass.COPY, backward=copy_backward)
@rule("Unique", domain=MICROSOFT, op_class=OpClass.COPY, backward=no_gradient)
@rule("Unique", op_class=OpClass.COPY, backward=no_gradient)
def copy(node: OpNode) -> OpCost:
    """Any shapes: inputs read once, outputs written once.

    Source: ONNX Transpose-24, Concat-13, Split-18, Pad-24 and kin.
    """
    return traffic(node)


@rule("Expand", "Tile", "Resize", "Upsample", "GridSample", op_class=OpClass.COPY, backward=spread_backward)
@rule("AffineGrid", op_class=OpClass.COPY, backward=spread_backward)
@rule("GridSample", domain=MICROSOFT, op_class=OpClass.COPY, backward=spread_backward)
def spread(node: OpNode) -> OpCost:
    """Any shapes: elements repeated or interpolated, by convention without FLOPs; dX sums all of dY.

    Source: ONNX Expand-13, Tile-13, Resize-19, GridSample-22, AffineGrid-20.
    """
    return traffic(node)


@rule("Slice", "CenterCropPad", "Compress", op_class=OpClass.COPY, backward=copy_backward)
def part(node: OpNode) -> OpCost:
    """Data at input 0, bounds after it: reads no more than it writes.

    Source: ONNX Slice-13, CenterCropPad-18, Compress-11.
    """
    written = read_bytes(*node.outputs)
    read = min(node.require(0).size_bytes, node.out.size_bytes) + read_bytes(*node.inputs[1:])
    return OpCost(0, 0, read, written)


@rule("SplitToSequence", op_class=OpClass.COPY, backward=copy_backward)
def split_to_sequence(node: OpNode) -> OpCost:
    """Data of any shape cut into a list; the pieces together are as large as the data.

    Source: ONNX SplitToSequence-24.
    """
    size_bytes = node.require(0).size_bytes
    return OpCost(0, 0, size_bytes + read_bytes(node.spec(1)), size_bytes)


@rule("ConcatFromSequence", op_class=OpClass.COPY, backward=copy_backward)
def concat_from_sequence(node: OpNode) -> OpCost:
    """A list of tensors into one; they together are as large as the output.

    Source: ONNX ConcatFromSequence-11.
    """
    return OpCost(0, 0, node.out.size_bytes, node.out.size_bytes)


@rule("ConstantOfShape", "EyeLike", "Range", op_class=OpClass.COPY, backward=no_gradient)
@rule("RandomNormal", "RandomNormalLike", "RandomUniform", op_class=OpClass.COPY, backward=no_gradient)
@rule("RandomUniformLike", op_class=OpClass.COPY, backward=no_gradient)
@rule("Range", domain=MICROSOFT, op_class=OpClass.COPY, backward=no_gradient)
def fill(node: OpNode) -> OpCost:
    """A new tensor of the output's shape: inputs give the shape, so nothing is read.

    assumed: random generators are counted by the bytes they write.
    Source: ONNX ConstantOfShape-25, EyeLike-22, Range-11, Random*-22.
    """
    return OpCost(0, 0, 0, node.out.size_bytes)


@rule("Bernoulli", "Multinomial", op_class=OpClass.COPY, backward=no_gradient)
def sample(node: OpNode) -> OpCost:
    """Probabilities of any shape to draws: read once, written once.

    Source: ONNX Bernoulli-22, Multinomial-22.
    """
    return traffic(node)
