"""Models built in the tests, and how their totals are asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from graphcost.frontends.options import LoadOptions
from graphcost.frontends.tensorflow import load_tensorflow
from graphcost.graph import GraphTotals, branch_weight, build_graph, totals
from graphcost.ir import Model

RAMP = np.arange(16, dtype=np.float32).reshape(4, 4)
"""A weight of 16 elements."""


def load(source: Any, batch: int | None = 2, **options: Any) -> Model:
    signature = options.pop("signature", None)
    return load_tensorflow(source, LoadOptions(batch=batch, **options), branch_weight, signature=signature)


def total(source: Any, batch: int | None = 2, **options: Any) -> GraphTotals:
    return totals(build_graph(load(source, batch, **options)))


def traced(function: Any, *specs: Any) -> Any:
    """A concrete function of ``x [?, 4]``, or of ``specs``."""
    listed = specs or (tf.TensorSpec((None, 4), tf.float32, name="x"),)
    return tf.function(function).get_concrete_function(*listed)


def frozen(path: Path, build: Any, *, old_control_flow: bool = False) -> Path:
    """A ``GraphDef`` file of what ``build(x)`` puts behind a placeholder ``x [?, 4]``."""
    v1 = tf.compat.v1
    graph = tf.Graph()
    if old_control_flow:
        v1.disable_control_flow_v2()
    try:
        with graph.as_default():
            build(v1.placeholder(tf.float32, (None, 4), name="x"))
    finally:
        v1.enable_control_flow_v2()
    path.write_bytes(graph.as_graph_def().SerializeToString())
    return path


def saved_model(folder: Path, signatures: list[str], edit: Any = None) -> Path:
    """A SavedModel of ``x @ v`` with a variable ``v [4, 3]``, under each of ``signatures``; no variables folder."""
    from tensorflow.core.protobuf import saved_model_pb2

    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, (None, 4), name="x")
        v = tf.compat.v1.get_variable("v", (4, 3), use_resource=True)
        y = tf.matmul(x, v, name="y")
        unused = tf.compat.v1.get_variable("slot", (4, 3), use_resource=True)
        tf.add(unused, 1.0, name="training")
    message = saved_model_pb2.SavedModel(saved_model_schema_version=1)
    meta = message.meta_graphs.add()
    meta.meta_info_def.tags.append("serve")
    meta.graph_def.CopyFrom(graph.as_graph_def())
    for name in signatures:
        definition = meta.signature_def[name]
        for infos, tensor, key in ((definition.inputs, x, "rows"), (definition.outputs, y, "out")):
            infos[key].name = tensor.name
            infos[key].dtype = tensor.dtype.as_datatype_enum
            infos[key].tensor_shape.CopyFrom(tensor.shape.as_proto())
    if edit is not None:
        edit(meta)
    folder.mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(message.SerializeToString())
    return folder
