"""Models to damage: real files where there are some, and small ones that reach every part of the reader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.helper import make_graph, make_node, make_tensor_value_info

from benchmarks._files import LIGHT

FLOAT, INT64, BOOL = int(TensorProto.FLOAT), int(TensorProto.INT64), int(TensorProto.BOOL)

MAX_FILE_BYTES = 400_000
"""Larger files are mostly weights, where damage shows nothing."""

Sizes = list[int | str | None]


def _ints(name: str, *values: int) -> TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def _scalar(name: str, value: int) -> TensorProto:
    return numpy_helper.from_array(np.array(value, np.int64), name)


def _floats(name: str, *shape: int) -> TensorProto:
    return numpy_helper.from_array(np.ones(shape, np.float32), name)


def _model(
    nodes: list[NodeProto],
    inputs: dict[str, tuple[int, Sizes]],
    output: str,
    stored: list[TensorProto],
    *,
    opset: int = 21,
    functions: list[FunctionProto] | None = None,
) -> bytes:
    graph = make_graph(
        nodes,
        "g",
        [make_tensor_value_info(name, dtype, shape) for name, (dtype, shape) in inputs.items()],
        [make_tensor_value_info(output, FLOAT, None)],
        stored,
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("own", 1)]
    made: ModelProto = helper.make_model(graph, opset_imports=opsets, ir_version=10, functions=functions or [])
    data: bytes = made.SerializeToString()
    return data


def _body(nodes: list[NodeProto], inputs: dict[str, tuple[int, Sizes]], outputs: dict[str, int]) -> GraphProto:
    return make_graph(
        nodes,
        "body",
        [make_tensor_value_info(name, dtype, shape) for name, (dtype, shape) in inputs.items()],
        [make_tensor_value_info(name, dtype, None) for name, dtype in outputs.items()],
    )


def conv_net() -> bytes:
    """Conv, BatchNormalization, pooling, Flatten, Gemm."""
    nodes = [
        make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1], strides=[2, 2], group=1, dilations=[1, 1]),
        make_node("BatchNormalization", ["a", "s", "s", "s", "s"], ["b"]),
        make_node("MaxPool", ["b"], ["c"], kernel_shape=[2, 2], strides=[2, 2]),
        make_node("ConvTranspose", ["c", "wt"], ["d"], strides=[2, 2], output_padding=[1, 1]),
        make_node("GlobalAveragePool", ["d"], ["e"]),
        make_node("Flatten", ["e"], ["f"], axis=1),
        make_node("Gemm", ["f", "g"], ["y"], transB=1),
    ]
    stored = [_floats("w", 8, 3, 3, 3), _floats("s", 8), _floats("wt", 8, 4, 2, 2), _floats("g", 10, 4)]
    return _model(nodes, {"x": (FLOAT, ["N", 3, 16, 16])}, "y", stored)


def sizes_from_values() -> bytes:
    """Every operator whose output size is a value: Reshape, Expand, Tile, Pad, Range, Slice, Resize, ..."""
    nodes = [
        make_node("Reshape", ["x", "to"], ["a"]),
        make_node("Expand", ["a", "wide"], ["b"]),
        make_node("Tile", ["b", "times"], ["c"]),
        make_node("Pad", ["c", "pads"], ["d"]),
        make_node("Slice", ["d", "starts", "ends", "axes", "steps"], ["e"]),
        make_node("ConstantOfShape", ["shape"], ["f"]),
        make_node("Range", ["zero", "limit", "delta"], ["g"]),
        make_node("Cast", ["g"], ["h"], to=FLOAT),
        make_node("Unsqueeze", ["h", "axes1"], ["i"]),
        make_node("Resize", ["e", "", "", "sizes"], ["j"], mode="nearest"),
        make_node("Split", ["j", "parts"], ["k", "l"], axis=1),
        make_node("TopK", ["k", "count"], ["m", "n"], axis=1),
        make_node("OneHot", ["n", "depth", "onoff"], ["o"]),
        make_node("Gather", ["f", "n"], ["p"]),
        make_node("ReduceSum", ["o"], ["q"], keepdims=0),
        make_node("ReduceSum", ["p"], ["r"], keepdims=0),
        make_node("ReduceSum", ["i"], ["s"], keepdims=0),
        make_node("Sum", ["q", "r", "s"], ["y"]),
    ]
    stored = [
        _ints("to", 4, -1), _ints("wide", 2, 4, 6), _ints("times", 1, 2, 1), _ints("pads", 0, 1, 1, 0, 1, 1),
        _ints("starts", 0), _ints("ends", 9), _ints("axes", 1), _ints("steps", 2), _ints("shape", 12, 5),
        _ints("axes1", 0), _ints("sizes", 2, 8, 10), _ints("parts", 4, 4), _ints("count", 2), _ints("depth", 5),
        _scalar("zero", 0), _scalar("limit", 7), _scalar("delta", 1), _floats("onoff", 2),
    ]  # fmt: skip
    return _model(nodes, {"x": (FLOAT, [2, 12])}, "y", stored)


def shape_arithmetic() -> bytes:
    """Shape -> Gather -> arithmetic -> Concat -> Reshape, as exporters write it."""
    nodes = [
        make_node("Shape", ["x"], ["s"]),
        make_node("Gather", ["s", "first"], ["b"]),
        make_node("Mul", ["b", "two"], ["c"]),
        make_node("Div", ["c", "two"], ["d"]),
        make_node("Mod", ["d", "big"], ["e"]),
        make_node("Pow", ["e", "one"], ["f"]),
        make_node("Concat", ["f", "rest"], ["t"], axis=0),
        make_node("Reshape", ["x", "t"], ["r"]),
        make_node("MatMul", ["r", "w"], ["y"]),
    ]
    stored = [_ints("first", 0), _ints("two", 2), _ints("one", 1), _ints("big", 1000), _ints("rest", 3, 4),
              _floats("w", 4, 5)]  # fmt: skip
    return _model(nodes, {"x": (FLOAT, ["batch", 12])}, "y", stored)


def control_flow() -> bytes:
    """If on an input, Loop with a trip count, Scan."""
    then = _body([make_node("MatMul", ["x", "w"], ["t"])], {}, {"t": FLOAT})
    other = _body([make_node("Relu", ["x"], ["e"])], {}, {"e": FLOAT})
    turn = _body(
        [make_node("MatMul", ["v", "w"], ["vo"]), make_node("Identity", ["go"], ["goo"]),
         make_node("Identity", ["vo"], ["each"])],
        {"i": (INT64, []), "go": (BOOL, []), "v": (FLOAT, [4, 4])},
        {"goo": BOOL, "vo": FLOAT, "each": FLOAT},
    )  # fmt: skip
    step = _body(
        [make_node("Add", ["h", "row"], ["ho"]), make_node("Identity", ["ho"], ["out"])],
        {"h": (FLOAT, [4]), "row": (FLOAT, [4])}, {"ho": FLOAT, "out": FLOAT},
    )  # fmt: skip
    nodes = [
        make_node("If", ["cond"], ["a"], name="if", then_branch=then, else_branch=other),
        make_node("Loop", ["trips", "", "a"], ["b", "scanned"], name="loop", body=turn),
        make_node("Scan", ["start", "b"], ["c", "d"], name="scan", body=step, num_scan_inputs=1),
        make_node("Add", ["d", "b"], ["y"]),
    ]
    stored = [_floats("w", 4, 4), _ints("trips", 10), _floats("start", 4)]
    return _model(nodes, {"x": (FLOAT, [4, 4]), "cond": (BOOL, [])}, "y", stored)


def growing_loop() -> bytes:
    """A Loop whose carried shape grows, and a sequence: both are walked trip by trip."""
    turn = _body(
        [make_node("Concat", ["v", "v"], ["vo"], axis=0), make_node("Identity", ["go"], ["goo"])],
        {"i": (INT64, []), "go": (BOOL, []), "v": (FLOAT, None)},  # type: ignore[dict-item]
        {"goo": BOOL, "vo": FLOAT},
    )
    nodes = [
        make_node("SplitToSequence", ["x"], ["parts"], axis=0, keepdims=0),
        make_node("SequenceAt", ["parts", "zero"], ["row"]),
        make_node("Loop", ["trips", "", "row"], ["b"], name="loop", body=turn),
        make_node("SequenceConstruct", ["b", "b"], ["seq"]),
        make_node("ConcatFromSequence", ["seq"], ["y"], axis=0),
    ]
    return _model(nodes, {"x": (FLOAT, [4, 4])}, "y", [_ints("trips", 3), _ints("zero", 0)])


def functions() -> bytes:
    """Model-local functions that call each other, one with an attribute reference."""
    leaf = helper.make_function(
        "own", "Leaf", ["a", "b"], ["c"], [make_node("Gemm", ["a", "b"], ["c"])], [helper.make_opsetid("", 21)],
        attributes=["transB"],
    )  # fmt: skip
    leaf.node[0].attribute.add(name="transB", type=2, ref_attr_name="transB")
    twice = helper.make_function(
        "own", "Twice", ["a", "b"], ["d"],
        [make_node("Leaf", ["a", "b"], ["c"], domain="own", transB=1),
         make_node("Leaf", ["c", "b"], ["d"], domain="own")],
        [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)],
    )  # fmt: skip
    nodes = [make_node("Twice", ["x", "w"], ["z"], domain="own"), make_node("Twice", ["z", "w"], ["y"], domain="own")]
    return _model(nodes, {"x": (FLOAT, [2, 4])}, "y", [_floats("w", 4, 4)], functions=[leaf, twice])


def recurrent_attention() -> bytes:
    """LSTM, Einsum, attention of both domains, normalisations, quantised products."""
    nodes = [
        make_node("LSTM", ["x", "wl", "rl"], ["h", "", ""], hidden_size=4, direction="bidirectional"),
        make_node("Transpose", ["h"], ["ht"], perm=[2, 0, 1, 3]),
        make_node("Reshape", ["ht", "to"], ["f"]),
        make_node("LayerNormalization", ["f", "ln"], ["n"], axis=-1),
        make_node("Attention", ["n", "wa", "ba"], ["a"], domain="com.microsoft", num_heads=2),
        make_node("SkipLayerNormalization", ["a", "n", "ln"], ["k"], domain="com.microsoft"),
        make_node("MatMulNBits", ["k", "wq", "sq"], ["m"], domain="com.microsoft", K=8, N=16, bits=4, block_size=16),
        make_node("Einsum", ["m", "we"], ["e"], equation="bsk,kn->bsn"),
        make_node("Softmax", ["e"], ["o"], axis=-1),
        make_node("FancyOp", ["o"], ["p"], domain="own"),
        make_node("Add", ["o", "o"], ["y"]),
    ]
    packed = numpy_helper.from_array(np.zeros((16, 1, 8), np.uint8), "wq")
    stored = [_floats("wl", 2, 16, 8), _floats("rl", 2, 16, 4), _ints("to", 2, 6, 8), _floats("ln", 8),
              _floats("wa", 8, 24), _floats("ba", 24), packed, _floats("sq", 16), _floats("we", 16, 4)]  # fmt: skip
    return _model(nodes, {"x": (FLOAT, [6, 2, 8])}, "y", stored)


def quantised_sparse() -> bytes:
    """QDQ Conv, a sparse initializer, external data, Constant in every form, data-dependent sizes."""
    nodes = [
        make_node("DequantizeLinear", ["wq", "scale", "zero"], ["w"], axis=0),
        make_node("Conv", ["x", "w"], ["c"]),
        make_node("MatMul", ["c", "outside"], ["d"]),
        make_node("MatMul", ["d", "sparse"], ["e"]),
        make_node("Constant", [], ["k"], value_floats=[1.0, 2.0, 3.0]),
        make_node("Constant", [], ["k1"], value_ints=[1, 2]),
        make_node("Mul", ["e", "k"], ["f"]),
        make_node("NonZero", ["f"], ["g"]),
        make_node("Compress", ["f", "keep"], ["h"], axis=3),
        make_node("Cast", ["g"], ["i"], to=FLOAT),
        make_node("ReduceSum", ["i"], ["j"], keepdims=0),
        make_node("Add", ["h", "j"], ["y"]),
    ]
    outside = TensorProto(name="outside", data_type=FLOAT, dims=[8, 5], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "w.bin"), ("offset", "0"), ("length", "160")):
        outside.external_data.add(key=key, value=value)
    sparse = helper.make_sparse_tensor(_floats("sparse", 2), _ints("", 0, 7), [5, 3])
    stored = [
        numpy_helper.from_array(np.ones((4, 3, 1, 1), np.int8), "wq"), _floats("scale", 4),
        numpy_helper.from_array(np.zeros(4, np.int8), "zero"), outside,
        numpy_helper.from_array(np.array([True, False, True]), "keep"),
    ]  # fmt: skip
    model = ModelProto.FromString(_model(nodes, {"x": (FLOAT, [1, 3, 8, 8])}, "y", stored))
    model.graph.sparse_initializer.append(sparse)
    data: bytes = model.SerializeToString()
    return data


BUILT: tuple[Callable[[], bytes], ...] = (
    conv_net, sizes_from_values, shape_arithmetic, control_flow, growing_loop, functions, recurrent_attention,
    quantised_sparse,
)  # fmt: skip


def seeds(folders: tuple[Path, ...] = ()) -> list[tuple[str, bytes]]:
    """(name, content): built models, the onnx wheel's light models, ONNX files of ``folders``."""
    found = [(make.__name__, make()) for make in BUILT]
    found += [(path.name, path.read_bytes()) for path in sorted(LIGHT.glob("*.onnx"))]
    for folder in folders:
        for path in sorted(folder.rglob("*.onnx")):
            if path.stat().st_size <= MAX_FILE_BYTES:
                found.append((f"{folder.name}/{path.relative_to(folder)}", path.read_bytes()))
    return found
