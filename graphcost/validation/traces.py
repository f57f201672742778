"""Graphs of models that take seconds to trace, kept on disk, at any batch.

Tables name hundreds of timm models at many batches. Each (name, sizes) is traced once, at a
batch that is a prime which no layer has in its sizes: every size that it divides belongs to
the batch, and another batch is a multiplication.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphcost.errors import GraphcostError
from graphcost.frontends.options import LoadOptions
from graphcost.graph import build_graph
from graphcost.graph_io import graph_to_dict, model_from_dict
from graphcost.ir import Model, OpNode, TensorSpec
from graphcost.recipe import HALF_NORMS
from graphcost.sources import ZOO_PREFIX, load_model

TRACE_BATCH = 1009
"""A prime: no channel count, head size or image size of the models is a multiple of it."""


def model_at(source: str, batch: int, dims: Mapping[str, int], folder: Path | None) -> Model:
    """``source`` with ``batch`` samples: zoo models are built, others traced into ``folder`` or read from there."""
    if source.startswith(ZOO_PREFIX):
        return load_model(source, LoadOptions(batch=batch, dims=dims))
    path = None if folder is None else trace_file(source, dims, folder)
    model = None if path is None else read_trace(path)
    if model is None:
        model = load_model(source, LoadOptions(batch=TRACE_BATCH, dims=dims))
        if path is not None:
            store(model, path)
    return at_batch(model, batch)


FAST_NORMS_IN = "timm/layers/norm"
"""Norms called in those files (``norm.py``, ``norm_act.py``) run in the half format where timm's fast norms are on;
torch's own classes do not."""


def with_fast_norms(model: Model) -> Model:
    """timm's own norms marked to run in the half format under AMP."""
    nodes = (
        replace(node, attrs={**node.attrs, "autocast": "half"})
        if FAST_NORMS_IN in node.origin and node.op_type in HALF_NORMS
        else node
        for node in model.nodes
    )
    return replace(model, nodes=tuple(nodes))


def trace_file(source: str, dims: Mapping[str, int], folder: Path) -> Path:
    """Where the trace lies: ``timm/resnet50@224.json.gz``."""
    scheme, _, name = source.partition(":")
    sizes = ",".join(str(size) for _, size in sorted(dims.items()))
    return folder / scheme / f"{name.replace('/', '_')}@{sizes}.json.gz"


def read_trace(path: Path) -> Model | None:
    """The traced model; None where there is no trace, or one that an older version wrote."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return model_from_dict(json.load(file), str(path))
    except (OSError, EOFError, ValueError, GraphcostError):
        return None


def store(model: Model, path: Path) -> None:
    """Write a trace; a file is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with gzip.open(part, "wt", encoding="utf-8", compresslevel=4) as file:
        json.dump(graph_to_dict(build_graph(model)), file)
    part.replace(path)


def at_batch(model: Model, batch: int) -> Model:
    """A trace at another batch: every size that the trace's batch divides is scaled.

    >>> from graphcost.models_zoo import build
    >>> at_batch(build("mlp", batch=TRACE_BATCH), 8) == build("mlp", batch=8)
    True
    """
    specs: dict[TensorSpec, TensorSpec] = {}

    def scaled(value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            return value // TRACE_BATCH * batch if value % TRACE_BATCH == 0 else value
        return tuple(scaled(one) for one in value) if isinstance(value, tuple) else value

    def spec(one: TensorSpec | None) -> TensorSpec | None:
        if one is None:
            return None
        if one not in specs:
            specs[one] = replace(one, shape=scaled(one.shape))
        return specs[one]

    def node(one: OpNode) -> OpNode:
        return replace(
            one,
            inputs=tuple(spec(s) for s in one.inputs),
            outputs=tuple(spec(s) for s in one.outputs),
            attrs={key: scaled(value) for key, value in one.attrs.items()},
            values={key: scaled(value) for key, value in one.values.items()},
        )

    inputs = {name: replace(one, shape=scaled(one.shape)) for name, one in model.inputs.items()}
    return replace(model, nodes=tuple(node(one) for one in model.nodes), inputs=inputs, batch=batch)
