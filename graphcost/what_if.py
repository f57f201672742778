"""One model under changed options, again and again: loaded once per batch, planned once per recipe."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from graphcost.analysis import analyze_graph, predict
from graphcost.described import samples_per_s
from graphcost.errors import GraphcostError
from graphcost.fitting import at_batch, fits, memory_on
from graphcost.graph import build_graph
from graphcost.links import LinkKind
from graphcost.placing import AnalysisOptions, Choice, resolve
from graphcost.planning import plan_for
from graphcost.predict import StepTime
from graphcost.recipe import Recipe
from graphcost.result import Analysis
from graphcost.sources import load_model
from graphcost.training import Memory, StepPlan, plan_step
from graphcost.verdict import Verdict, judge

if TYPE_CHECKING:
    from graphcost.graph import OpGraph


@dataclass(frozen=True, slots=True)
class Outcome:
    """What ``analyze`` would say under ``options``: the step, its verdict, its memory.

    ``batch``: samples per GPU, None for a model without a batch. ``samples_per_s``: of the whole job.
    """

    options: AnalysisOptions
    choice: Choice
    batch: int | None
    plan: StepPlan
    step: StepTime
    verdict: Verdict
    memory: Memory
    fits: bool
    samples_per_s: float | None

    @property
    def work_per_s(self) -> float:
        """Samples per second; where a model has no batch, replicas' micro-batches per second."""
        if self.samples_per_s is not None:
            return self.samples_per_s
        micro_batches = self.choice.placement.gpus * self.options.accumulate
        return micro_batches / self.step.step_s if self.step.step_s else 0.0

    @property
    def global_batch(self) -> int | None:
        """Samples of one step of the whole job."""
        if self.batch is None:
            return None
        return self.batch * self.choice.placement.gpus * self.options.accumulate


class WhatIf:
    """A model and its options as given (``base``), and what other options make of it.

    Names, sizes and placement are those of ``analyze`` and fail the same way.
    """

    def __init__(self, source: Any, options: AnalysisOptions, example_inputs: Any = None) -> None:
        choice = resolve(options)  # a wrong name or placement fails before the file is read
        self._source, self._examples = source, example_inputs
        self._load = replace(options.load, batch=None)
        graph = build_graph(load_model(source, options.load, example_inputs))
        self._model = graph.graph["model"]
        self._graphs: dict[int | None, OpGraph | GraphcostError] = {self._model.batch: graph}
        self._plans: dict[tuple[int | None, Recipe], StepPlan] = {}
        self.base = self._outcome(options, choice)

    def at(self, options: AnalysisOptions) -> Outcome:
        """The outcome under ``options``, which may differ from the base's in anything but the model's other sizes.

        Raises what ``resolve`` raises, and ``GraphcostError`` where the batch cannot be changed.
        """
        return self._outcome(options, resolve(options))

    def analysis(self, options: AnalysisOptions, command: str = "analyze") -> Analysis:
        """The whole analysis under ``options``, as ``analyze`` makes it."""
        return analyze_graph(self._graph(options.load.batch), options, resolve(options), command=command)

    def _outcome(self, options: AnalysisOptions, choice: Choice) -> Outcome:
        plan = plan_for(self._graph(options.load.batch), choice, self._plan(options.load.batch, choice.recipe))
        step = predict(plan, choice, options)
        memory = memory_on(plan, choice)
        return Outcome(
            options=options,
            choice=choice,
            batch=plan.batch,
            plan=plan,
            step=step,
            verdict=judge(step, options.max_comm_share),
            memory=memory,
            fits=fits(memory, choice.placement.cluster.device),
            samples_per_s=samples_per_s(step, plan, choice),
        )

    def _plan(self, batch: int | None, recipe: Recipe) -> StepPlan:
        key = (self._model.batch if batch is None else batch, recipe)
        if key not in self._plans:
            self._plans[key] = plan_step(self._graph(batch), recipe)
        return self._plans[key]

    def _graph(self, batch: int | None) -> OpGraph:
        """The graph at a batch; a batch that failed to load fails again without being tried."""
        if batch is None:
            batch = self._model.batch
        if batch not in self._graphs:
            assert batch is not None  # the model's own batch, or that it has none, is there from the start
            try:
                found: OpGraph | GraphcostError = at_batch(
                    self._source, self._load, batch, self._examples, base=self._model
                )
            except GraphcostError as error:
                found = error
            self._graphs[batch] = found
        known = self._graphs[batch]
        if isinstance(known, GraphcostError):
            raise known
        return known


def no_difference(resource: str, base: Outcome) -> str:
    """What to say of a resource whose change leaves the step as it is, with the cause where it is known."""
    network = base.choice.placement.cluster.network
    capped = resource == "network" and network.kind in (LinkKind.TCP, LinkKind.TCP_CLOUD)
    return "makes no difference" + (f": {network.kind} sockets have a rate of their own" if capped else "")
