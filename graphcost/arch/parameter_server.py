"""PS/Worker: workers pull weights from parameter servers and push gradients to them.

Source: PAI study, Table II (Ethernet and PCIe, one after the other); Li et al., OSDI 2014.
"""

from __future__ import annotations

from graphcost.arch._base import ARCHITECTURES, Exchange, PaperTraffic, Placement, Replicated
from graphcost.arch.ps_styles import ps_exchanges
from graphcost.engine.paper import Medium
from graphcost.training import StepPlan


class ParameterServer(Replicated):
    """Centralised over the network. Lookup tables travel as touched rows."""

    name = "ps"
    title = "PS/Worker: parameter servers on hosts of their own, or beside the workers"

    def check(self, placement: Placement) -> None:
        """Any placement with a parameter server."""

    def paper_media(self, placement: Placement) -> tuple[Medium, ...]:
        """Ethernet, then PCIe."""
        return (Medium.ETHERNET, Medium.PCIE)

    def paper_traffic(self, plan: StepPlan, placement: Placement) -> tuple[PaperTraffic, ...]:
        """S_w = 2 W: pull and push. Tables marked sparse count their touched rows."""
        media = self.paper_media(placement)
        rows_bytes = sum(g.sent_bytes for g in plan.gradients if g.sparse and g.rows_bytes is not None)
        dense_bytes = sum(g.sent_bytes for g in plan.gradients) - rows_bytes
        parts = [PaperTraffic("weights and gradients", 2.0 * dense_bytes, media)]
        if rows_bytes:
            parts.append(PaperTraffic("embedding rows", 2.0 * rows_bytes, media, rows=True))
        return tuple(parts)

    def paper_input_sharing(self, placement: Placement) -> int:
        """Each worker sits on a server of its own."""
        return 1

    def exchanges(self, plan: StepPlan, placement: Placement) -> tuple[Exchange, ...]:
        """Push and pull as the placement's implementation does it; lookup tables by their touched rows."""
        return ps_exchanges(tuple((float(g.sent_bytes), g.ready_index) for g in plan.gradients), placement)

    def buffer_bytes(self, plan: StepPlan, placement: Placement) -> int:
        """Gradients go to the host as they are."""
        return 0


ARCHITECTURES.add(ParameterServer.name, ParameterServer())
