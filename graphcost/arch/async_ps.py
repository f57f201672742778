"""Asynchronous PS/Worker: every worker pulls, computes and pushes at its own pace; nothing waits at a barrier.

A worker's step is that of one worker with the parameter servers to itself, and no shorter than
the servers need for one step of everybody: ``T = max(T1, m 2 k S/(P B))``. A gradient is
``n - 1`` updates of the others old when it arrives, on average, where all are as fast; what that does to
convergence is not modelled. Derived from the synchronous forms, not measured: no table has such rows.
Source: Dean et al., Large Scale Distributed Deep Networks (NIPS 2012); Li et al., OSDI 2014.
"""

from __future__ import annotations

from graphcost.arch._base import ARCHITECTURES, Placement, PsStyle
from graphcost.arch.parameter_server import ParameterServer
from graphcost.arch.ps_styles import serving_s
from graphcost.training import StepPlan


class AsyncParameterServer(ParameterServer):
    """The exchanges are the synchronous ones' of a worker that is alone; GPUs of a server sum as before."""

    name = "async-ps"
    title = "PS/Worker without a barrier: workers do not wait for each other"

    def serving_s(self, plan: StepPlan, placement: Placement) -> float:
        """How long the fullest parameter server is busy with one step of every worker."""
        return serving_s(tuple((float(g.sent_bytes), g.ready_index) for g in plan.gradients), placement)


def staleness(placement: Placement) -> int:
    """Updates of others between a worker's pull and its push, on average, where all workers are as fast."""
    return (placement.gpus if placement.ps_style is PsStyle.GRPC else placement.servers) - 1


ARCHITECTURES.add(AsyncParameterServer.name, AsyncParameterServer())
