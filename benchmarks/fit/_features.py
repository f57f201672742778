"""What the device model needs of a row: every distinct kernel of its step with its terms, kept on disk.

Keyed by content: the graph's file, batch, recipe, device, and the code that makes plans.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

import graphcost
from benchmarks.fit import graphs
from graphcost.engine.roofline import DeviceModel
from graphcost.graph import build_graph
from graphcost.hardware import Device
from graphcost.ops import OpClass
from graphcost.recipe import Recipe
from graphcost.training import StepPlan, plan_step
from graphcost.validation.traces import FAST_NORMS_IN, with_fast_norms

FITTED = ("convert", "launch", "vector")
"""Rules that are applied to the terms, not in them."""

CODE_FOLDERS = ("training", "ops", "engine")


@dataclass(frozen=True)
class Features:
    """A step's kernels: ``rows`` names each one's row of the table, ``terms`` has its seconds.

    Columns of ``terms``: matrix, vector, memory, conversion (all at full efficiency),
    launches, how many such kernels there are, and whether products run on vector units.
    ``launches``: kernels of the forward and backward pass, and parameter tensors.
    """

    rows: tuple[str, ...]
    terms: np.ndarray
    launches: tuple[int, int, int]


def features_of(plan: StepPlan, device: Device) -> Features:
    """The kernels of ``plan`` on ``device``."""
    model = DeviceModel(device, plan.recipe)
    counted: Counter[tuple[str, float, float, float, float, float, bool]] = Counter()
    for op in (*plan.forward, *plan.backward, *plan.updates):
        if op.cost is None or op.op_class in (None, OpClass.FREE) or (op.cost.flops == 0 and op.cost.bytes == 0):
            continue
        one = model.terms(op)
        seconds = (one.matrix_s, one.vector_s, one.memory_s, one.convert_s)
        counted[(one.row.name, *seconds, float(one.launches), one.on_vector_units)] += 1
    terms = np.array([[*key[1:-1], count, key[-1]] for key, count in counted.items()]).reshape(-1, 7)
    forward, backward = (sum(op.repeat * op.launches for op in ops) for ops in (plan.forward, plan.backward))
    return Features(tuple(key[0] for key in counted), terms, (forward, backward, len(plan.updates)))


@cache
def _code_digest() -> str:
    digest = hashlib.sha256()
    package = Path(graphcost.__file__).parent
    for folder in CODE_FOLDERS:
        for path in sorted((package / folder).glob("*.py")):
            digest.update(path.read_bytes())
    digest.update((package / "recipe.py").read_bytes())
    return digest.hexdigest()


def timm_features(
    name: str, image: int, batch: int, recipe: Recipe, device: Device, *, fast_norms: bool = False
) -> Features | None:
    """Features of ``timm:name``, from the cache where they are there; None without a trace."""
    source = graphs.graph_file(name, image)
    if not source.exists():
        return None
    content = hashlib.sha256(source.read_bytes()).hexdigest()
    used = {name: rule for name, rule in DeviceModel(device, recipe).constants.rules.items() if name not in FITTED}
    marked = FAST_NORMS_IN if fast_norms else ""
    text = f"{content} {batch} {recipe!r} {device!r} {marked} {sorted(used.items())} {_code_digest()}"
    key = hashlib.sha256(text.encode()).hexdigest()
    path = graphs.cache_folder() / "features" / f"{key[:32]}.npz"
    if path.exists():
        with np.load(path) as data:
            return Features(tuple(data["rows"].tolist()), data["terms"], tuple(data["launches"].tolist()))
    model = graphs.load(name, image, batch)
    assert model is not None
    model = with_fast_norms(model) if fast_norms else model
    found = features_of(plan_step(build_graph(model), recipe), device)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.stem}.{os.getpid()}.npz")  # a file is there whole or not at all
    np.savez_compressed(part, rows=np.array(found.rows), terms=found.terms, launches=np.array(found.launches))
    part.rename(path)
    return found
