"""Variables of a graph: their shapes, from wherever the files state them, and what training does to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graphcost.frontends.tensorflow.body import Body
from graphcost.frontends.tensorflow.framework import dtype_name
from graphcost.frontends.tensorflow.program import declared_dims
from graphcost.frontends.tensorflow.train_graph import VARIABLES, Training
from graphcost.frontends.tensorflow.values import Variable
from graphcost.ir import TensorSpec


def stored_variables(
    body: Body, training: Training | None, meta: Any = None, folder: Path | None = None
) -> dict[str, Variable]:
    """Variables by node name; ``meta`` (a ``MetaGraphDef``) and a SavedModel's ``folder`` know more than the graph.

    Shapes: from the graph, else from the object graph or the checkpoint's index. Trained:
    what the graph's own optimizer updates, else what the object graph or the collection of
    trainable variables says, else all.
    """
    stated = [] if meta is None else [n.variable for n in meta.object_graph_def.nodes if n.HasField("variable")]
    counts = Counter(variable.name for variable in stated)
    by_name = {variable.name: variable for variable in stated if counts[variable.name] == 1}
    collected = _collected(meta)
    index: Mapping[str, Sequence[int]] | None = None
    found = {}
    for node in body.nodes.values():
        if node.op not in VARIABLES:
            continue
        shared = node.attr["shared_name"].s.decode("utf-8", "replace") or node.name
        described = by_name.get(shared)
        dims = declared_dims(node.attr["shape"].shape)
        if (dims is None or None in dims) and described is not None:
            dims = declared_dims(described.shape)
        if (dims is None or None in dims) and folder is not None:
            index = _checkpoint_shapes(folder) if index is None else index
            dims = tuple(index[shared]) if shared in index else None
        named = dtype_name(node.attr["dtype"].type)
        known = named is not None and dims is not None and None not in dims
        spec = TensorSpec(tuple(d or 0 for d in dims), named) if known and dims is not None and named else None
        trainable = (described is None or described.trainable) and collected.get(node.name, True)
        updated = {} if training is None else training.updated
        if updated:
            trainable = node.name in updated
        found[node.name] = Variable(
            node.name, spec, node.attr["dtype"].type, trainable, sparse=updated.get(node.name, False)
        )
    return found


def _collected(meta: Any) -> dict[str, bool]:
    """Variables that TF 1's collections list, and whether the one of trainable variables does."""
    from google.protobuf.message import DecodeError
    from tensorflow.core.framework import variable_pb2

    found: dict[str, bool] = {}
    for key in ("variables", "trainable_variables") if meta is not None else ():
        for data in meta.collection_def[key].bytes_list.value if key in meta.collection_def else ():
            try:
                name = variable_pb2.VariableDef.FromString(data).variable_name.partition(":")[0]
            except DecodeError:  # a collection of the program's own, of that name
                continue
            found[name] = key == "trainable_variables"
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
