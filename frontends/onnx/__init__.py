"""ONNX files, any opset; weights inside, outside or absent: they are never read.

``load_onnx`` binds every open size, walks the graph once, and hands over a ``Model``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from graphcost.errors import GraphcostError, ModelFileError, ShapeError, UsageError
from graphcost.frontends.options import LoadOptions
from graphcost.ir import Model, OpNode, Param

if TYPE_CHECKING:
    from onnx import ModelProto

    from graphcost.frontends.onnx.bindings import Bound
    from graphcost.frontends.onnx.interpreter import CostOf, Interpreter
    from graphcost.frontends.onnx.tensors import ExternalFiles


def load_onnx(source: Path | ModelProto, options: LoadOptions, cost_of: CostOf, base: Model | None = None) -> Model:
    """Read an ONNX file (or message) with all sizes bound by ``options``.

    ``cost_of`` weighs a list of operators (matmul FLOPs, other work): it chooses the
    dearer branch of an If whose condition is not known. ``base`` is the same file at its
    own batch, if it was loaded before: a changed batch is checked against it.

    Raises ``ModelFileError`` for a file that is not whole, ``MissingSizeError`` for an
    open size, ``UsageError`` for a binding that contradicts the file, ``ShapeError`` for
    operators that contradict each other.
    """
    from graphcost.frontends.onnx.bindings import bind, declared_inputs, sizeless_inputs
    from graphcost.frontends.onnx.calls import check_calls
    from graphcost.frontends.onnx.interpreter import op_limit
    from graphcost.frontends.onnx.reader import check_names, read_model
    from graphcost.frontends.onnx.tensors import ExternalFiles

    if isinstance(source, Path):
        proto, label, external = read_model(source), str(source), ExternalFiles(source.parent)
    else:
        check_names(source, "onnx.ModelProto")
        proto, label, external = source, source.graph.name or "onnx.ModelProto", ExternalFiles(None)
    stored = {tensor.name for tensor in proto.graph.initializer}
    stored |= {sparse.values.name for sparse in proto.graph.sparse_initializer}
    try:
        if not proto.graph.output:
            raise ModelFileError("the graph has no outputs; nothing is computed")
        check_calls(proto, op_limit(proto))
        inputs = declared_inputs(proto.graph.input, frozenset(stored))
        _check_values(options, proto)
        bound = bind(inputs, options)
        walk = _walk(proto, external, bound, options, cost_of)
        if bound.rebatched is not None:
            _check_rebatched(proto, external, bound, options, cost_of, walk.nodes, base)
    except GraphcostError as error:
        if label in str(error):
            raise
        raise type(error)(f"{label}: {error}") from error
    for name, kind in sizeless_inputs(proto.graph.input, frozenset(stored)).items():
        walk.note(f"input {name!r} is a {kind}; what needs its sizes is not counted")
    return _model(proto, label, bound, walk, external)


def open_sizes_onnx(source: Path | ModelProto) -> tuple[str, ...]:
    """Names of the sizes that an ONNX file leaves open, as ``--dim`` takes them."""
    from graphcost.frontends.onnx.bindings import declared_inputs, open_sizes
    from graphcost.frontends.onnx.reader import read_model

    proto = read_model(source) if isinstance(source, Path) else source
    stored = {tensor.name for tensor in proto.graph.initializer}
    stored |= {sparse.values.name for sparse in proto.graph.sparse_initializer}
    return tuple(size.name for size in open_sizes(declared_inputs(proto.graph.input, frozenset(stored))))


def _walk(
    proto: ModelProto, external: ExternalFiles, bound: Bound, options: LoadOptions, cost_of: CostOf
) -> Interpreter:
    from graphcost.frontends.onnx.interpreter import Interpreter
    from graphcost.frontends.onnx.rebatch import refusal

    walk = Interpreter(proto, external, cost_of, bound.dims, options.input_values, bound.rebatched)
    try:
        walk.run(bound.inputs)
    except ShapeError as error:
        if bound.rebatched is None:
            raise
        raise refusal(*bound.rebatched, str(error)) from error
    return walk


def _check_rebatched(
    proto: ModelProto, external: ExternalFiles, bound: Bound, options: LoadOptions, cost_of: CostOf,
    nodes: Sequence[OpNode], base: Model | None,
) -> None:  # fmt: skip
    """Compare with the file at its own batch: a size baked into the graph would show."""
    from graphcost.frontends.onnx.interpreter import Interpreter
    from graphcost.frontends.onnx.rebatch import check_scaled

    assert bound.rebatched is not None
    old, new = bound.rebatched
    old_inputs = {
        name: type(spec)((old, *spec.shape[1:]), spec.dtype) if spec.shape and spec.shape[0] == new else spec
        for name, spec in bound.inputs.items()
    }
    before_nodes: Sequence[OpNode]
    if base is not None and base.inputs == old_inputs:
        before_nodes = base.nodes
    else:
        walk = Interpreter(proto, external, cost_of, bound.dims, options.input_values)
        walk.run(old_inputs)
        before_nodes = walk.nodes
    check_scaled(before_nodes, nodes, old, new, lambda node: cost_of([node])[0])


def _check_values(options: LoadOptions, proto: ModelProto) -> None:
    from graphcost.registry import did_you_mean

    names = {info.name for info in proto.graph.input}
    for name in options.input_values:
        if name not in names and not _has_loop(proto, name):
            inputs = sorted(info.name for info in proto.graph.input)
            raise UsageError(
                f"--input-value {name}: the model has no input or loop of that name{did_you_mean(name, inputs)}"
            )


def _has_loop(proto: ModelProto, name: str) -> bool:
    """Whether a Loop, anywhere, has this name or, nameless, this first output."""
    from onnx import GraphProto, NodeProto

    stack: list[NodeProto] = [*proto.graph.node, *(node for f in proto.functions for node in f.node)]
    while stack:
        node = stack.pop()
        if node.op_type == "Loop" and name == (node.name or next(filter(None, node.output), "")):
            return True
        for attribute in node.attribute:
            graphs: list[GraphProto] = [attribute.g] if attribute.HasField("g") else []
            for graph in (*graphs, *attribute.graphs):
                stack.extend(graph.node)
    return False


def _model(proto: ModelProto, label: str, bound: Bound, walk: Interpreter, external: ExternalFiles) -> Model:
    used = {param.name for node in walk.nodes for _, param in node.params}
    untaken: Mapping[str, Param] = {name: param for name, param in walk.untaken.items() if name not in used}
    return Model(
        name=Path(label).stem if label.endswith(".onnx") else label,
        source=label,
        format="onnx",
        nodes=tuple(walk.nodes),
        inputs=bound.inputs,
        outputs=tuple(info.name for info in proto.graph.output),
        batch=bound.batch,
        batch_source=bound.batch_source,
        bindings=bound.dims,
        notes=(*bound.notes, *walk.notes, *external.notes()),
        folded=walk.folded,
        untaken_params=tuple(untaken.values()),
    )
