"""Well-known models as op graphs, built without files, weights or frameworks.

>>> build("mlp", batch=1).inputs
{'x': TensorSpec(shape=(1, 784), dtype='float32')}
"""

from __future__ import annotations

from collections.abc import Mapping

from graphcost.errors import UsageError
from graphcost.ir import BatchSource, Model
from graphcost.models_zoo import gpt
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import DOMAINS, ZOO, ZooEntry
from graphcost.registry import did_you_mean, import_members

__all__ = ["DOMAINS", "ZOO", "ZooEntry", "build", "describe", "names"]

FAMILIES = import_members(__name__, __path__)
"""The modules whose import fills :data:`ZOO`."""

DEFAULT_BATCH = 32
"""Samples where neither the caller nor the entry says (the command line's default)."""


def names() -> tuple[str, ...]:
    """Names of the zoo, in order of registration."""
    return tuple(ZOO)


def describe(name: str) -> ZooEntry:
    """What is known of a zoo model; raises ``UnknownNameError`` with the nearest name.

    ``gpt-h1024-l12`` and ``gpt-h1024-l12-a16`` are GPTs of that hidden size, layers and heads.
    """
    return gpt.by_name(name) or ZOO.find(name)


def build(name: str, *, batch: int | None = None, dims: Mapping[str, int] | None = None) -> Model:
    """The model called ``name``: ``batch`` samples, ``dims`` over the entry's own sizes (``seq``, ``image``).

    Raises ``UnknownNameError`` for a name, ``UsageError`` for a size the model
    does not have, or cannot take.
    """
    entry = describe(name)
    given = dict(dims or {})
    if "batch" in given:
        batch = given.pop("batch")
    for size in given:
        if size not in entry.dims:
            known = ", ".join(entry.dims) or "none"
            raise UsageError(
                f"--dim {size}: zoo:{name} has no such size{did_you_mean(size, entry.dims)} (sizes: {known})"
            )
    least = {size: min(1, entry.dims[size]) for size in given}  # one that is 0 by itself is left out so
    if any(value < least[size] for size, value in given.items()) or (batch is not None and batch < 1):
        raise UsageError(f"zoo:{name}: sizes are at least 1")
    if batch is not None:
        chosen, source = batch, BatchSource.OPTION
    elif entry.batch is not None:
        chosen, source = entry.batch, BatchSource.FILE
    else:
        chosen, source = DEFAULT_BATCH, BatchSource.ASSUMED
    return entry.build(Builder(name, chosen, source), chosen, {**entry.dims, **given})
