"""Damage to single fields of a ``ModelProto``: sizes, types, values, names, attributes, structure."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from benchmarks._seeds import FLOAT, INT64

EXTREMES = (
    0, 1, -1, 2, -2, 7, 63, 64, 255, 65_536, 2**31 - 1, 2**31, -(2**31), 2**32, 2**40, 2**53, 2**60, 2**62,
    2**63 - 1, -(2**63), -(2**62), 10**9, 10**18,
)  # fmt: skip
"""Sizes and values at the edges of what integers of any width hold."""


def _graphs(graph: GraphProto) -> list[GraphProto]:
    found = [graph]
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                found += _graphs(attribute.g)
    return found


def _node(random: Random, model: ModelProto) -> NodeProto:
    nodes = [node for graph in _graphs(model.graph) for node in graph.node]
    nodes += [node for function in model.functions for node in function.node]
    node: NodeProto = random.choice(nodes)
    return node


def _any_name(random: Random, model: ModelProto) -> str:
    names = [name for node in model.graph.node for name in (*node.input, *node.output)]
    name: str = random.choice([*names, "", "nothing", "a\nb", "x" * 10_000, "\x00"])
    return name


def size(random: Random, model: ModelProto) -> None:
    infos = [*model.graph.input, *model.graph.value_info, *model.graph.output]
    dims = random.choice(infos).type.tensor_type.shape.dim
    dim = random.choice(dims)
    if random.random() < 0.2:
        dim.dim_param = random.choice(("N", "seq", "", "-1", "a\nb"))
    else:
        dim.dim_value = random.choice(EXTREMES)


def rank(random: Random, model: ModelProto) -> None:
    dims = random.choice([*model.graph.input, *model.graph.value_info]).type.tensor_type.shape.dim
    if random.random() < 0.5:
        del dims[random.randrange(len(dims))]
    else:
        for _ in range(random.choice((1, 2, 30))):
            dims.add(dim_value=random.choice(EXTREMES))


def input_type(random: Random, model: ModelProto) -> None:
    info = random.choice([*model.graph.input, *model.graph.output])
    if random.random() < 0.3:
        info.type.Clear()
        random.choice((
            lambda: info.type.sequence_type.elem_type.tensor_type.SetInParent(),
            lambda: info.type.optional_type.elem_type.tensor_type.SetInParent(),
            lambda: info.type.map_type.SetInParent(),
            lambda: None,
        ))()  # fmt: skip
    else:
        info.type.tensor_type.elem_type = random.choice((*range(30), 99, -1))


def stored_size(random: Random, model: ModelProto) -> None:
    tensor = random.choice(model.graph.initializer)
    if tensor.dims and random.random() < 0.7:
        tensor.dims[random.randrange(len(tensor.dims))] = random.choice(EXTREMES)
    else:
        tensor.dims.append(random.choice(EXTREMES))


def stored_type(random: Random, model: ModelProto) -> None:
    random.choice(model.graph.initializer).data_type = random.choice((*range(30), 99, -1))


def stored_values(random: Random, model: ModelProto) -> None:
    """Extreme numbers in a small integer tensor: targets, sizes, axes, trip counts."""
    small = [t for t in model.graph.initializer if t.data_type == INT64 and len(t.dims) <= 1]
    tensor = random.choice(small)
    values = numpy_helper.to_array(tensor).copy().reshape(-1)
    for _ in range(random.choice((1, 1, 2, 9))):
        values[random.randrange(len(values))] = random.choice(EXTREMES)
    if random.random() < 0.2:
        values = values.repeat(random.choice((2, 20)))
    made = numpy_helper.from_array(values.reshape([len(values)] if tensor.dims else []), tensor.name)
    tensor.CopyFrom(made)


def stored_data(random: Random, model: ModelProto) -> None:
    tensor = random.choice(model.graph.initializer)
    tensor.raw_data = random.randbytes(random.choice((0, 1, 7, 8, 64)))
    if random.random() < 0.3:
        tensor.int64_data.extend(random.choices(EXTREMES, k=3))
    if random.random() < 0.3:
        tensor.data_location = TensorProto.EXTERNAL
        for key in ("location", "offset", "length"):
            value = random.choice(
                ("../../etc/passwd", "/dev/zero", "a\x00b", "x" * 5000, "-1", "99999999999999999999", "")
            )
            tensor.external_data.add(key=key, value=value)


def stored_sparse(random: Random, model: ModelProto) -> None:
    values = helper.make_tensor(random.choice(model.graph.initializer).name, FLOAT, [1], [1.0])
    sparse = model.graph.sparse_initializer.add(dims=random.choices(EXTREMES, k=random.randrange(4)))
    sparse.values.CopyFrom(values)
    if random.random() < 0.5:
        sparse.indices.dims.append(random.choice(EXTREMES))


def removed_stored(random: Random, model: ModelProto) -> None:
    del model.graph.initializer[random.randrange(len(model.graph.initializer))]


def removed_node(random: Random, model: ModelProto) -> None:
    del model.graph.node[random.randrange(len(model.graph.node))]


def repeated_node(random: Random, model: ModelProto) -> None:
    model.graph.node.add().CopyFrom(_node(random, model))


def shuffled_nodes(random: Random, model: ModelProto) -> None:
    nodes = [NodeProto.FromString(node.SerializeToString()) for node in model.graph.node]
    random.shuffle(nodes)
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def renamed_input(random: Random, model: ModelProto) -> None:
    """A wrong value, a later one (a cycle), none, or a missing input."""
    node = _node(random, model)
    node.input[random.randrange(len(node.input))] = _any_name(random, model)


def removed_input(random: Random, model: ModelProto) -> None:
    node = _node(random, model)
    del node.input[random.randrange(len(node.input)) :]


def added_input(random: Random, model: ModelProto) -> None:
    _node(random, model).input.extend([_any_name(random, model)] * random.choice((1, 2, 40)))


def swapped_inputs(random: Random, model: ModelProto) -> None:
    node = _node(random, model)
    i, j = random.randrange(len(node.input)), random.randrange(len(node.input))
    node.input[i], node.input[j] = node.input[j], node.input[i]


def renamed_output(random: Random, model: ModelProto) -> None:
    node = _node(random, model)
    node.output[random.randrange(len(node.output))] = _any_name(random, model)


def outputs(random: Random, model: ModelProto) -> None:
    node = _node(random, model)
    if random.random() < 0.5:
        del node.output[:]
    else:
        node.output.extend(["", "extra"])


def graph_output(random: Random, model: ModelProto) -> None:
    random.choice(model.graph.output).name = _any_name(random, model)


def op_type(random: Random, model: ModelProto) -> None:
    schemas = onnx.defs.get_all_schemas()
    names = sorted({schema.name for schema in schemas if schema.domain in ("", "ai.onnx")})
    contrib = ["Attention", "MatMulNBits", "GroupQueryAttention", "SkipLayerNormalization", "FusedMatMul", "QMoE"]
    node = _node(random, model)
    node.op_type = random.choice([*names, *contrib, "Nothing", "", "x" * 3000, "\x00"])


def domain(random: Random, model: ModelProto) -> None:
    _node(random, model).domain = random.choice(("", "ai.onnx", "com.microsoft", "own", "ai.onnx.ml", "x\ny"))


def versions(random: Random, model: ModelProto) -> None:
    if random.random() < 0.5 and model.opset_import:
        random.choice(model.opset_import).version = random.choice((*range(-1, 30), 1000, 2**62))
    elif random.random() < 0.5:
        del model.opset_import[:]
    else:
        model.ir_version = random.choice((0, 1, 3, 4, 10, 13, 99, 2**31, -1))


def attribute(random: Random, model: ModelProto) -> None:
    """An extreme value in an attribute of the type it has."""
    entry = random.choice(_node(random, model).attribute)
    entry.i = random.choice(EXTREMES)
    if entry.ints:
        entry.ints[random.randrange(len(entry.ints))] = random.choice(EXTREMES)
        if random.random() < 0.2:
            del entry.ints[random.randrange(len(entry.ints)) :]
    entry.f = random.choice((0.0, -1.0, float("nan"), float("inf"), 1e38))
    entry.s = random.choice(
        (entry.s, b"", b"\xff\xfe", b"bsk,kn->bsn", b"...ii,->", b"x" * 9999, b"a,a,a,a,a->", b"->")
    )


def attribute_type(random: Random, model: ModelProto) -> None:
    entry = random.choice(_node(random, model).attribute)
    entry.type = random.choice(AttributeProto.AttributeType.values())


def attribute_name(random: Random, model: ModelProto) -> None:
    entry = random.choice(_node(random, model).attribute)
    entry.name = random.choice(("axis", "to", "perm", "num_heads", "", "axis\n", "value", "body", "then_branch"))


ATTRIBUTES = (
    "axis", "axes", "to", "perm", "group", "hidden_size", "num_heads", "kv_num_heads", "value", "keepdims",
    "auto_pad", "kernel_shape", "strides", "block_size", "K", "N", "num_outputs",
)  # fmt: skip


def attribute_added(random: Random, model: ModelProto) -> None:
    name = random.choice(ATTRIBUTES)
    value = random.choice((random.choice(EXTREMES), [random.choice(EXTREMES)], [], b"NOTSET", 1.5))
    made = helper.make_attribute(name, value, attr_type=AttributeProto.INTS if value == [] else None)
    _node(random, model).attribute.append(made)


def attribute_removed(random: Random, model: ModelProto) -> None:
    node = _node(random, model)
    del node.attribute[random.randrange(len(node.attribute))]


def attribute_reference(random: Random, model: ModelProto) -> None:
    random.choice(_node(random, model).attribute).ref_attr_name = random.choice(("transB", "nothing", ""))


def function(random: Random, model: ModelProto) -> None:
    """A function for an operator that is used: recursion, wrong arity, no nodes."""
    target = _node(random, model)
    made = model.functions.add(name=target.op_type, domain=target.domain)
    made.input.extend(["a", "b"][: random.randrange(3)])
    made.output.extend(["c", "d"][: random.randrange(3)])
    if random.random() < 0.8:
        made.node.add(op_type=random.choice(("Add", target.op_type)), input=["a", "b"], output=["c"])


def subgraph(random: Random, model: ModelProto) -> None:
    """Inputs, outputs or nodes of a body added or taken away."""
    body = random.choice(_graphs(model.graph)[1:])
    field = random.choice((body.input, body.output, body.node, body.value_info))
    if len(field) and random.random() < 0.6:
        del field[random.randrange(len(field))]
    else:
        field.add(name="extra")


def torch_metadata(random: Random, model: ModelProto) -> None:
    text = random.choice(
        ("[" * 3000, "['', 'a.b', 'c']", "[" + "1," * 2000 + "]", "{", "9" * 4000, "-" * 3000 + "1", "[None]")
    )
    for key in ("pkg.torch.onnx.name_scopes", "pkg.torch.onnx.stack_trace"):
        _node(random, model).metadata_props.add(key=key, value=text)


FIELDS: tuple[Callable[[Random, ModelProto], None], ...] = (
    size, rank, input_type, stored_size, stored_type, stored_values, stored_values, stored_data, stored_sparse,
    removed_stored, removed_node, repeated_node, shuffled_nodes, renamed_input, removed_input, added_input,
    swapped_inputs, renamed_output, outputs, graph_output, op_type, op_type, domain, versions, attribute, attribute,
    attribute_type, attribute_name, attribute_added, attribute_removed, attribute_reference, function, subgraph,
    torch_metadata,
)  # fmt: skip
