"""ONNX files that the benchmarks measure on, made from nothing (random weights, fixed seed)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


class Builder:
    """Nodes and initializers under construction; every value gets a name of its own."""

    def __init__(self, *, external: str | None = None) -> None:
        self.nodes: list[NodeProto] = []
        self.stored: list[TensorProto] = []
        self._external = external
        self._offset = 0
        self._random = np.random.default_rng(0)

    def weight(self, name: str, *shape: int) -> str:
        """A float32 initializer: random numbers inside, or a place in an absent side file."""
        if self._external is None:
            values = self._random.standard_normal(shape, dtype=np.float32) * np.float32(0.02)
            self.stored.append(numpy_helper.from_array(values, name))
            return name
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape)
        tensor.data_location = TensorProto.EXTERNAL
        size_bytes = 4 * int(np.prod(shape, dtype=object))
        where = {"location": self._external, "offset": str(self._offset), "length": str(size_bytes)}
        self._offset += size_bytes
        for key, value in where.items():
            tensor.external_data.add(key=key, value=value)
        self.stored.append(tensor)
        return name

    def constant(self, name: str, values: Sequence[float] | int | float, dtype: str = "int64") -> str:
        """A small initializer."""
        array: npt.NDArray[np.generic] = np.array(values, dtype)
        self.stored.append(numpy_helper.from_array(array, name))
        return name

    def op(self, op_type: str, inputs: Sequence[str], name: str, **attributes: Any) -> str:
        """One operator with one output, called ``name`` as the operator is."""
        self.nodes.append(helper.make_node(op_type, list(inputs), [f"{name}_out"], name=name, **attributes))
        return f"{name}_out"

    def linear(self, x: str, name: str, k: int, n: int, *, bias: bool = True) -> str:
        """``[*, k] @ [k, n] + [n]`` as exporters write it."""
        product = self.op("MatMul", [x, self.weight(f"{name}.weight", k, n)], f"{name}/MatMul")
        return self.op("Add", [product, self.weight(f"{name}.bias", n)], f"{name}/Add") if bias else product

    def save(
        self, path: Path, inputs: dict[str, tuple[int, list[int | str]]], output: str, *, opset: int = 17
    ) -> Path:
        """Write the model with the given inputs (name -> element type, shape) and one float output."""
        graph = helper.make_graph(
            self.nodes,
            path.stem,
            [helper.make_tensor_value_info(name, dtype, shape) for name, (dtype, shape) in inputs.items()],
            [onnx.ValueInfoProto(name=output, type=onnx.TypeProto(tensor_type={"elem_type": TensorProto.FLOAT}))],
            self.stored,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        path.write_bytes(model.SerializeToString())
        return path


def resnet50(path: Path) -> Path:
    """The onnx wheel's light ResNet-50 with its 102 MB of weights inside, as random raw data."""
    model = onnx.load(LIGHT / "light_resnet50.onnx")
    graph = model.graph
    shapes = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    random = np.random.default_rng(0)
    kept: list[NodeProto] = []
    made: list[TensorProto] = []
    for node in graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        dims = [int(d) for d in shapes[node.input[0]]]
        values = random.standard_normal(dims, dtype=np.float32) * np.float32(0.02)
        made.append(numpy_helper.from_array(values, node.output[0]))
    used = {name for node in kept for name in node.input}
    made += [t for t in graph.initializer if t.name in used]
    stored = {tensor.name for tensor in made} | set(shapes)
    clean = GraphProto(name=graph.name, node=kept, initializer=made, output=graph.output)
    clean.input.extend(info for info in graph.input if info.name not in stored)
    path.write_bytes(ModelProto(ir_version=8, opset_import=model.opset_import, graph=clean).SerializeToString())
    return path


BERT_MACS = 12 * (4 * 128 * 768 * 768 + 2 * 128 * 128 * 768 + 2 * 128 * 768 * 3072) + 768 * 768
BERT_PARAMS = (30522 + 512 + 2 + 2) * 768 + 12 * (4 * 768 * 769 + 2 * 768 * 3072 + 3072 + 768 + 4 * 768) + 768 * 769


