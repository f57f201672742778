"""A step time for every measured row: models and plans are made once for all rows that share them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from graphcost.analysis import predict
from graphcost.arch import ARCHITECTURES, Placement, PsOn, PsStyle
from graphcost.arch.product import Product
from graphcost.engine.timeline import Overlap
from graphcost.errors import GraphcostError
from graphcost.graph import build_graph
from graphcost.parallel.division import DividedPlan
from graphcost.parallel.mesh import is_mesh, parse_mesh
from graphcost.placing import AnalysisOptions, Choice, bucketing_of
from graphcost.predict import Profile, StepTime
from graphcost.training import StepPlan, plan_step
from graphcost.validation.jobs import Job, Skipped, job_of
from graphcost.validation.meshes import MeshPlans
from graphcost.validation.tables import MeasuredRow
from graphcost.validation.traces import model_at, with_fast_norms

if TYPE_CHECKING:
    from graphcost.graph import OpGraph

PLANS_KEPT = 256
"""Rows of one job follow each other, so that few plans serve them all."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A row with its prediction, or with the reason why there is none."""

    row: MeasuredRow
    job: Job | None
    step: StepTime | None
    skipped: str = ""

    @property
    def error(self) -> float | None:
        """Predicted over measured, less one; None without a prediction."""
        if self.step is None or not self.row.step_s:
            return None
        return self.step.step_s / self.row.step_s - 1


class Predictor:
    """Predicts rows; keeps plans, since hundreds of rows differ in the placement alone.

    ``cache``: a folder for traces of models that are not the zoo's; None keeps none.
    """

    def __init__(self, profile: Profile = Profile.CALIBRATED, cache: Path | None = None) -> None:
        self._profile = profile
        self._cache = cache
        self._plans: dict[tuple[object, ...], StepPlan | str] = {}
        self._graphs: dict[tuple[object, ...], OpGraph] = {}
        self._meshes = MeshPlans()

    def predict(self, rows: Iterable[MeasuredRow]) -> Iterator[Outcome]:
        """Outcomes in the rows' order."""
        for row in rows:
            job = job_of(row)
            if isinstance(job, Skipped):
                yield Outcome(row, None, None, job.reason)
                continue
            if is_mesh(job.arch):
                yield self._over_mesh(row, job)
                continue
            plan = self.plan(job)
            if isinstance(plan, str):
                yield Outcome(row, job, None, plan)
                continue
            try:
                yield Outcome(row, job, self._step(job, plan))
            except GraphcostError as error:
                yield Outcome(row, job, None, str(error))

    def _over_mesh(self, row: MeasuredRow, job: Job) -> Outcome:
        """A row of tensor or pipeline parallelism, whose plan depends on where it runs."""
        key = (job.source, job.batch, tuple(sorted(job.dims.items())))
        try:
            if key not in self._graphs:
                self._graphs = {key: build_graph(model_at(job.source, job.batch, job.dims, self._cache))}
            graph, mesh = self._graphs[key], parse_mesh(job.arch).on(job.gpus)
            per_server = -(-job.gpus // job.servers)
            plan = self._meshes.divided(key, graph, job.recipe, mesh, job.cluster, per_server)
            return Outcome(row, job, self._step(job, plan))
        except GraphcostError as error:
            return Outcome(row, job, None, str(error))

    def plan(self, job: Job) -> StepPlan | str:
        """The step that ``job`` runs, or why it cannot be built."""
        key = (job.source, job.batch, tuple(sorted(job.dims.items())), job.recipe, job.fast_norms)
        if key not in self._plans:
            if len(self._plans) >= PLANS_KEPT:
                del self._plans[next(iter(self._plans))]
            try:
                model = model_at(job.source, job.batch, job.dims, self._cache)
                model = with_fast_norms(model) if job.fast_norms else model
                self._plans[key] = plan_step(build_graph(model), job.recipe)
            except GraphcostError as error:
                self._plans[key] = str(error)
        return self._plans[key]

    def _step(self, job: Job, plan: StepPlan) -> StepTime:
        arch = Product(plan.mesh) if isinstance(plan, DividedPlan) else ARCHITECTURES.find(job.arch)
        placement = Placement(
            job.gpus, job.servers, job.ps, job.cluster, PsStyle(job.ps_style), ps_on=PsOn(job.ps_on)
        )
        arch.check(placement)
        default = Overlap.NONE if self._profile is Profile.PAPER else Overlap.BUCKETED
        choice = Choice(
            arch=arch,
            placement=placement,
            cluster_source="table",
            profile=self._profile,
            overlap=Overlap(job.overlap) if job.overlap else default,
            bucketing=bucketing_of(job.buckets),
            recipe=plan.recipe,
        )
        return predict(plan, choice, AnalysisOptions())
