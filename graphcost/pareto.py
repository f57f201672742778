"""Time, money and energy of one model over clusters, GPU counts and architectures: what nothing else beats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from graphcost.comparison import graphs_of, run_placements
from graphcost.device_db import cluster_names, load_cluster
from graphcost.errors import PlacementError, UsageError
from graphcost.placing import AnalysisOptions, resolve, with_arch
from graphcost.recipe import Recipe
from graphcost.result import Analysis
from graphcost.training import StepPlan
from graphcost.units import MILLION

Objectives = tuple[float, ...]


class Standing(StrEnum):
    """Where a point stands."""

    FRONTIER = "frontier"  # nothing is at least as good in everything and better in something
    DOMINATED = "dominated"
    DOES_NOT_FIT = "does not fit"
    NOT_JUDGED = "not judged"  # time, money or energy is not known


@dataclass(frozen=True, slots=True)
class Point:
    """One placement. ``s``, ``usd`` and ``kwh`` are of a million samples, energy that of the GPUs alone.

    ``dominated_by``: the place in the list of a point of the frontier that beats it. ``reason``: of no judgement.
    """

    analysis: Analysis
    s: float | None
    usd: float | None
    kwh: float | None
    standing: Standing
    dominated_by: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class NotPossible:
    """A placement that a cluster cannot hold; None: a whole cluster, or all its architectures."""

    cluster: str
    arch: str | None
    gpus: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Pareto:
    """All points, the frontier first, each part from fast to slow."""

    name: str
    source: str
    points: tuple[Point, ...]
    refused: tuple[NotPossible, ...]
    profile: str
    notes: tuple[str, ...]


def dominates(one: Objectives, other: Objectives) -> bool:
    """Whether ``one`` is nowhere worse and somewhere better; less is better.

    >>> dominates((1.0, 2.0), (1.0, 3.0)), dominates((1.0, 2.0), (1.0, 2.0))
    (True, False)
    """
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))


def frontier_of(values: Sequence[Objectives]) -> tuple[int | None, ...]:
    """For each entry None if nothing dominates it, else the index of one on the frontier that does.

    In lexicographic order whatever dominates an entry comes before it, and if anything does,
    something on the frontier does: one pass against the frontier found so far.

    >>> frontier_of([(1.0, 3.0), (2.0, 2.0), (2.0, 3.0)])
    (None, None, 0)
    """
    found: list[int | None] = [None] * len(values)
    frontier: list[int] = []
    for index in sorted(range(len(values)), key=lambda i: values[i]):
        found[index] = next((best for best in frontier if dominates(values[best], values[index])), None)
        if found[index] is None:
            frontier.append(index)
    return tuple(found)


def priced_clusters() -> tuple[str, ...]:
    """Ids of the database's clusters that have a price, sorted."""
    return tuple(name for name in cluster_names() if load_cluster(name).price is not None)


def pareto_model(
    source: Any,
    options: AnalysisOptions,
    clusters: Sequence[str],
    gpu_counts: Sequence[int],
    archs: Sequence[str] = (),
) -> Pareto:
    """``source`` on every cluster; the graph is loaded once, a placement that cannot be is named with the reason.

    Raises ``PlacementError`` where none is possible, ``UsageError`` for a model without a batch
    and for clusters that do not exist.
    """
    for name in clusters:
        load_cluster(name)
    resolve(with_arch(replace(options, cluster=clusters[0], gpus=1, servers=None), "single"))
    results: list[Analysis] = []
    refused: list[NotPossible] = []
    for graph, counts, sized in graphs_of(source, replace(options, cluster=clusters[0]), gpu_counts, archs):
        plans: dict[Recipe, StepPlan] = {}
        for name in dict.fromkeys(clusters):
            try:
                done, not_possible = run_placements(graph, replace(sized, cluster=name), counts, archs, plans)
            except UsageError as error:  # a device without the precision, say: the others go on
                refused.append(NotPossible(name, None, None, str(error)))
                continue
            results += done
            refused += [NotPossible(name, one.arch, one.gpus, one.reason) for one in not_possible]
    if not results:
        raise PlacementError("; ".join(dict.fromkeys(one.reason for one in refused)))
    model = graph.graph["model"]
    if results[0].step.samples_per_s is None:
        raise UsageError(f"{model.name}: --pareto compares a million samples, and this model has no batch dimension")
    return Pareto(model.name, model.source, _judged(results), tuple(refused), options.profile, results[0].model.notes)


def _judged(results: Sequence[Analysis]) -> tuple[Point, ...]:
    points = sorted(map(_point, results), key=lambda point: point.s or 0.0)
    judged = [i for i, point in enumerate(points) if point.standing is Standing.FRONTIER]
    beaten = frontier_of([_objectives(points[i]) for i in judged])
    for place, best in zip(judged, beaten, strict=True):
        if best is not None:
            points[place] = replace(points[place], standing=Standing.DOMINATED, dominated_by=judged[best])
    order = sorted(range(len(points)), key=lambda i: list(Standing).index(points[i].standing))
    new_place: dict[int | None, int | None] = {None: None, **{old: new for new, old in enumerate(order)}}
    return tuple(replace(points[i], dominated_by=new_place[points[i].dominated_by]) for i in order)


def _objectives(point: Point) -> Objectives:
    assert point.s is not None and point.usd is not None and point.kwh is not None
    return (point.s, point.usd, point.kwh)


def _point(result: Analysis) -> Point:
    """On the frontier until something beats it, unless it cannot be judged."""
    energy, cost = result.bill.energy, result.bill.cost
    rate = result.step.samples_per_s
    s = None if not rate else MILLION / rate
    usd = None if cost is None else cost.usd_per_million_samples
    kwh = None if energy is None else energy.gpu_kwh_per_million_samples
    standing, reason = Standing.FRONTIER, None
    if result.bill.unknown or s is None:
        standing, reason = Standing.NOT_JUDGED, "; ".join(result.bill.unknown) or "a step takes no time"
    elif not result.training.memory.fits:
        standing, reason = Standing.DOES_NOT_FIT, "the step does not fit in memory"
    return Point(result, s, usd, kwh, standing, reason=reason)
