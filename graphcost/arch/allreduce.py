"""AllReduce: every GPU holds a replica; gradients are summed by a ring.

AllReduce-Local inside one server (NVLink), AllReduce-Cluster over several (network and
NVLink). Source: PAI study, Table II; ring all-reduce of Patarasuk and Yuan (2009);
gradient buckets of PyTorch DDP (Li et al., VLDB 2020).
"""

from __future__ import annotations

from collections.abc import Iterable

from graphcost.arch._base import ARCHITECTURES, Exchange, PaperTraffic, Placement, dense_payload
from graphcost.collectives import all_reduce_s, all_reduce_sent_bytes
from graphcost.engine.links import ring
from graphcost.engine.paper import Medium
from graphcost.training import Gradient, StepPlan


class AllReduce:
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
        sent = all_reduce_sent_bytes(plan.gradient_bytes, placement.gpus)
        return (PaperTraffic("gradients", 2 * sent, self.paper_media(placement)),)

    def paper_input_sharing(self, placement: Placement) -> int:
        """All GPUs of a server."""
        return placement.gpus_per_server

    def exchanges(self, plan: StepPlan, placement: Placement) -> tuple[Exchange, ...]:
        """One all-reduce over all gradients, bucket by bucket."""
        return all_reduce(plan.gradients, placement)

    def buffer_bytes(self, plan: StepPlan, placement: Placement) -> int:
        """Buckets are copies of all gradients (torch DDP without ``gradient_as_bucket_view``)."""
        return plan.gradient_bytes if placement.gpus > 1 else 0


def all_reduce(gradients: Iterable[Gradient], placement: Placement) -> tuple[Exchange, ...]:
    """The exchange of ``gradients``, each whole; nothing for one GPU."""
    payload = dense_payload(gradients)
    if placement.gpus == 1 or not payload:
        return ()
    link = ring(placement.cluster, placement.gpus, placement.servers)

    def seconds(part_bytes: float) -> float:
        return all_reduce_s(part_bytes, placement.gpus, link.bytes_per_s, link.latency_s)

    sent = all_reduce_sent_bytes(sum(part_bytes for part_bytes, _ in payload), placement.gpus)
    return (Exchange("gradients", link.name, "all-reduce", payload, sent, seconds, True, link.interference),)


ARCHITECTURES.add(AllReduce.name, AllReduce())