def bert_base(path: Path) -> Path:
    """BERT-base on 1 x 128 tokens with 438 MB of weights inside; Reshape targets computed from Shape.

    Source: Devlin et al. 2018 (12 layers, hidden 768, 12 heads, feed-forward 3072, vocabulary
    30522), in the operators that exporters write.
    """
    b = Builder()
    hidden = 768
    for index, value in enumerate((0, 1)):
        b.constant(f"index{index}", value)
    b.constant("axis0", [0])
    b.constant("heads", [12, 64])
    b.constant("width", [hidden])
    b.constant("eight", 8.0, "float32")
    b.constant("sqrt2", 1.4142135, "float32")
    b.constant("one", 1.0, "float32")
    b.constant("half", 0.5, "float32")
    b.constant("lowest", -1e4, "float32")
    words = b.op("Gather", [b.weight("embeddings.word", 30522, hidden), "input_ids"], "embeddings/word")
    length = b.op("Gather", [b.op("Shape", ["input_ids"], "embeddings/Shape"), "index1"], "embeddings/length")
    span = b.op("Range", ["index0", length, "index1"], "embeddings/Range")
    places = b.op("Gather", [b.weight("embeddings.position", 512, hidden), span], "embeddings/position")
    kinds = b.op("Gather", [b.weight("embeddings.type", 2, hidden), "token_type_ids"], "embeddings/type")
    x = b.op("Add", [b.op("Add", [words, kinds], "embeddings/Add"), places], "embeddings/Add_1")
    x = _layer_norm(b, x, "embeddings/norm", hidden)
    b.constant("mask_axes", [1, 2])
    mask = b.op("Unsqueeze", ["attention_mask", "mask_axes"], "mask/Unsqueeze")
    mask = b.op("Cast", [mask], "mask/Cast", to=TensorProto.FLOAT)
    mask = b.op("Mul", [b.op("Sub", ["one", mask], "mask/Sub"), "lowest"], "mask/Mul")
    for layer in range(12):
        x = _bert_layer(b, x, mask, f"layer.{layer}", hidden)
    first = b.op("Gather", [x, "index0"], "pooler/Gather", axis=1)
    pooled = b.op("Tanh", [b.op("Gemm", [first, b.weight("pooler.w", hidden, hidden), b.weight("pooler.b", hidden)],
                                "pooler/Gemm")], "pooler/Tanh")  # fmt: skip
    tokens: tuple[int, list[int | str]] = (int(TensorProto.INT64), [1, 128])
    return b.save(path, dict.fromkeys(("input_ids", "attention_mask", "token_type_ids"), tokens), pooled)


def _layer_norm(b: Builder, x: str, name: str, hidden: int) -> str:
    scale, bias = b.weight(f"{name}.scale", hidden), b.weight(f"{name}.bias", hidden)
    return b.op("LayerNormalization", [x, scale, bias], name, axis=-1, epsilon=1e-12)


def _leading(b: Builder, x: str, tail: str, name: str) -> str:
    """A Reshape target: the two leading sizes of ``x``, then ``tail``."""
    shape = b.op("Shape", [x], f"{name}/Shape")
    sizes = [
        b.op("Unsqueeze", [b.op("Gather", [shape, f"index{i}"], f"{name}/Gather_{i}"), "axis0"], f"{name}/size_{i}")
        for i in (0, 1)
    ]
    return b.op("Concat", [*sizes, tail], f"{name}/Concat", axis=0)


def _bert_layer(b: Builder, x: str, mask: str, name: str, hidden: int) -> str:
    heads = {}
    for part, order in (("query", (0, 2, 1, 3)), ("key", (0, 2, 3, 1)), ("value", (0, 2, 1, 3))):
        made = b.linear(x, f"{name}/{part}", hidden, hidden)
        made = b.op("Reshape", [made, _leading(b, made, "heads", f"{name}/{part}")], f"{name}/{part}/Reshape")
        heads[part] = b.op("Transpose", [made], f"{name}/{part}/Transpose", perm=list(order))
    scores = b.op("MatMul", [heads["query"], heads["key"]], f"{name}/scores")
    scores = b.op("Add", [b.op("Div", [scores, "eight"], f"{name}/Div"), mask], f"{name}/masked")
    context = b.op(
        "MatMul", [b.op("Softmax", [scores], f"{name}/Softmax", axis=-1), heads["value"]], f"{name}/context"
    )
    context = b.op("Transpose", [context], f"{name}/Transpose", perm=[0, 2, 1, 3])
    context = b.op("Reshape", [context, _leading(b, context, "width", f"{name}/merge")], f"{name}/merge/Reshape")
    attended = b.linear(context, f"{name}/output", hidden, hidden)
    x = _layer_norm(b, b.op("Add", [attended, x], f"{name}/residual"), f"{name}/norm", hidden)
    inner = b.linear(x, f"{name}/up", hidden, 4 * hidden)
    gate = b.op("Erf", [b.op("Div", [inner, "sqrt2"], f"{name}/gelu/Div")], f"{name}/gelu/Erf")
    gate = b.op("Mul", [inner, b.op("Add", [gate, "one"], f"{name}/gelu/Add")], f"{name}/gelu/Mul")
    down = b.linear(b.op("Mul", [gate, "half"], f"{name}/gelu/Mul_1"), f"{name}/down", 4 * hidden, hidden)
    return _layer_norm(b, b.op("Add", [down, x], f"{name}/residual_1"), f"{name}/norm_1", hidden)


