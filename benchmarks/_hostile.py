"""Models built to exhaust time, memory or the stack: expansion, nesting, growth."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from benchmarks._fields import EXTREMES
from benchmarks._seeds import FLOAT


def _finished(nodes: list[NodeProto], functions: list[onnx.FunctionProto], stored: list[TensorProto]) -> bytes:
    graph = helper.make_graph(
        nodes, "hostile", [helper.make_tensor_value_info("x", FLOAT, [2, 2])],
        [helper.make_tensor_value_info("y", FLOAT, None)], stored,
    )  # fmt: skip
    model = ModelProto(ir_version=10, graph=graph, functions=functions)
    model.opset_import.extend([helper.make_opsetid("", 21), helper.make_opsetid("own", 1)])
    data: bytes = model.SerializeToString()
    return data


def _int64(name: str, values: int | list[int]) -> TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def doubling_functions(random: Random) -> bytes:
    """Each function calls the next two or ten times: a file of kilobytes that expands to billions."""
    times, depth = random.choice(((2, 40), (2, 60), (10, 9), (2, 12), (2, 19)))
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    made = []
    for level in range(depth):
        callee = (f"F{level + 1}", "own") if level + 1 < depth else ("Relu", "")
        names = ["a", *(f"v{i}" for i in range(times))]
        nodes = [helper.make_node(callee[0], [names[i]], [names[i + 1]], domain=callee[1]) for i in range(times)]
        made.append(helper.make_function("own", f"F{level}", ["a"], [names[-1]], nodes, opsets))
    return _finished([helper.make_node("F0", ["x"], ["y"], domain="own")], made, [])


def nested_branches(random: Random) -> bytes:
    """If within If within If, both branches full, the condition unknown.

    Assembled from bytes: protobuf refuses to build messages as deep as these.
    """
    depth = random.choice((5, 10, 20, 30, 40, 90, 3000))
    flat = helper.make_graph([helper.make_node("Neg", ["x"], ["n"])], "c", [], [onnx.ValueInfoProto(name="n")])
    simple = flat.SerializeToString()
    inner, node = simple, b""
    for level in range(depth):
        out = "y" if level == depth - 1 else f"o{level}"
        node = NodeProto(op_type="If", input=["cond"], output=[out], name=f"if{level}").SerializeToString()
        for name, graph in (("then_branch", inner), ("else_branch", inner if depth <= 10 else simple)):
            entry = AttributeProto(name=name, type=AttributeProto.GRAPH).SerializeToString()
            node += _field(5, entry + _field(6, graph))
        inner = GraphProto(name="g", output=[onnx.ValueInfoProto(name=out)]).SerializeToString() + _field(1, node)
    first = [helper.make_node("ReduceMax", ["x"], ["m"], keepdims=0), helper.make_node("Cast", ["m"], ["cond"], to=9)]
    return _finished(first, [], []) + _field(7, _field(1, node))  # fields that come again are merged


def _field(number: int, content: bytes) -> bytes:
    """A length-delimited field of the wire format."""
    length, encoded = len(content), bytearray([number << 3 | 2])
    while length > 0x7F:
        encoded.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([*encoded, length]) + content


def nested_loops(random: Random) -> bytes:
    """Loops in loops, each walked trip by trip because its carried shape changes."""
    trips = random.choice((3, 40, 500, 2**40))
    depth = random.choice((1, 2, 3, 6))
    stored = [_int64("trips", trips)]
    body: list[NodeProto] = [helper.make_node("Concat", ["v0", "v0"], ["w0"], axis=0)]
    node = NodeProto()
    for level in range(depth):
        graph = helper.make_graph(
            [*body, helper.make_node("Identity", [f"go{level}"], [f"keep{level}"])], f"l{level}",
            [onnx.ValueInfoProto(name=f"{n}{level}") for n in ("i", "go", "v")],
            [onnx.ValueInfoProto(name=f"{n}{level}") for n in ("keep", "w")],
        )  # fmt: skip
        source, out = (f"v{level + 1}", f"w{level + 1}") if level + 1 < depth else ("x", "y")
        node = helper.make_node("Loop", ["trips", "", source], [out], name=f"loop{level}", body=graph)
        body = [node]
    return _finished([node], [], stored)


def growing_content(random: Random) -> bytes:
    """Small known values multiplied again and again: their numbers, then their sizes, explode."""
    steps = random.choice((5, 30, 200, 2000))
    grow = random.choice(("Concat", "Mul", "Tile", "Expand", "Range", "Pow"))
    attributes: dict[str, Any] = {"axis": 0} if grow == "Concat" else {}
    nodes: list[NodeProto] = []
    last = "k"
    for index in range(steps):
        inputs = [last, last] if grow != "Range" else ["k0", "k1", "k1"]
        nodes.append(helper.make_node(grow, inputs, [f"k_{index}"], **attributes))
        last = f"k_{index}"
    nodes.append(helper.make_node("Reshape", ["x", last], ["y"]))
    first = random.choice(EXTREMES)
    stored = [_int64("k", [first, 2]), _int64("k0", 0), _int64("k1", first)]
    return _finished(nodes, [], stored)


def huge_products(random: Random) -> bytes:
    """Shapes of extreme sizes through operators that multiply them."""
    a, b = random.choice(EXTREMES), random.choice(EXTREMES)
    shape = _int64("k", [a, b][: random.randrange(1, 3)])
    maker = random.choice(("ConstantOfShape", "Expand", "Tile", "Reshape", "Pad", "Resize", "CenterCropPad"))
    data = [] if maker == "ConstantOfShape" else ["x", "", ""][: 3 if maker == "Resize" else 1]
    follow = random.choice(("Relu", "Softmax", "NonZero", "Flatten", "Shape", "Size", "CumSum", "Einsum", "MatMul"))
    extra = {"MatMul": ["a"], "CumSum": ["zero"]}.get(follow, [])
    attributes: dict[str, Any] = {"Einsum": {"equation": "ij->ji"}}.get(follow, {})
    nodes = [helper.make_node(maker, [*data, "k"], ["a"]),
             helper.make_node(follow, ["a", *extra], ["y"], **attributes)]  # fmt: skip
    return _finished(nodes, [], [shape, _int64("zero", 0)])


def wide_graph(random: Random) -> bytes:
    """Tens of thousands of inputs to one operator, or of readers of one value."""
    count = random.choice((1_000, 20_000))
    if random.random() < 0.5:
        return _finished([helper.make_node("Sum", ["x"] * count, ["y"])], [], [])
    nodes = [helper.make_node("Relu", ["x"], [f"r{i}"]) for i in range(count)]
    return _finished([*nodes, helper.make_node("Sum", [f"r{i}" for i in range(count)], ["y"])], [], [])


HOSTILE: tuple[Callable[[Random], bytes], ...] = (
    doubling_functions, nested_branches, nested_loops, growing_content, huge_products, huge_products, wide_graph,
)  # fmt: skip
