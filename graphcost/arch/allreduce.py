"""AllReduce: every GPU holds a replica; gradients are summed by a ring.

AllReduce-Local inside one server (NVLink), AllReduce-Cluster over several (network and
NVLink). Source: PAI study, Table II; ring all-reduce of Patarasuk and Yuan (2009);
gradient buckets of PyTorch DDP (Li et al., VLDB 2020).
"""

from __future__ import annotations

from collections.abc import Iterable

from graphcost.arch._base import ARCHITECTURES, Exchange, PaperTraffic, Placement, Replicated, dense_payload
from graphcost.collectives import all_gather_rows_bytes, all_reduce_sent_bytes
from graphcost.engine.paper import Medium
from graphcost.engine.timeline import BUCKETINGS
from graphcost.network import Collective, Way, way
from graphcost.training import Gradient, StepPlan


class AllReduce(Replicated):
    """Decentralised, weights replicated. S_w = 4 (n-1)/n W: bytes sent and received."""

    name = "allreduce"
    title = "AllReduce: replicas, ring all-reduce"

    def check(self, placement: Placement) -> None:
        """Any placement."""

    def paper_media(self, placement: Placement) -> tuple[Medium, ...]:
        """NVLink inside a server; Ethernet, then NVLink, over several."""
        return (Medium.NVLINK,) if placement.servers == 1 else (Medium.ETHERNET, Medium.NVLINK)

    def paper_traffic(self, plan: StepPlan, placement: Placement) -> tuple[PaperTraffic, ...]:
        """4 (n-1)/n W over each medium."""
        if placement.gpus == 1:
            return ()
        sent = plan.recipe.wire_share * all_reduce_sent_bytes(plan.gradient_bytes, placement.gpus)
        return (PaperTraffic("gradients", 2 * sent, self.paper_media(placement)),)

    def paper_input_sharing(self, placement: Placement) -> int:
        """All GPUs of a server."""
        return placement.gpus_per_server

    def exchanges(self, plan: StepPlan, placement: Placement) -> tuple[Exchange, ...]:
        """One all-reduce over all gradients, bucket by bucket; gathered rows of sparse tables apart."""
        if not placement.gather_rows:
            return all_reduce(plan.gradients, placement, plan.recipe.wire_share)
        rows = [gradient for gradient in plan.gradients if gradient.sparse and gradient.rows_bytes is not None]
        dense = [gradient for gradient in plan.gradients if gradient not in rows]
        return (*gather_rows(rows, placement), *all_reduce(dense, placement, plan.recipe.wire_share))

    def buffer_bytes(self, plan: StepPlan, placement: Placement) -> int:
        """Buckets are copies of all gradients (torch DDP without ``gradient_as_bucket_view``)."""
        return plan.gradient_bytes if placement.gpus > 1 else 0


def all_reduce(gradients: Iterable[Gradient], placement: Placement, wire_share: float = 1.0) -> tuple[Exchange, ...]:
    """The exchange of ``gradients``, each whole; nothing for one GPU.

    ``wire_share``: bytes sent over bytes of the gradients, which is what fills a bucket.
    """
    payload = dense_payload(gradients)
    if placement.gpus == 1 or not payload:
        return ()
    found = way(placement.cluster, placement.gpus, placement.servers)
    total = sum(part_bytes for part_bytes, _ in payload)

    def seconds(size_bytes: float) -> float:
        return found.seconds(wire_share * size_bytes)

    formula, source = named(found, wire_share * total)
    if wire_share != 1:
        formula += f", {wire_share:g} S on the wire"
    return (
        Exchange(
            "gradients", found.link.name, "all-reduce", payload,
            wire_share * all_reduce_sent_bytes(total, placement.gpus), seconds, True, found.link.interference,
            formula, source, spread=found.link.spread, queue="collectives",
        ),
    )  # fmt: skip


def gather_rows(gradients: Iterable[Gradient], placement: Placement) -> tuple[Exchange, ...]:
    """Touched rows of every GPU to every other: grows with the group, where a parameter server's rows do not."""
    payload = tuple((float(g.sent_bytes), g.ready_index) for g in gradients)
    if placement.gpus == 1 or not payload:
        return ()
    found = way(placement.cluster, placement.gpus, placement.servers, Collective.ALL_GATHER)
    total = sum(part_bytes for part_bytes, _ in payload)

    def seconds(size_bytes: float) -> float:
        return found.seconds(placement.gpus * size_bytes)  # the gathered result holds the rows of all

    sent = all_gather_rows_bytes(total, placement.gpus)
    return (
        Exchange(
            "embedding rows", found.link.name, "all-gather", payload, sent, seconds, True,
            found.link.interference, *named(found, placement.gpus * total), spread=found.link.spread,
            queue="collectives",
        ),
    )  # fmt: skip


def named(found: Way, size_bytes: float) -> tuple[str, str]:
    """Formula and source for a bucket of a usual size, or all there is if that is less."""
    best = found.best(min(size_bytes, BUCKETINGS["ddp"].cap_bytes))
    return best.formula, best.source


ARCHITECTURES.add(AllReduce.name, AllReduce())
