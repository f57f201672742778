"""1w1g: one worker on one GPU; weights move nowhere. Source: PAI study, Table II."""

from __future__ import annotations

from graphcost.arch._base import ARCHITECTURES, Exchange, PaperTraffic, Placement, Replicated
from graphcost.engine.paper import Medium
from graphcost.errors import PlacementError
from graphcost.training import StepPlan


class Single(Replicated):
    """One GPU, nothing to send."""

    name = "single"
    title = "1w1g: one GPU"

    def check(self, placement: Placement) -> None:
        """One GPU only."""
        if placement.gpus > 1:
            raise PlacementError(
                f"architecture 'single' is one GPU, {placement.gpus} were given; use --gpus 1, or --arch allreduce"
            )

    def paper_media(self, placement: Placement) -> tuple[Medium, ...]:
        """None."""
        return ()

    def paper_traffic(self, plan: StepPlan, placement: Placement) -> tuple[PaperTraffic, ...]:
        """Nothing."""
        return ()

    def paper_input_sharing(self, placement: Placement) -> int:
        """Alone on its PCIe."""
        return 1

    def exchanges(self, plan: StepPlan, placement: Placement) -> tuple[Exchange, ...]:
        """Nothing."""
        return ()

    def buffer_bytes(self, plan: StepPlan, placement: Placement) -> int:
        """Nothing is sent."""
        return 0


ARCHITECTURES.add(Single.name, Single())
