"""PEARL: embedding tables partitioned over the GPUs of a server, dense weights replicated.

Dense gradients are all-reduced; table rows travel to the GPU that looks them up and
their gradients back to the GPU that owns them. Source: PAI study, section on PEARL
(recalled): AllGatherv forward, reduce-scatter-like exchange backward, over NVLink.
"""

from __future__ import annotations

from graphcost.arch._base import ARCHITECTURES, Exchange, InOneServer, PaperTraffic, Placement
from graphcost.arch.allreduce import all_reduce, named
from graphcost.collectives import all_reduce_sent_bytes
from graphcost.engine.paper import Medium
from graphcost.network import Collective, way
from graphcost.training import StepPlan


class Pearl(InOneServer):
    """Partitioned Embedding And RepLicated."""

    name = "pearl"
    title = "PEARL: tables partitioned over NVLink, dense weights replicated"

    def paper_media(self, placement: Placement) -> tuple[Medium, ...]:
        """NVLink."""
        return (Medium.NVLINK,)

    def paper_traffic(self, plan: StepPlan, placement: Placement) -> tuple[PaperTraffic, ...]:
        """The dense part as AllReduce, touched rows out and back."""
        if placement.gpus == 1:
            return ()
        dense = all_reduce_sent_bytes(sum(g.bytes for g in plan.dense_gradients), placement.gpus)
        media = self.paper_media(placement)
        parts = [PaperTraffic("dense gradients", 2 * dense, media)]
        if plan.rows_bytes:
            parts.append(PaperTraffic("embedding rows", 2.0 * plan.rows_bytes, media, rows=True))
        return tuple(parts)

    def exchanges(self, plan: StepPlan, placement: Placement) -> tuple[Exchange, ...]:
        """Rows out before the forward pass and back after it (both exposed), dense gradients hidden."""
        if placement.gpus == 1:
            return ()
        found = way(placement.cluster, placement.gpus, 1, Collective.ALL_TO_ALL)
        rows = tuple((float(g.rows_bytes), g.ready_index) for g in plan.gradients if g.rows_bytes is not None)
        parts: tuple[Exchange, ...] = ()
        if rows:
            wire = plan.rows_bytes * (placement.gpus - 1) / placement.gpus
            parts = tuple(
                Exchange(
                    what, found.link.name, "all-to-all", rows, wire, found.seconds, False,
                    found.link.interference, *named(found, plan.rows_bytes),
                    spread=found.link.spread,
                )
                for what in ("embedding rows out", "row gradients back")
            )  # fmt: skip
        return (*parts, *all_reduce(plan.dense_gradients, placement))

    def buffer_bytes(self, plan: StepPlan, placement: Placement) -> int:
        """Buckets of the dense part, as AllReduce."""
        dense = sum(gradient.bytes for gradient in plan.dense_gradients)
        return dense if placement.gpus > 1 else 0


ARCHITECTURES.add(Pearl.name, Pearl())
