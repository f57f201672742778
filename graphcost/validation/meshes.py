"""Rows of products of parallelism: the words of the tables, and plans that many rows share."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from graphcost.hardware import Cluster
from graphcost.parallel.division import DividedPlan
from graphcost.parallel.mesh import Mesh
from graphcost.parallel.planning import Share, divide, share_of
from graphcost.recipe import Recipe
from graphcost.training import plan_step

if TYPE_CHECKING:
    from graphcost.graph import OpGraph

_SIZES = re.compile(r"\b(TP|PP|DP)(\d+)\b")
_CHUNKS = re.compile(r"interleave=(\d+)")
SHARES_KEPT = 24
"""Shares of one model and micro-batch, by tensor parallel size and recipe."""


def mesh_text(arch: str, framework: str, notes: str, micro_batches: int) -> str:
    """The ``--arch`` of a table's words; ``seqsel`` is Megatron-LM's sequence parallelism.

    Megatron-LM and DeepSpeed give every stage as many layers. Rows of ZeRO without pipelines hold models
    whose weights alone would not fit: stage 3.

    >>> mesh_text("TP8 PP8 DP1", "Megatron-LM", "seq-parallel/selective=seqsel; interleave=3", 64)
    'tp=8,pp=8,dp=1,mb=64,v=3,sp=1,cut=layers'
    """
    sizes = [f"{name.lower()}={size}" for name, size in _SIZES.findall(arch)]
    chunks = _CHUNKS.search(notes)
    further = [f"v={chunks[1]}"] if chunks and int(chunks[1]) > 1 else []
    further += ["sp=1"] if "seqsel" in notes else []
    further += ["zero=3"] if "ZeRO" in framework else []
    return ",".join([*sizes, f"mb={micro_batches}", *further, "cut=layers"])


class MeshPlans:
    """Plans over meshes; shares are kept, since rows differ in stages and micro-batches alone."""

    def __init__(self) -> None:
        self._shares: dict[tuple[object, ...], Share] = {}

    def divided(
        self,
        key: tuple[object, ...],
        graph: OpGraph,
        recipe: Recipe,
        mesh: Mesh,
        cluster: Cluster,
        gpus_per_server: int,
    ) -> DividedPlan:
        """``graph``, which ``key`` names, over ``mesh``; raises ``PlacementError``."""
        whole = self._share(key, graph, recipe, Mesh(dp=1), cluster)
        mine = self._share(key, graph, recipe, Mesh(mesh.tp, dp=1, sequence=mesh.sequence), cluster)
        plan = replace(whole.plan, recipe=recipe)
        return divide(plan, mine.under(recipe), mesh, cluster, gpus_per_server)

    def _share(self, key: tuple[object, ...], graph: OpGraph, recipe: Recipe, mesh: Mesh, cluster: Cluster) -> Share:
        base = replace(recipe, accumulate=1)
        whole = (*key, base, mesh.tp, mesh.sequence, cluster.device.id)
        if whole not in self._shares:
            while len(self._shares) >= SHARES_KEPT:
                del self._shares[next(iter(self._shares))]
            self._shares[whole] = share_of(graph, plan_step(graph, base), mesh, cluster)
        return self._shares[whole]
