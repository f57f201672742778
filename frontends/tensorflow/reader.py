"""Files on disk -> ``Program``: frozen graphs and SavedModel folders. Variables' contents are never read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphcost.errors import ModelFileError, UnknownNameError, UsageError
from graphcost.frontends.onnx.bindings import DeclaredInput
from graphcost.frontends.tensorflow.body import Body, Ref
from graphcost.frontends.tensorflow.framework import dtype_name, tensorflow
from graphcost.frontends.tensorflow.program import Feed, Program, declared_dims, reached
from graphcost.frontends.tensorflow.stored import stored_variables
from graphcost.frontends.tensorflow.train_graph import find_training, forward_outputs
from graphcost.registry import did_you_mean

SAVED_MODEL = ("saved_model.pb", "saved_model.pbtxt")
_INTERNAL_SIGNATURES = frozenset({"__saved_model_init_op", "__saved_model_train_op"})
_DEFAULT_SIGNATURE = "serving_default"
_SHAPES_KNOWN_SINCE = 24  # GraphDef versions before it write scalars and unknown shapes alike

_PIPELINES = ("IteratorGetNext", "IteratorGetNextSync")

_GRAPH = "a TensorFlow graph (GraphDef)"
_META_GRAPH = "a TensorFlow graph with its collections (MetaGraphDef)"
_ALL_TRAINED = "a frozen graph does not say which constants are trained: all weights are counted as trained"

# Nodes without readers that no one reads a model for: they write files, logs and variables.
_NO_COMPUTATION = (
    "Const",
    "NoOp",
    "VarHandleOp",
    "VariableV2",
    "Placeholder",
    "ReadVariableOp",
    "VarIsInitializedOp",
)
_NO_RESULT = ("Assign", "Save", "Restore", "MergeV2Checkpoints", "Summary", "Print", "Assert", "Apply", "Shard")


def read_graph_def(path: Path) -> Program:
    """A graph (``GraphDef``), frozen or not; its outputs are its losses, else the results that nothing reads."""
    tensorflow(str(path))
    from tensorflow.core.framework import graph_pb2

    return _of_graph(path, _parse(path, graph_pb2.GraphDef(), _GRAPH), _GRAPH)


def read_meta_graph(path: Path) -> Program:
    """A ``.meta`` file: a graph with the collections of variables of the program that wrote it."""
    tensorflow(str(path))
    from tensorflow.core.protobuf import meta_graph_pb2

    meta = _parse(path, meta_graph_pb2.MetaGraphDef(), _META_GRAPH)
    return _of_graph(path, meta.graph_def, _META_GRAPH, meta)


def _of_graph(path: Path, graph: Any, what: str, meta: Any = None) -> Program:
    if not graph.node:
        raise ModelFileError(f"{path}: not {what}: it holds no nodes")
    bad = next((node for node in graph.node if not node.name or not node.op), None)
    if bad is not None:
        raise ModelFileError(f"{path}: not {what}: a node has no name or operator")
    body = Body.of_graph(graph, ())
    training = find_training(body)
    outputs = list(training.losses) if training is not None else []
    if not outputs:
        read = {_node(text) for node in graph.node if "Summary" not in node.op for text in node.input}
        outputs = [node.name for node in graph.node if node.name not in read and _gives_result(node)]
    if not outputs:
        raise ModelFileError(f"{path}: the graph has no outputs; nothing is computed")
    outputs = _outside_loops(body, outputs)
    body = replace(body, results=tuple(outputs))
    feeds = placeholders(body, outputs, (), graph.versions.producer)
    functions = {function.signature.name: function for function in graph.library.function}
    says_trained = meta is not None or (training is not None and training.updated)
    return Program(
        path.stem, str(path), "tensorflow-graph", body, functions, feeds, dict(zip(outputs, outputs, strict=True)),
        stored_variables(body, training, meta), notes=() if says_trained else (_ALL_TRAINED,), training=training,
    )  # fmt: skip


def _node(text: str) -> str:
    """The node that a reference, or a control input, is about."""
    return text.removeprefix("^").partition(":")[0]


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
    body = Body.of_graph(meta.graph_def, ())
    training = find_training(body)
    if training is not None:
        outputs = forward_outputs(training, outputs)
    body = replace(body, results=tuple(outputs.values()))
    feeds = [_feed(key, info, body) for key, info in sorted(chosen.inputs.items()) if info.name]
    producer = meta.graph_def.versions.producer
    feeds += placeholders(body, list(outputs.values()), [feed.ref.node for feed in feeds], producer)
    functions = {function.signature.name: function for function in meta.graph_def.library.function}
    return Program(
        path.resolve().name, str(path), "savedmodel", body, functions, tuple(feeds), outputs,
        stored_variables(body, training, meta, path), notes=notes, training=training,
    )  # fmt: skip


def placeholders(body: Body, outputs: Sequence[str], fed: Sequence[str], producer: int) -> tuple[Feed, ...]:
    """What feeds the nodes that the outputs depend on: placeholders and input pipelines, but not those ``fed``."""
    found = []
    for node in reached(body, outputs):
        if node.name in fed:
            continue
        if node.op in _PIPELINES:
            found += _batches(node)
        if node.op not in ("Placeholder", "PlaceholderV2"):
            continue
        named = dtype_name(node.attr["dtype"].type)
        if named is None:
            continue  # a resource: what a traced function captured
        dims = declared_dims(node.attr["shape"].shape) if "shape" in node.attr else None
        if dims == () and producer < _SHAPES_KNOWN_SINCE:
            dims = None
        found.append(Feed(body.ref(node.name), node.attr["dtype"].type, DeclaredInput(node.name, named, dims)))
    return tuple(found)


def _batches(node: Any) -> list[Feed]:
    """The tensors that an input pipeline hands over each step, as ``node``, ``node:1``, ..."""
    found = []
    stated = zip(node.attr["output_types"].list.type, node.attr["output_shapes"].list.shape, strict=False)
    for index, (dtype, shape) in enumerate(stated):
        named = dtype_name(dtype)
        if named is not None:
            name = f"{node.name}:{index}" if index else node.name
            found.append(Feed(Ref(node.name, index), dtype, DeclaredInput(name, named, declared_dims(shape))))
    return found


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

    if node.op in _NO_COMPUTATION:
        return False
    definition = op_definition(node.op)
    if definition is not None and not definition.output_arg:
        return False
    return not any(part in node.op for part in _NO_RESULT)


def _outside_loops(body: Body, outputs: Sequence[str]) -> list[str]:
    """Results without those that a TF 1 loop leaves unread inside: seen from outside they depend on themselves."""
    if not any(node.op == "NextIteration" for node in body.nodes.values()):
        return list(outputs)
    found, circle = [], None
    for name in outputs:
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
