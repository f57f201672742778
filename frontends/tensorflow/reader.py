"""Files on disk -> ``Program``: frozen graphs and SavedModel folders. Variables' contents are never read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graphcost.errors import ModelFileError, UnknownNameError, UsageError
from graphcost.frontends.onnx.bindings import DeclaredInput
from graphcost.frontends.tensorflow.body import Body
from graphcost.frontends.tensorflow.framework import dtype_name, tensorflow
from graphcost.frontends.tensorflow.program import Feed, Program, declared_dims, reached
from graphcost.frontends.tensorflow.values import Variable
from graphcost.ir import TensorSpec
from graphcost.registry import did_you_mean

SAVED_MODEL = ("saved_model.pb", "saved_model.pbtxt")
_INTERNAL_SIGNATURES = frozenset({"__saved_model_init_op", "__saved_model_train_op"})
_DEFAULT_SIGNATURE = "serving_default"
_SHAPES_KNOWN_SINCE = 24  # GraphDef versions before it write scalars and unknown shapes alike

# Nodes without readers that no one reads a model for: they write files, logs and variables.
_NO_RESULT = ("Assign", "Save", "Restore", "MergeV2Checkpoints", "Summary", "Print", "Assert", "Apply", "Shard")


def read_graph_def(path: Path) -> Program:
    """A frozen graph (``GraphDef``); its outputs are the results that nothing reads."""
    tensorflow(str(path))
    from tensorflow.core.framework import graph_pb2

    graph = _parse(path, graph_pb2.GraphDef(), "a TensorFlow graph (GraphDef)")
    if not graph.node:
        raise ModelFileError(f"{path}: no TensorFlow graph (GraphDef): it holds no nodes")
    bad = next((node for node in graph.node if not node.name or not node.op), None)
    if bad is not None:
        raise ModelFileError(f"{path}: no TensorFlow graph (GraphDef): a node has no name or operator")
    read = {text.lstrip("^").split(":")[0] for node in graph.node for text in node.input}
    outputs = [node.name for node in graph.node if node.name not in read and _gives_result(node)]
    if not outputs:
        raise ModelFileError(f"{path}: the graph has no outputs; nothing is computed")
    outputs = _outside_loops(Body.of_graph(graph, outputs))
    body = Body.of_graph(graph, outputs)
    feeds = placeholders(body, outputs, (), graph.versions.producer)
    notes = ("a frozen graph does not say which constants are trained: all weights are counted as trained",)
    functions = {function.signature.name: function for function in graph.library.function}
    return Program(
        path.stem, str(path), "tensorflow-graph", body, functions, feeds, dict(zip(outputs, outputs, strict=True)),
        notes=notes,
    )  # fmt: skip


def read_saved_model(path: Path, signature: str | None) -> Program:
    """One signature of a SavedModel folder; ``variables`` may be missing."""
    tensorflow(str(path))
    from tensorflow.core.protobuf import saved_model_pb2

    file = next((path / name for name in SAVED_MODEL if (path / name).exists()), None)
    if file is None:
        raise ModelFileError(f"{path}: no SavedModel: it holds no saved_model.pb")
    message = _parse(file, saved_model_pb2.SavedModel(), "a SavedModel")
    if not message.meta_graphs:
        raise ModelFileError(f"{file}: no SavedModel: it holds no graph")
    meta = next((each for each in message.meta_graphs if "serve" in each.meta_info_def.tags), message.meta_graphs[0])
    name, chosen, notes = _signature(path, dict(meta.signature_def), signature)
    outputs = {key: info.name for key, info in sorted(chosen.outputs.items()) if info.name}
    if not outputs:
        raise ModelFileError(f"{path}: signature {name!r} has no outputs; nothing is computed")
    body = Body.of_graph(meta.graph_def, list(outputs.values()))
    feeds = [_feed(key, info, body) for key, info in sorted(chosen.inputs.items()) if info.name]
    producer = meta.graph_def.versions.producer
    feeds += placeholders(body, list(outputs.values()), [feed.ref.node for feed in feeds], producer)
    functions = {function.signature.name: function for function in meta.graph_def.library.function}
    return Program(
        path.resolve().name, str(path), "savedmodel", body, functions, tuple(feeds), outputs,
        _variables(path, body, meta), notes=notes,
    )  # fmt: skip


def placeholders(body: Body, outputs: Sequence[str], fed: Sequence[str], producer: int) -> tuple[Feed, ...]:
    """Placeholders that the outputs depend on, apart from those that are ``fed`` already."""
    found = []
    for node in reached(body, outputs):
        if node.op not in ("Placeholder", "PlaceholderV2") or node.name in fed:
            continue
        named = dtype_name(node.attr["dtype"].type)
        if named is None:
            continue  # a resource: what a traced function captured
        dims = declared_dims(node.attr["shape"].shape) if "shape" in node.attr else None
        if dims == () and producer < _SHAPES_KNOWN_SINCE:
            dims = None
        found.append(Feed(body.ref(node.name), node.attr["dtype"].type, DeclaredInput(node.name, named, dims)))
    return tuple(found)


def _parse(path: Path, message: Any, what: str) -> Any:
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError

    try:
        data = path.read_bytes()
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror or error}") from error
    if not data:
        raise ModelFileError(f"{path}: the file is empty; it should hold {what}")
    if data.startswith(b"version https://git-lfs"):
        raise ModelFileError(f"{path}: a Git LFS pointer, not the file itself; fetch it with git lfs pull")
    try:
        if path.suffix == ".pbtxt":
            return text_format.Parse(data, message)
        message.ParseFromString(data)
    except (DecodeError, text_format.ParseError, UnicodeDecodeError) as error:
        raise ModelFileError(f"{path}: not {what}, or not all of it") from error
    return message


def _gives_result(node: Any) -> bool:
    from graphcost.frontends.tensorflow.framework import op_definition

    if node.op in ("Const", "NoOp", "VarHandleOp", "VariableV2", "Placeholder"):
        return False
    definition = op_definition(node.op)
    if definition is not None and not definition.output_arg:
        return False
    return not any(part in node.op for part in _NO_RESULT)


def _outside_loops(body: Body) -> list[str]:
    """Results without those that a TF 1 loop leaves unread inside: seen from outside they depend on themselves."""
    if not any(node.op == "NextIteration" for node in body.nodes.values()):
        return list(body.results)
    found, circle = [], None
    for name in body.results:
        try:
            reached(body, [name])
            found.append(name)
        except ModelFileError as error:
            circle = error
    if not found and circle is not None:
        raise circle
    return found


def _signature(path: Path, signatures: Mapping[str, Any], wanted: str | None) -> tuple[str, Any, tuple[str, ...]]:
    """(name, signature, notes): the wanted one, the default one, or the only one."""
    usable = {name: each for name, each in sorted(signatures.items()) if name not in _INTERNAL_SIGNATURES}
    listed = ", ".join(usable) or "none"
    if wanted is not None:
        if wanted not in usable:
            raise UnknownNameError(
                f"{path}: no signature named {wanted!r}{did_you_mean(wanted, usable)} (signatures: {listed})"
            )
        return wanted, usable[wanted], ()
    if not usable:
        raise ModelFileError(
            f"{path}: the SavedModel has no signature, so it says nowhere what is fed and what comes out; "
            "save it with tf.saved_model.save(model, folder, signatures=...)"
        )
    if len(usable) > 1 and _DEFAULT_SIGNATURE not in usable:
        raise UsageError(f"{path}: the SavedModel has several signatures ({listed}); say which with --signature NAME")
    name = _DEFAULT_SIGNATURE if _DEFAULT_SIGNATURE in usable else next(iter(usable))
    notes = (f"signature {name!r} of {listed}",) if len(usable) > 1 else ()
    return name, usable[name], notes


def _feed(key: str, info: Any, body: Body) -> Feed:
    named = dtype_name(info.dtype)
    if named is None:
        raise ModelFileError(f"input {key!r} is no tensor of numbers or strings")
    return Feed(body.ref(info.name), info.dtype, DeclaredInput(key, named, declared_dims(info.tensor_shape)))


def _variables(path: Path, body: Body, meta: Any) -> dict[str, Variable]:
    """Variables by node name: shapes from the graph, else from the object graph or the checkpoint's index."""
    stated = [node.variable for node in meta.object_graph_def.nodes if node.WhichOneof("kind") == "variable"]
    counts = Counter(variable.name for variable in stated)
    by_name = {variable.name: variable for variable in stated if counts[variable.name] == 1}
    index: Mapping[str, Sequence[int]] | None = None
    found = {}
    for node in body.nodes.values():
        if node.op not in ("VarHandleOp", "VariableV2", "Variable"):
            continue
        shared = node.attr["shared_name"].s.decode("utf-8", "replace") or node.name
        described = by_name.get(shared)
        dims = declared_dims(node.attr["shape"].shape)
        if (dims is None or None in dims) and described is not None:
            dims = declared_dims(described.shape)
        if dims is None or None in dims:
            index = _checkpoint_shapes(path) if index is None else index
            dims = tuple(index[shared]) if shared in index else None
        named = dtype_name(node.attr["dtype"].type)
        spec = None if named is None or dims is None else TensorSpec(tuple(d or 0 for d in dims), named)
        trainable = described is None or described.trainable
        found[node.name] = Variable(node.name, spec, node.attr["dtype"].type, trainable)
    return found


def _checkpoint_shapes(path: Path) -> Mapping[str, Sequence[int]]:
    """Shapes from ``variables.index``; the data beside it is not opened."""
    import tensorflow as tf

    if not (path / "variables" / "variables.index").exists():
        return {}
    try:
        reader = tf.train.load_checkpoint(str(path / "variables" / "variables"))
    except (tf.errors.OpError, ValueError):
        return {}
    shapes: Mapping[str, Sequence[int]] = reader.get_variable_to_shape_map()
    return shapes
