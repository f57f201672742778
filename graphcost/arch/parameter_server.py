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
        """Push and pull as the placement's implementation does it; lookup tables by their touched rows."""
        return ps_exchanges(tuple((float(g.sent_bytes), g.ready_index) for g in plan.gradients), placement)

    def buffer_bytes(self, plan: StepPlan, placement: Placement) -> int:
        """Gradients go to the host as they are."""
        return 0


def sent_bytes(plan: StepPlan) -> int:
    """Bytes of all gradients, tables marked sparse by their touched rows."""
    return sum(gradient.sent_bytes for gradient in plan.gradients)


ARCHITECTURES.add(ParameterServer.name, ParameterServer())
