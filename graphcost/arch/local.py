"""1wNg: one server, weights on the CPU, GPUs pull and push over PCIe. Source: PAI study, Table II."""

from __future__ import annotations

from graphcost.arch._base import (
    ARCHITECTURES,
    Exchange,
    InOneServer,
    PaperTraffic,
    Placement,
    dense_payload,
)
from graphcost.engine.paper import Medium
from graphcost.network.links import effective
from graphcost.training import StepPlan


class Local(InOneServer):
    """Centralised inside one server: S_w = 2 W per GPU (pull and push) over PCIe."""

    name = "local"
    title = "1wNg: weights on the CPU of one server"

    def paper_media(self, placement: Placement) -> tuple[Medium, ...]:
        """PCIe; nothing for one GPU, which keeps its weights."""
        return (Medium.PCIE,) if placement.gpus > 1 else ()

    def paper_traffic(self, plan: StepPlan, placement: Placement) -> tuple[PaperTraffic, ...]:
        """2 W over PCIe, charged once per GPU."""
        if placement.gpus == 1:
            return ()
        return (PaperTraffic("weights and gradients", 2.0 * plan.gradient_bytes, self.paper_media(placement)),)

    def exchanges(self, plan: StepPlan, placement: Placement) -> tuple[Exchange, ...]:
        """A pull before the step, exposed, and a push that hides in the backward pass.

        GPUs behind one PCIe uplink share it: N S / uplinks in each direction.
        """
        if placement.gpus == 1 or not plan.gradients:
            return ()
        server = placement.cluster.server
        link = effective(server.pcie, "pcie")
        sharing = min(placement.gpus, server.pcie_gpus_sharing or 1)
        payload = dense_payload(plan.gradients)
        size = float(plan.gradient_bytes)

        def seconds(size_bytes: float) -> float:
            return sharing * size_bytes / link.bytes_per_s + link.latency_s

        rest = (link.interference, f"{sharing} S / B of PCIe", link.source)
        return (
            Exchange(
                "pull weights", "pcie", "copy from host", payload, size, seconds, False, *rest, spread=link.spread
            ),
            Exchange(
                "push gradients", "pcie", "copy to host", payload, size, seconds, True, *rest, spread=link.spread
            ),
        )

    def buffer_bytes(self, plan: StepPlan, placement: Placement) -> int:
        """Gradients go to the host as they are."""
        return 0


ARCHITECTURES.add(Local.name, Local())
