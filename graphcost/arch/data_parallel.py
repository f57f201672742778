"""nn.DataParallel: one process of one server, weights copied to every GPU at each step, gradients added on the first.

One Python thread a GPU in one process: launches of both passes come one GPU after another, as the
measured steps have it (the interpreter's lock forward, the driver's backward). Source:
torch.nn.parallel (replicate, broadcast and add in one autograd function, so that neither hides);
constants and where they are from: ``graphcost/network/data_parallel.toml``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from graphcost.arch._base import (
    ARCHITECTURES,
    Exchange,
    InOneServer,
    PaperTraffic,
    Placement,
    dense_payload,
)
from graphcost.collectives import broadcast_s
from graphcost.engine.paper import Medium
from graphcost.errors import PlacementError
from graphcost.ir import Phase
from graphcost.network.links import effective, inside
from graphcost.training import StepPlan


@cache
def _table() -> Mapping[str, Any]:
    return tomllib.loads(files("graphcost.network").joinpath("data_parallel.toml").read_text("utf-8"))


class DataParallel(InOneServer):
    """Weights go out from the first GPU and gradients come back: S each way, all of it waited for.

    What is gathered on the first GPU beside gradients (outputs) is not counted, nor the loss there.
    """

    name = "dataparallel"
    title = "nn.DataParallel: one process, weights copied to every GPU at each step"

    def paper_media(self, placement: Placement) -> tuple[Medium, ...]:
        """NVLink, as AllReduce inside a server; nothing for one GPU."""
        return (Medium.NVLINK,) if placement.gpus > 1 else ()

    def paper_traffic(self, plan: StepPlan, placement: Placement) -> tuple[PaperTraffic, ...]:
        """2 W: weights out, gradients back. The study does not treat it; its rule for centralised jobs."""
        if placement.gpus == 1:
            return ()
        return (PaperTraffic("weights and gradients", 2.0 * plan.gradient_bytes, self.paper_media(placement)),)

    def local_plan(self, plan: StepPlan, placement: Placement) -> StepPlan:
        """The plan as it is; inference copies weights too, but nothing here says how many tensors."""
        if placement.gpus > 1 and not plan.gradients:
            raise PlacementError("architecture 'dataparallel' on several GPUs is known for training, not inference")
        return plan

    def host_s(self, once: Mapping[Phase, float], plan: StepPlan, placement: Placement) -> Mapping[Phase, float]:
        """Launches for every GPU one after another, and the module is copied tensor by tensor; one update."""
        if placement.gpus == 1:
            return once
        forward_s, backward_s = (placement.gpus * once[phase] for phase in (Phase.FORWARD, Phase.BACKWARD))
        copying_s = len(plan.gradients) * float(_table()["host"]["tensor_s"])
        return {**once, Phase.FORWARD: forward_s + copying_s, Phase.BACKWARD: backward_s}

    def exchanges(self, plan: StepPlan, placement: Placement) -> tuple[Exchange, ...]:
        """A broadcast before the step and a sum after it; neither hides."""
        payload = dense_payload(plan.gradients)
        if placement.gpus == 1 or not payload:
            return ()
        server, size = placement.cluster.server, float(plan.gradient_bytes)
        link = inside(placement.cluster, placement.gpus)
        if server.scale_up is None:  # copies go one way from one GPU: faster than a ring that has every GPU send
            rate = _table()["copy"]["pcie_share"] * server.pcie.bytes_per_s
            link = replace(effective(server.pcie, "pcie"), bytes_per_s=rate, source=_table()["copy"]["source"])

        def seconds(size_bytes: float) -> float:
            return broadcast_s(size_bytes, placement.gpus, link.bytes_per_s, link.latency_s)

        rest = (seconds, False, link.interference, "S/B + (n-1) a", link.source)
        return (
            Exchange("weights to all GPUs", link.name, "broadcast", payload, size, *rest, spread=link.spread),
            Exchange("gradients to the first GPU", link.name, "reduce", payload, size, *rest, spread=link.spread),
        )

    def buffer_bytes(self, plan: StepPlan, placement: Placement) -> int:
        """The copies of the weights are the weights of the other GPUs; sums are made in pieces."""
        return 0


ARCHITECTURES.add(DataParallel.name, DataParallel())
