"""PS/Worker: workers pull weights from parameter servers and push gradients to them.

Source: PAI study, Table II (Ethernet and PCIe, one after the other); Li et al., OSDI 2014.
"""

from __future__ import annotations

from graphcost.arch._base import ARCHITECTURES, Exchange, PaperTraffic, Placement
from graphcost.collectives import push_or_pull_s
from graphcost.engine.links import across, effective
from graphcost.engine.paper import Medium
from graphcost.training import StepPlan


class ParameterServer:
    """Centralised over the network. Lookup tables travel as touched rows."""

    name = "ps"
    title = "PS/Worker: parameter servers on hosts of their own"

    def check(self, placement: Placement) -> None:
        """Any placement with a parameter server."""

    def paper_media(self, placement: Placement) -> tuple[Medium, ...]:
        """Ethernet, then PCIe."""
        return (Medium.ETHERNET, Medium.PCIE)

    def paper_traffic(self, plan: StepPlan, placement: Placement) -> tuple[PaperTraffic, ...]:
        """S_w = 2 W: pull and push. Tables marked sparse count their touched rows."""
        return (PaperTraffic("weights and gradients", 2.0 * sent_bytes(plan), self.paper_media(placement)),)

    def paper_input_sharing(self, placement: Placement) -> int:
        """Each worker sits on a server of its own."""
        return 1

    def exchanges(self, plan: StepPlan, placement: Placement) -> tuple[Exchange, ...]:
        """Pull (exposed: the forward pass waits for it) and push (hides in the backward pass).

        Over the network the slower of a worker's node and the fullest server counts; the
        copy between host and GPU follows it.
        """
        size = float(sent_bytes(plan))
        if size == 0:
            return ()
        cluster = placement.cluster
        network = across(cluster)
        host = effective(cluster.server.pcie, "pcie")
        sharing = min(placement.gpus_per_server, cluster.server.pcie_gpus_sharing or 1)
        payload = tuple((float(g.sent_bytes), g.ready_index) for g in plan.gradients)
        largest = max(part_bytes for part_bytes, _ in payload)
        # A variable is not split over servers, so the largest decides the fullest server.
        imbalance = max(1.0, placement.ps * largest / size)

        def seconds(size_bytes: float) -> float:
            over_network = push_or_pull_s(
                size_bytes, placement.gpus_per_server, placement.gpus, placement.ps, imbalance,
                network.bytes_per_s, network.bytes_per_s, network.latency_s,
            )  # fmt: skip
            return over_network + sharing * size_bytes / host.bytes_per_s

        kind = f"{placement.ps} parameter server{'s' if placement.ps > 1 else ''}"
        return (
            Exchange("pull weights", "network", kind, payload, size, seconds, False, network.interference),
            Exchange("push gradients", "network", kind, payload, size, seconds, True, network.interference),
        )

    def buffer_bytes(self, plan: StepPlan, placement: Placement) -> int:
        """Gradients go to the host as they are."""
        return 0


def sent_bytes(plan: StepPlan) -> int:
    """Bytes of all gradients, tables marked sparse by their touched rows."""
    return sum(gradient.sent_bytes for gradient in plan.gradients)


ARCHITECTURES.add(ParameterServer.name, ParameterServer())
