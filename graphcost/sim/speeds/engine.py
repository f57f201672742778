"""Speeds from graphcost's own cost engine: a model's step predicted on a cluster, per worker count and placement.

One worker is one GPU. Jobs with parameter servers are predicted under ``ps``, others under ``allreduce``
(``single`` for one worker). The graph is read once per batch, a prediction made once per (model, workers,
servers, nodes of the workers).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from graphcost.errors import UsageError
from graphcost.frontends.options import LoadOptions
from graphcost.placing import AnalysisOptions, resolve
from graphcost.sched import Tasks
from graphcost.sched.view import MILLI
from graphcost.sim.jobs import SimCluster, TrainedModel
from graphcost.sim.speeds.base import can_train, counts_of

if TYPE_CHECKING:
    from graphcost.training import StepPlan


class EngineSpeeds:
    """Models by their sources (``zoo:resnet50``, a file); options as of ``graphcost analyze``."""

    models: tuple[str, ...] = ()

    def __init__(self, options: AnalysisOptions) -> None:
        self._options = options
        self.gpus_per_server = resolve(replace(options, arch="single", gpus=1)).placement.cluster.server.gpus
        self._plans: dict[tuple[str, int], StepPlan] = {}
        self._made: dict[tuple[str, int, int, int], float] = {}
        self.name = f"engine:{options.cluster}"
        self.note = f"graphcost's {options.profile} predictions on {options.cluster}, {options.precision}"

    def check(self, model: TrainedModel) -> None:
        """Loads the model; raises what its frontend raises. A worker must be one GPU."""
        if model.worker.gpu_milli != MILLI:
            raise UsageError(
                f"{model.name}: a worker of {model.worker.gpu_milli / MILLI:g} GPUs; "
                "predicted speeds are of whole ones"
            )
        self._rate(model, 1, int(model.ps is not None), 1)

    def samples_per_s(self, model: TrainedModel, tasks: tuple[Tasks, ...]) -> float:
        """By counts and by the number of nodes that hold workers."""
        return self._rate(model, *counts_of(tasks), sum(group.workers > 0 for group in tasks))

    def most_samples_per_s(self, model: TrainedModel, workers: int, ps: int, cluster: SimCluster) -> float:
        """Over packed, doubling and fully spread placements."""
        least = -(-workers // self.gpus_per_server)
        widest = min(workers, len(cluster.nodes))
        spreads = {least, max(least, widest), *(least << power for power in range(1, 6) if least << power < widest)}
        return max((self._rate(model, workers, ps, nodes) for nodes in spreads), default=0.0)

    def _rate(self, model: TrainedModel, workers: int, ps: int, nodes: int) -> float:
        if not can_train(model, workers, ps):
            return 0.0
        servers = min(workers, max(nodes, -(-workers // self.gpus_per_server)))
        key = (model.name, workers, ps, servers)
        if key not in self._made:
            self._made[key] = self._predict(model, workers, ps, servers)
        return self._made[key]

    def _predict(self, model: TrainedModel, workers: int, ps: int, servers: int) -> float:
        from graphcost.analysis import predict

        batch = math.ceil(model.batch if model.batch_grows else model.batch / workers)
        arch = "ps" if model.ps is not None else "allreduce" if workers > 1 else "single"
        options = replace(
            self._options,
            arch=arch,
            gpus=workers,
            servers=servers,
            ps=ps if arch == "ps" else None,
            load=LoadOptions(batch, {}, {}, {}),
        )
        choice = resolve(options)
        step = predict(self._plan(model.name, options), choice, options)
        # A batch that does not divide evenly is rounded up per worker; only the samples asked for are progress.
        samples = model.batch * workers if model.batch_grows else model.batch
        return samples / step.step_s

    def _plan(self, source: str, options: AnalysisOptions) -> StepPlan:
        from graphcost.graph import build_graph
        from graphcost.sources import load_model
        from graphcost.training import plan_step

        batch = options.load.batch or 1
        if (source, batch) not in self._plans:
            self._plans[source, batch] = plan_step(
                build_graph(load_model(source, options.load)), resolve(options).recipe
            )
        return self._plans[source, batch]
