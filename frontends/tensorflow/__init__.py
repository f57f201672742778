"""TensorFlow: SavedModels, frozen graphs, Keras files, Keras models and traced functions.

Graphs are read as messages, nothing of a model is run or restored: files that this
TensorFlow can no longer load are read all the same. TensorFlow supplies the messages, the
definitions of its operators and their shapes, and is imported only when asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from graphcost.errors import GraphcostError, MissingSizeError, ModelFileError, ShapeError, UsageError
from graphcost.frontends.options import LoadOptions
from graphcost.ir import Model, OpNode, Param, ParamKind
from graphcost.registry import did_you_mean

if TYPE_CHECKING:
    from graphcost.frontends.onnx.bindings import Bound
    from graphcost.frontends.tensorflow.program import Program
    from graphcost.frontends.tensorflow.values import Value, Variable
    from graphcost.frontends.tensorflow.walk import Walk

CostOf = Callable[[Sequence[OpNode]], tuple[int, int]]


def load_tensorflow(
    source: Path | object, options: LoadOptions, cost_of: CostOf, *, signature: str | None = None,
    base: Model | None = None,
) -> Model:  # fmt: skip
    """Read a TensorFlow computation with all sizes bound by ``options``.

    ``source``: the path of a SavedModel folder, a frozen ``.pb``, a ``.keras`` or ``.h5``
    file; or a Keras model, a ``tf.function`` with an input signature, a concrete function.
    ``signature`` chooses among a SavedModel's. ``cost_of`` weighs a list of operators
    (matmul FLOPs, other work): it chooses the dearer branch of an unknown condition.
    ``base`` is the same source at its own batch, if it was loaded before: a changed batch
    is checked against it.

    Raises ``ModelFileError`` for a file that is not whole, ``MissingSizeError`` for an open
    size or trip count, ``UsageError`` for a binding that contradicts the model or where
    TensorFlow is not installed, ``ShapeError`` for operators that contradict each other.
    """
    program = _read(source, signature)
    try:
        return _model(program, options, cost_of, base)
    except GraphcostError as error:
        if program.label in str(error):
            raise
        raise type(error)(f"{program.label}: {error}") from error


def open_sizes_tensorflow(source: Path | object, *, signature: str | None = None) -> tuple[str, ...]:
    """Names of the sizes that a TensorFlow model leaves open, as ``--dim`` takes them."""
    from graphcost.frontends.onnx.bindings import open_sizes

    return tuple(size.name for size in open_sizes([feed.declared for feed in _read(source, signature).feeds]))


def is_saved_model(path: Path) -> bool:
    """Whether a folder is a SavedModel; TensorFlow is not asked."""
    from graphcost.frontends.tensorflow.reader import SAVED_MODEL

    return path.is_dir() and any((path / name).exists() for name in SAVED_MODEL)


def _read(source: Path | object, signature: str | None) -> Program:
    if not isinstance(source, Path):
        from graphcost.frontends.tensorflow.live import read_live

        if signature is not None:
            raise UsageError(f"a signature ({signature!r}) is chosen of a SavedModel, not of a Python object")
        return read_live(source)
    from graphcost.frontends.tensorflow.reader import SAVED_MODEL, read_graph_def, read_meta_graph, read_saved_model

    if not source.exists():
        raise ModelFileError(f"{source}: no such file")
    if source.name in SAVED_MODEL:
        return read_saved_model(source.parent, signature)
    if source.is_dir():
        return read_saved_model(source, signature)
    if signature is not None:
        raise UsageError(f"{source}: a signature ({signature!r}) is chosen of a SavedModel; this file has none")
    if source.suffix in (".keras", ".h5", ".hdf5"):
        from graphcost.frontends.tensorflow.keras_files import read_keras

        return read_keras(source)
    return read_meta_graph(source) if source.suffix == ".meta" else read_graph_def(source)


def _model(program: Program, options: LoadOptions, cost_of: CostOf, base: Model | None) -> Model:
    from graphcost.frontends.onnx.rebatch import refusal

    # The modules fill the tables of openers and handlers.
    from graphcost.frontends.tensorflow import (  # noqa: F401
        control,
        frames,
        layers,
        lists,
        names,
        open_sources,
        partitions,
        recurrent,
    )
    from graphcost.frontends.tensorflow.told import placed, training_notes
    from graphcost.frontends.tensorflow.walk import Walk

    bound = _bind(program, options)
    walk = Walk(program.functions, cost_of, options.input_values, program.variables, bound.rebatched)
    try:
        results = walk.run(program.body, _inputs(program, bound, options, walk))
    except ShapeError as error:
        if bound.rebatched is None:
            raise
        raise refusal(*bound.rebatched, str(error)) from error
    _check_values(program, options, walk)
    if bound.rebatched is not None:
        _check_rebatched(program, bound, options, walk, base)
    variables = {each.name: each for each in (*program.variables.values(), *program.handles.values())
                 if each.sparse or not each.trainable}  # fmt: skip
    nodes = tuple(_settle(node, variables) for node in walk.nodes)
    used = {param.name: param for node in nodes for _, param in node.params}
    return Model(
        name=program.name,
        source=program.label,
        format=program.format,
        nodes=nodes,
        inputs=bound.inputs,
        outputs=tuple(dict.fromkeys(value.name for value in results)),
        batch=bound.batch,
        batch_source=bound.batch_source,
        bindings=bound.dims,
        notes=(
            *program.notes,
            *bound.notes,
            *walk.notes,
            *training_notes(program, walk, used),
            *placed(program.body, used),
        ),
        folded=walk.folded,
        untaken_params=tuple(_marked(p, variables) for name, p in walk.untaken.items() if name not in used),
    )


def _bind(program: Program, options: LoadOptions) -> Bound:
    from graphcost.frontends.onnx.bindings import bind

    declared = []
    for feed in program.feeds:
        known = feed.declared
        if known.dims is None and known.name not in options.input_shapes:
            if len(options.input_values.get(known.name, ())) != 1:
                raise MissingSizeError(
                    f"the model leaves sizes open: input {known}; give --input-shape {known.name}=..., "
                    f"or, if it is one number, --input-value {known.name}=N"
                )
            known = replace(known, dims=())
        declared.append(known)
    return bind(declared, options, any_batch=True)


def _check_rebatched(program: Program, bound: Bound, options: LoadOptions, walk: Walk, base: Model | None) -> None:
    """Compare with the graph at its own batch: a size baked into it would show."""
    from graphcost.frontends.onnx.rebatch import check_scaled

    assert bound.rebatched is not None
    old, new = bound.rebatched
    inputs = {
        feed.declared.name: replace(spec, shape=(old, *spec.shape[1:]))
        if (spec := bound.inputs[feed.declared.name]).shape and (feed.declared.dims or ())[:1] == (old,)
        else spec
        for feed in program.feeds
    }
    if base is not None and base.inputs == inputs:
        before = base.nodes
    else:
        own = type(walk)(program.functions, walk.cost_of, options.input_values, program.variables)
        own.run(program.body, _inputs(program, replace(bound, inputs=inputs), options, own))
        before = tuple(own.nodes)
    check_scaled(before, walk.nodes, old, new, lambda node: walk.cost_of([node])[0])


def _inputs(program: Program, bound: Bound, options: LoadOptions, walk: Walk) -> Mapping[str, list[Value]]:
    """Values of everything that enters the graph from outside: results by node name."""
    from graphcost.frontends.tensorflow.values import Value

    found: dict[str, list[Value]] = {}
    for feed in program.feeds:
        key, spec = feed.declared.name, bound.inputs[feed.declared.name]
        listed = found.setdefault(feed.ref.node, [])
        if feed.ref.index != len(listed):
            raise ModelFileError(f"input {key!r} enters the graph at result {feed.ref.index} of {feed.ref.node!r}")
        value = walk.fresh(key, feed.dtype, spec.shape)
        given = walk.given(key)
        if given is not None:
            if len(given) != spec.numel:
                raise UsageError(f"--input-value {key}: {len(given)} values given, {spec.numel} are needed")
            data = np.asarray(given).astype(spec.dtype).reshape(spec.shape)
            value = replace(walk.known(key, feed.dtype, data), constant=False)
        listed.append(value)
    for node, variable in program.handles.items():
        found[node] = [Value(node, constant=True, variable=variable)]
    for node, taken in program.captured.items():
        if taken.data is not None:
            made = walk.known(taken.name, taken.dtype, taken.data)
        else:
            made = walk.fresh(taken.name, taken.dtype, taken.shape, constant=True)
        found[node] = [replace(made, leaves=walk.stored(taken.name, made.spec))]
    return found


def _check_values(program: Program, options: LoadOptions, walk: Walk) -> None:
    for name in options.input_values:
        if name not in walk.used_values:
            inputs = sorted(feed.declared.name for feed in program.feeds)
            raise UsageError(
                f"--input-value {name}: the model has no input or loop of that name{did_you_mean(name, inputs)}"
            )


def _settle(node: OpNode, variables: Mapping[str, Variable]) -> OpNode:
    if not variables or not node.params:
        return node
    return replace(node, params=tuple((index, _marked(param, variables)) for index, param in node.params))


def _marked(param: Param, variables: Mapping[str, Variable]) -> Param:
    variable = variables.get(param.name)
    if variable is None or param.kind is not ParamKind.WEIGHT:
        return param
    return replace(param, trainable=variable.trainable, sparse=variable.sparse)
