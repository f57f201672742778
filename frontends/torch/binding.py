"""Bind an export's open sizes and resolve every tensor's shape."""

from __future__ import annotations

from collections.abc import Mapping

from graphcost.frontends.onnx.bindings import Bound, DeclaredInput, bind
from graphcost.frontends.options import LoadOptions
from graphcost.frontends.torch.expressions import evaluate
from graphcost.frontends.torch.records import Exported, TensorMeta, TorchGraph
from graphcost.ir import TensorSpec


def declared(exported: Exported) -> list[DeclaredInput]:
    """Inputs that a user feeds. The symbol of a leading open size is called ``batch``, as it has no "
    "name of its own."""
    metas = {name: exported.graph.tensors[name] for name in exported.user_inputs if name in exported.graph.tensors}
    leading = batch_symbol(metas)
    return [
        DeclaredInput(name, meta.dtype, tuple("batch" if size == leading else size for size in meta.sizes))
        for name, meta in metas.items()
    ]


def batch_symbol(metas: Mapping[str, TensorMeta]) -> str | None:
    """The symbol that most inputs lead with, or None where no leading size is open."""
    counts: dict[str, int] = {}
    for meta in metas.values():
        if meta.sizes and isinstance(meta.sizes[0], str):
            counts[meta.sizes[0]] = counts.get(meta.sizes[0], 0) + 1
    return max(counts, key=lambda name: counts[name]) if counts else None


def bind_export(exported: Exported, options: LoadOptions) -> tuple[Bound, dict[str, int]]:
    """(bound inputs, symbol -> size)."""
    bound = bind(declared(exported), options)
    symbols: dict[str, int] = {}
    for name, spec in bound.inputs.items():
        for size, number in zip(exported.graph.tensors[name].sizes, spec.shape, strict=True):
            if isinstance(size, str):
                symbols[size] = number
    return bound, symbols


def resolve(graph: TorchGraph, symbols: Mapping[str, int]) -> dict[str, TensorSpec | None]:
    """Shapes of every tensor; None where a size depends on data."""
    return {name: _spec(meta, symbols) for name, meta in graph.tensors.items()}


def _spec(meta: TensorMeta, symbols: Mapping[str, int]) -> TensorSpec | None:
    shape = []
    for size in meta.sizes:
        try:
            shape.append(size if isinstance(size, int) else evaluate(size, symbols))
        except KeyError:
            return None
    return TensorSpec(tuple(shape), meta.dtype)
