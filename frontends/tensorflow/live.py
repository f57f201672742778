"""Python objects -> ``Program``: Keras models, ``tf.function``s, concrete functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphcost.errors import UsageError
from graphcost.frontends.onnx.bindings import DeclaredInput
from graphcost.frontends.tensorflow.body import Body
from graphcost.frontends.tensorflow.framework import dtype_name, keras, tensorflow
from graphcost.frontends.tensorflow.program import Captured, Feed, Program, declared_dims
from graphcost.frontends.tensorflow.values import SMALL_NUMEL, Variable
from graphcost.ir import TensorSpec

_RESOURCE = 20


def read_live(source: object) -> Program:
    """A Keras model, a ``tf.function`` with an input signature, or a concrete function."""
    label = f"{type(source).__module__.partition('.')[0]}.{type(source).__qualname__}"
    roots = {cls.__module__.partition(".")[0] for cls in type(source).__mro__}
    if "keras" in roots:
        return read_keras_model(source, str(getattr(source, "name", label)), label, "keras")
    tensorflow(label)
    concrete: Any = source
    if not hasattr(concrete, "captured_inputs") and hasattr(concrete, "get_concrete_function"):
        if getattr(concrete, "input_signature", None) is None:
            raise UsageError(
                f"{label}: the tf.function has no input signature, so its sizes are not known; "
                "pass fn.get_concrete_function(tf.TensorSpec(...)) instead"
            )
        concrete = concrete.get_concrete_function()
    if not hasattr(concrete, "captured_inputs") or not hasattr(concrete, "graph"):
        raise UsageError(f"{label}: not a Keras model, tf.function or concrete function")
    name = _plain_name(getattr(concrete, "name", "")) or label
    return _of_concrete(concrete, name, name, "tf.function", None, {})


def read_keras_model(model: Any, name: str, label: str, form: str) -> Program:
    """A built Keras model, traced for inference with its sizes left open."""
    kt = keras(label)
    tf = tensorflow(label)
    structure = _input_structure(model)
    inputs = kt.tree.flatten(structure)
    if not inputs:
        raise UsageError(
            f"{label}: the Keras model has no defined inputs; build it (model.build, or call it once on data), "
            "or pass a concrete tf.function of it"
        )

    def forward(*flat: Any) -> Any:
        return model(kt.tree.pack_sequence_as(structure, list(flat)), training=False)

    specs = [tf.TensorSpec(each.shape, each.dtype, name=_identifier(each.name)) for each in inputs]
    concrete = tf.function(forward, autograph=False).get_concrete_function(*specs)
    trained = {id(variable.value.handle) for variable in model.trainable_variables}
    paths = {id(variable.value.handle): variable.path for variable in model.variables}
    return _of_concrete(concrete, name, label, form, [each.name for each in inputs], paths, trained)


def _input_structure(model: Any) -> Any:
    """Symbolic inputs, nested as the model takes them; an empty list where it has none."""
    try:
        return model.input
    except (AttributeError, ValueError):  # a Sequential that was built but never called
        inputs = getattr(model, "inputs", None) or []
        return inputs[0] if len(inputs) == 1 else inputs


def _of_concrete(
    concrete: Any, name: str, label: str, form: str, keys: Sequence[str] | None, paths: dict[int, str],
    trained: set[int] | None = None,
) -> Program:  # fmt: skip
    graph = concrete.graph
    graph_def = graph.as_graph_def()
    inside = list(graph.internal_captures)
    taken = {tensor.op.name for tensor in inside}
    outputs = {f"output_{i}": tensor.name for i, tensor in enumerate(concrete.outputs) if tensor is not None}
    if not outputs:
        raise UsageError(f"{label}: the function returns no tensor; nothing is computed")
    body = Body.of_graph(graph_def, list(outputs.values()))
    fed = [tensor for tensor in graph.inputs if tensor.op.name not in taken]
    feeds = []
    for position, tensor in enumerate(fed):
        key = keys[position] if keys is not None else tensor.op.name
        dtype = tensor.dtype.base_dtype.as_datatype_enum
        named = dtype_name(dtype)
        if named is None:
            raise UsageError(f"{label}: input {key!r} is no tensor of numbers or strings; close over it instead")
        dims = declared_dims(tensor.shape.as_proto())
        feeds.append(Feed(body.ref(tensor.op.name), dtype, DeclaredInput(key, named, dims)))
    try:
        variables = {id(variable.handle): variable for variable in graph.variables}
    except AssertionError as error:  # TensorFlow's own check of what its graphs point to
        raise UsageError(
            f"{label}: the function's variables have been deleted; keep them, say as attributes of a tf.Module"
        ) from error
    handles: dict[str, Variable] = {}
    captured: dict[str, Captured] = {}
    seen: dict[str, int] = {}
    for outer, inner in zip(concrete.captured_inputs, inside, strict=True):
        dtype = inner.dtype.as_datatype_enum
        if dtype == _RESOURCE:
            found = variables.get(id(outer))
            if found is not None:
                path = paths.get(id(outer), found.name.partition(":")[0])
                if seen.setdefault(path, id(outer)) != id(outer):  # names of variables need not be unique
                    path = f"{path}#{len(seen)}"
                    seen[path] = id(outer)
                is_trained = found.trainable if trained is None else id(outer) in trained
                handles[inner.op.name] = _variable(path, found, is_trained)
            continue
        if dtype_name(dtype) is None:
            continue
        shape = tuple(int(size) for size in outer.shape)
        small = int(np.prod(shape)) <= SMALL_NUMEL and hasattr(outer, "numpy") and dtype_name(dtype) != "string"
        data = np.asarray(outer.numpy()) if small else None
        captured[inner.op.name] = Captured(f"captured/{inner.op.name}", dtype, shape, data)
    functions = {function.signature.name: function for function in graph_def.library.function}
    return Program(name, label, form, body, functions, tuple(feeds), outputs, {}, handles, captured)


def _variable(path: str, found: Any, trained: bool) -> Variable:
    dtype = found.dtype.base_dtype.as_datatype_enum
    named = dtype_name(dtype)
    known = named is not None and found.shape.is_fully_defined()
    spec = TensorSpec(tuple(int(size) for size in found.shape), named) if known and named is not None else None
    return Variable(path, spec, dtype, trained)


def _plain_name(name: str | bytes) -> str:
    """``f`` for a function that TensorFlow calls ``__inference_f_12``."""
    text = name.decode("utf-8", "replace") if isinstance(name, bytes) else name
    head = text.removeprefix("__inference_")
    return head.rpartition("_")[0] or head if head != text else text


def _identifier(name: str) -> str:
    """A name that a graph node may have."""
    kept = "".join(letter if letter.isalnum() or letter in "_." else "_" for letter in name)
    return kept if kept[:1].isalnum() else f"input{kept}"
