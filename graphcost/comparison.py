"""One model under several architectures and GPU counts: PAI's projection, for one graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from graphcost.analysis import analyze_graph, analyze_with
from graphcost.arch import SYNCHRONOUS, architecture_named
from graphcost.errors import PlacementError, UsageError
from graphcost.global_batch import at_global_batch
from graphcost.graph import build_graph
from graphcost.parallel.mesh import is_mesh, parse_mesh
from graphcost.placing import AnalysisOptions, resolve, with_arch
from graphcost.planning import plan_for
from graphcost.recipe import Recipe
from graphcost.result import Analysis
from graphcost.searching import best_meshes
from graphcost.sources import load_model
from graphcost.training import StepPlan, memory_moments, plan_step

if TYPE_CHECKING:
    from graphcost.graph import OpGraph


MESHES = 4
"""Meshes of tensor and pipeline parallelism beside the other architectures, for each number of GPUs."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An architecture that a placement cannot hold."""

    arch: str
    gpus: int
    reason: str


def _sensible(gpus: int) -> tuple[str, ...]:
    """Architectures worth a row: one GPU has nothing to reduce, several are not ``single``."""
    alone = {"single", "ps"}
    return tuple(name for name in SYNCHRONOUS if (name in alone if gpus == 1 else name != "single"))


@dataclass(frozen=True, slots=True)
class Comparison:
    """Results from fastest to slowest by samples per second, what does not fit behind, and what was refused."""

    name: str
    source: str
    ranked: tuple[Analysis, ...]
    refused: tuple[Refusal, ...]
    notes: tuple[str, ...]


def compare_model(
    source: Any, options: AnalysisOptions, gpu_counts: Sequence[int], archs: Sequence[str] = ()
) -> Comparison:
    """Analyse ``source`` once per architecture and GPU count; the graph is loaded once, and planned once per recipe.

    Without ``archs`` the best meshes of tensor and pipeline parallelism are among them (``searching``).

    An architecture that a placement cannot hold is refused by name; where none is left,
    raises ``PlacementError``.
    """
    for name in archs:
        architecture_named(name)
    base = with_arch(replace(options, gpus=1, servers=None), "single")
    resolve(base)  # names and cluster are checked before the file is read
    results: list[Analysis] = []
    refused: list[Refusal] = []
    for graph, counts, sized in graphs_of(source, options, gpu_counts, archs):
        plans: dict[Recipe, StepPlan] = {}
        wanted = [(gpus, archs or _sensible(gpus)) for gpus in counts]
        if not archs and options.profile != "paper":
            for gpus in counts:
                try:
                    wanted.append((gpus, best_meshes(graph, sized, gpus, MESHES) if gpus > 1 else ()))
                except PlacementError as error:
                    refused.append(Refusal("tp x pp x dp", gpus, str(error)))
        for gpus, names in wanted:
            done, not_possible = run_placements(graph, sized, [gpus], names, plans) if names else ([], [])
            results, refused = results + done, refused + not_possible
    return _ranked(graph, results, refused)


def graphs_of(
    source: Any, options: AnalysisOptions, gpu_counts: Sequence[int], archs: Sequence[str]
) -> Iterator[tuple[OpGraph, Sequence[int], AnalysisOptions]]:
    """The graph with the numbers of GPUs that it is for: one for all, but for a batch of the whole job.

    Raises ``UsageError`` for a global batch that a number of GPUs does not divide, or micro-batches of ``archs``.
    """
    if options.global_batch is None:
        yield build_graph(load_model(source, options.load)), gpu_counts, options
        return
    counted = [name for name in archs if is_mesh(name) and parse_mesh(name).micro_batches]
    if counted:
        raise UsageError(f"--global-batch with --arch {counted[0]}: leave out mb, which would make it another batch")
    sizes = [at_global_batch(one, resolve(one)) for one in (with_gpus(options, gpus) for gpus in gpu_counts)]
    for gpus, sized in zip(gpu_counts, sizes, strict=True):
        chosen = replace(options, load=sized.load, global_batch=None)
        yield build_graph(load_model(source, chosen.load)), [gpus], chosen


def with_gpus(options: AnalysisOptions, gpus: int) -> AnalysisOptions:
    """``options`` for so many replicas, which any architecture of as many GPUs has the samples of."""
    return with_arch(replace(options, gpus=gpus, servers=None), "allreduce" if gpus > 1 else "single")


def analyze_in_detail(source: Any, options: AnalysisOptions, *, example_inputs: Any = None) -> Analysis:
    """``analyze_with``, and what the HTML report shows beside: memory over the step, every architecture."""

    def further(result: Analysis, graph: OpGraph, plan: StepPlan) -> Analysis:
        assert result.details is not None
        counts = [result.placement.gpus]
        try:
            others = _ranked(graph, *run_placements(graph, options, counts, (), {plan.recipe: plan}))
            ranked, refused = others.ranked, tuple(f"{one.arch}: {one.reason}" for one in others.refused)
        except PlacementError as error:
            ranked, refused = (), (str(error),)
        details = replace(result.details, memory=memory_moments(graph, plan), architectures=ranked, refused=refused)
        return replace(result, details=details)

    return analyze_with(source, options, example_inputs=example_inputs, further=further)


def _ranked(graph: OpGraph, results: Sequence[Analysis], refused: Sequence[Refusal]) -> Comparison:
    """What fits first, by throughput of one GPU; raises ``PlacementError`` where nothing could be placed."""
    if not results:
        raise PlacementError("; ".join(entry.reason for entry in refused))
    ranked = sorted(
        results,
        key=lambda one: (
            not one.training.memory.fits,
            one.step.step_s / (one.placement.gpus or 1),
            one.placement.gpus,
        ),
    )
    model = graph.graph["model"]
    return Comparison(model.name, model.source, tuple(ranked), tuple(refused), ranked[0].model.notes)


def run_placements(
    graph: OpGraph,
    options: AnalysisOptions,
    gpu_counts: Sequence[int],
    archs: Sequence[str],
    plans: dict[Recipe, StepPlan],
) -> tuple[list[Analysis], list[Refusal]]:
    """One analysis per GPU count and architecture (none named: all that make sense), and what was refused.

    ``plans`` keeps the steps planned, by recipe, for further calls with the same graph.
    """
    results: list[Analysis] = []
    refused: list[Refusal] = []
    for gpus in gpu_counts:
        for name in archs or _sensible(gpus):
            tried = with_arch(replace(options, gpus=gpus), name)
            try:
                choice = resolve(tried)
                if choice.recipe not in plans:
                    plans[choice.recipe] = plan_step(graph, choice.recipe)
                plan = plan_for(graph, choice, plans[choice.recipe])
                results.append(analyze_graph(graph, tried, choice, command="compare", plan=plan))
            except PlacementError as error:
                refused.append(Refusal(name, gpus, str(error)))
    return results, refused
