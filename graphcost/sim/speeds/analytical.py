"""DL2's analytical speed model: computation, then pulls and pushes over the slowest link; placement counts.

A worker's step on node n is compute + max(2 (S/P) / b_inter, 2 (S/P) / b_intra), b_intra shared by the larger
of the node's workers and servers, b_inter by the servers elsewhere and by the workers that the servers' nodes
do not hold; as in the source, a worker beside every server still has the inter term. The job's step is its
slowest worker's. W workers do W steps at once: 1 step is one ``batch``.
Source: DL2 (arXiv 1909.06040) and its public code; its OfflineRL baseline trains on this.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files

from graphcost.sched import Tasks
from graphcost.sim.jobs import SimCluster, TrainedModel
from graphcost.sim.speeds.base import can_train, check_known, check_served, counts_of


class AnalyticalSpeeds:
    """The eight models with the constants of ``analytical.toml``."""

    def __init__(self) -> None:
        data = tomllib.loads(files("graphcost.sim.speeds").joinpath("analytical.toml").read_text("utf-8"))
        self.name = "analytical"
        self.note: str = data["source"]
        self._models: dict[str, dict[str, float]] = data["models"]
        self.models = tuple(self._models)

    def check(self, model: TrainedModel) -> None:
        """Known by name, with parameter servers."""
        check_served(model, self.name)
        check_known(model, self.models, self.name)

    def samples_per_s(self, model: TrainedModel, tasks: tuple[Tasks, ...]) -> float:
        """Of the slowest node's workers, times all workers."""
        workers, ps = counts_of(tasks)
        if not can_train(model, workers, ps):
            return 0.0
        known = self._models[model.name]
        beside_servers = min(group.workers for group in tasks if group.ps)
        slowest_s = max(self._step_s(known, group, workers, ps, beside_servers) for group in tasks if group.workers)
        return known["batch"] * workers / slowest_s

    def most_samples_per_s(self, model: TrainedModel, workers: int, ps: int, cluster: SimCluster) -> float:
        """As if no link were shared."""
        if not can_train(model, workers, ps):
            return 0.0
        known = self._models[model.name]
        shard_mb = known["size_mb"] / ps
        step_s = known["compute_s"] + 2 * shard_mb / max(known["inter_mb_per_s"], known["intra_mb_per_s"])
        return known["batch"] * workers / step_s

    @staticmethod
    def _step_s(known: dict[str, float], group: Tasks, workers: int, ps: int, beside_servers: int) -> float:
        shard_mb = known["size_mb"] / ps
        intra = known["intra_mb_per_s"] / max(group.ps, group.workers)
        inter = known["inter_mb_per_s"]
        if ps > group.ps:
            inter = min(inter / (ps - group.ps), inter / max(1, workers - beside_servers))
        return known["compute_s"] + max(2 * shard_mb / inter, 2 * shard_mb / intra)