def mixed_chain(path: Path, ops: int, width: int = 8) -> Path:
    """``ops`` operators in a row, MatMul, Add, Relu, LayerNormalization in turn, every name distinct."""
    b = Builder()
    x = "x"
    for index in range(ops):
        name = f"block_{index // 4}/op_{index}"
        match index % 4:
            case 0:
                x = b.op("MatMul", [x, b.weight(f"w{index}", width, width)], name)
            case 1:
                x = b.op("Add", [x, b.weight(f"w{index}", width)], name)
            case 2:
                x = b.op("Relu", [x], name)
            case _:
                x = _layer_norm(b, x, name, width)
    return b.save(path, {"x": (int(TensorProto.FLOAT), [4, width])}, x)


DECODER_LAYERS, DECODER_HIDDEN, DECODER_FFN, DECODER_VOCAB = 80, 8192, 28672, 128256
DECODER_HEADS, DECODER_KV_HEADS, DECODER_HEAD = 64, 8, 128
DECODER_PARAMS = (
    2 * DECODER_VOCAB * DECODER_HIDDEN
    + DECODER_HIDDEN
    + DECODER_LAYERS
    * (
        2 * DECODER_HIDDEN * DECODER_HIDDEN
        + 2 * DECODER_HIDDEN * DECODER_KV_HEADS * DECODER_HEAD
        + 3 * DECODER_HIDDEN * DECODER_FFN
        + 2 * DECODER_HIDDEN
    )
)


def decoder_70b(path: Path) -> Path:
    """A decoder of 70.6 billion parameters in primitive operators; its 282 GB of weights are absent.

    Source: Grattafiori et al. 2024, Table 3 (80 layers, hidden 8192, 64 query and 8 key/value
    heads, feed-forward 28672, vocabulary 128256). Batch and length are open.
    """
    b = Builder(external="weights.bin")
    for index in (0, 1):
        b.constant(f"index{index}", index)
    b.constant("axis0", [0])
    b.constant("axis2", [2])
    b.constant("heads", [DECODER_HEADS, DECODER_HEAD])
    b.constant("kv_heads", [DECODER_KV_HEADS, DECODER_HEAD])
    b.constant("width", [DECODER_HIDDEN])
    b.constant("last", [-1])
    b.constant("start", [0])
    b.constant("middle", [DECODER_HEAD // 2])
    b.constant("end", [2**63 - 1])
    b.constant("groups", [1, 1, DECODER_HEADS // DECODER_KV_HEADS, 1, 1])
    b.constant("merged", [0, DECODER_HEADS, -1, DECODER_HEAD])
    b.constant("two", 2.0, "float32")
    b.constant("epsilon", 1e-5, "float32")
    b.constant("scale", DECODER_HEAD**0.5, "float32")
    x = b.op("Gather", [b.weight("embed", DECODER_VOCAB, DECODER_HIDDEN), "input_ids"], "embed/Gather")
    for layer in range(DECODER_LAYERS):
        x = _decoder_layer(b, x, f"layers.{layer}")
    x = b.linear(_rms_norm(b, x, "norm"), "head", DECODER_HIDDEN, DECODER_VOCAB, bias=False)
    open_shape: list[int | str] = ["batch", "length"]
    inputs: dict[str, tuple[int, list[int | str]]] = {
        "input_ids": (int(TensorProto.INT64), open_shape),
        "cos": (int(TensorProto.FLOAT), ["length", DECODER_HEAD]),
        "sin": (int(TensorProto.FLOAT), ["length", DECODER_HEAD]),
        "mask": (int(TensorProto.FLOAT), ["length", "length"]),
    }
    return b.save(path, inputs, x)


def _rms_norm(b: Builder, x: str, name: str) -> str:
    mean = b.op("ReduceMean", [b.op("Pow", [x, "two"], f"{name}/Pow")], f"{name}/ReduceMean", axes=[-1])
    root = b.op("Sqrt", [b.op("Add", [mean, "epsilon"], f"{name}/Add")], f"{name}/Sqrt")
    return b.op(
        "Mul", [b.weight(f"{name}.weight", DECODER_HIDDEN), b.op("Div", [x, root], f"{name}/Div")], f"{name}/Mul"
    )


def _rotary(b: Builder, x: str, name: str) -> str:
    left = b.op("Slice", [x, "start", "middle", "last"], f"{name}/Slice")
    right = b.op("Neg", [b.op("Slice", [x, "middle", "end", "last"], f"{name}/Slice_1")], f"{name}/Neg")
    turned = b.op("Mul", [b.op("Concat", [right, left], f"{name}/Concat", axis=-1), "sin"], f"{name}/Mul_1")
    return b.op("Add", [b.op("Mul", [x, "cos"], f"{name}/Mul"), turned], f"{name}/Add")


def _repeated(b: Builder, x: str, name: str) -> str:
    """Key or value heads repeated for the query heads that share them."""
    x = b.op("Unsqueeze", [x, "axis2"], f"{name}/Unsqueeze")
    return b.op("Reshape", [b.op("Expand", [x, "groups"], f"{name}/Expand"), "merged"], f"{name}/Reshape")


def _decoder_layer(b: Builder, x: str, name: str) -> str:
    normed = _rms_norm(b, x, f"{name}/input_norm")
    parts = {}
    for part, target, heads in (("q", "heads", 64), ("k", "kv_heads", 8), ("v", "kv_heads", 8)):
        made = b.linear(normed, f"{name}/{part}", DECODER_HIDDEN, heads * DECODER_HEAD, bias=False)
        made = b.op("Reshape", [made, _leading(b, made, target, f"{name}/{part}")], f"{name}/{part}/Reshape")
        parts[part] = b.op("Transpose", [made], f"{name}/{part}/Transpose", perm=[0, 2, 1, 3])
    query = _rotary(b, parts["q"], f"{name}/q/rotary")
    key = _repeated(b, _rotary(b, parts["k"], f"{name}/k/rotary"), f"{name}/k/repeat")
    value = _repeated(b, parts["v"], f"{name}/v/repeat")
    scores = b.op("MatMul", [query, b.op("Transpose", [key], f"{name}/kt", perm=[0, 1, 3, 2])], f"{name}/scores")
    scores = b.op("Add", [b.op("Div", [scores, "scale"], f"{name}/Div"), "mask"], f"{name}/masked")
    context = b.op("MatMul", [b.op("Softmax", [scores], f"{name}/Softmax", axis=-1), value], f"{name}/context")
    context = b.op("Transpose", [context], f"{name}/Transpose", perm=[0, 2, 1, 3])
    context = b.op("Reshape", [context, _leading(b, context, "width", f"{name}/merge")], f"{name}/merge/Reshape")
    out = b.linear(context, f"{name}/o", DECODER_HIDDEN, DECODER_HIDDEN, bias=False)
    x = b.op("Add", [x, out], f"{name}/residual")
    normed = _rms_norm(b, x, f"{name}/post_norm")
    gate = b.linear(normed, f"{name}/gate", DECODER_HIDDEN, DECODER_FFN, bias=False)
    gate = b.op("Mul", [gate, b.op("Sigmoid", [gate], f"{name}/Sigmoid")], f"{name}/silu")
    up = b.linear(normed, f"{name}/up", DECODER_HIDDEN, DECODER_FFN, bias=False)
    down = b.linear(b.op("Mul", [gate, up], f"{name}/gated"), f"{name}/down", DECODER_FFN, DECODER_HIDDEN, bias=False)
    return b.op("Add", [x, down], f"{name}/residual_1")
