"""The fastest mesh for N GPUs: every one that fits is enumerated, and only what may win is worked out.

A lower bound for a mesh is its slowest stage's operators and sums, times the micro-batches,
and the bubble; what gradients, updates and hosts add is left out of it. Meshes are worked out in
order of their bounds, with the very functions of ``analyze``, until no bound is below the last
place. Weights, gradients and optimizer states that cannot fit rule out a mesh before that.
All meshes compute the same samples a step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from graphcost.analysis import predict
from graphcost.arch.product import Product
from graphcost.described import samples_of
from graphcost.errors import PlacementError, UsageError
from graphcost.fitting import CONTEXT_BYTES, fits, memory_on
from graphcost.global_batch import at_global_batch
from graphcost.graph import build_graph
from graphcost.hardware import Cluster
from graphcost.ir import Model
from graphcost.network import Collective
from graphcost.parallel.division import DividedPlan
from graphcost.parallel.groups import groups_of
from graphcost.parallel.mesh import Mesh, Schedule
from graphcost.parallel.planning import (
    Memories,
    Share,
    activation_bytes,
    chunk_of_operators,
    cuts_of,
    divide,
    less_regathered,
    share_of,
)
from graphcost.parallel.schedule import bubble_s, in_flight
from graphcost.placing import AnalysisOptions, Choice, resolve, with_arch
from graphcost.predict import StepTime
from graphcost.sources import load_model
from graphcost.training import Memory, StepPlan, plan_step
from graphcost.units import format_seconds

if TYPE_CHECKING:
    from graphcost.graph import OpGraph

PLACES = 6
"""Meshes that are told: the best and the runners-up."""

CHUNKS = (1, 2, 4)
"""assumed: chunks a stage that are tried; more make the bubble little smaller and send more."""


@dataclass(frozen=True, slots=True)
class Found:
    """A mesh that fits, worked out. ``why``: what it takes longer for than the best; empty for the best."""

    arch: str
    step: StepTime
    memory: Memory
    samples_per_s: float | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Search:
    """``ranked`` from fastest to slowest. ``ruled_out``: how many meshes, by reason; ``tried`` in all."""

    name: str
    source: str
    cluster: str
    device: str
    gpus: int
    global_batch: int | None
    ranked: tuple[Found, ...]
    ruled_out: Mapping[str, int]
    tried: int
    precision: str
    master_weights: bool
    notes: tuple[str, ...] = ()


def find_best(source: Any, options: AnalysisOptions, gpus: int, *, places: int = PLACES) -> Search:
    """The fastest meshes of ``gpus`` for ``source``; the micro-batch is the model's batch.

    Raises ``PlacementError`` where no mesh fits, with the reasons, and what loading raises.
    """
    if options.arch is not None or options.profile == "paper":
        raise UsageError("--best tries every product of parallelism; leave out --arch and --profile paper")
    options = at_global_batch(options, resolve(replace(options, arch=f"dp={gpus}", gpus=gpus)))
    graph = build_graph(load_model(source, options.load))
    model: Model = graph.graph["model"]
    work = _Work(graph, options, gpus)
    ranked = work.run(places)
    place = work.base.placement
    if not ranked:
        reasons = "; ".join(f"{count} x {why}" for why, count in work.ruled_out.most_common(4))
        raise PlacementError(f"{model.name} on {gpus} GPUs of {place.cluster.id}: nothing fits: {reasons}")
    best = ranked[0]
    told = (best, *(replace(one, why=_why(one.step, best.step)) for one in ranked[1:]))
    samples = None if model.batch is None else model.batch * gpus * options.accumulate
    return Search(
        model.name, model.source, place.cluster.id, place.cluster.device.id, gpus, samples, told,
        dict(work.ruled_out.most_common()), work.tried, options.precision,
        options.master_weights, model.notes,
    )  # fmt: skip


def best_meshes(graph: OpGraph, options: AnalysisOptions, gpus: int, places: int) -> tuple[str, ...]:
    """Names of the fastest meshes that divide the model and fit, best first.

    Raises ``PlacementError`` with the reasons where there is none.
    """
    work = _Work(graph, with_arch(options, f"dp={gpus}"), gpus, divided=True)
    found = work.run(places)
    if not found:
        reasons = "; ".join(f"{count} x {why}" for why, count in work.ruled_out.most_common(2))
        raise PlacementError(f"no mesh of tensor and pipeline parallelism: {reasons or 'one GPU cannot be divided'}")
    return tuple(one.arch for one in found)


class _Work:
    """What is worked out once: shares by tensor parallel size, divisions by stages and chunks.

    ``divided``: only meshes that divide the model, none of replicas alone.
    """

    def __init__(self, graph: OpGraph, options: AnalysisOptions, gpus: int, *, divided: bool = False) -> None:
        self._divided = divided
        self.base = resolve(replace(options, arch=f"dp={gpus}", gpus=gpus))
        self.options, self.gpus, self.graph = options, gpus, graph
        self.ruled_out: Counter[str] = Counter()
        self.tried = 0
        self._shares: dict[int, Share | PlacementError] = {}
        self._memories: dict[int, Memories] = {}

    def run(self, places: int) -> list[Found]:
        """Best first, until no bound is below the last place."""
        found: list[Found] = []
        for bound_s, meshes in sorted(self._bounded(), key=lambda one: one[0]):
            if len(found) >= places and bound_s >= found[places - 1].step.step_s:
                self.ruled_out["slower by its lower bound alone"] += len(meshes)
                continue
            best = self._best_of(meshes)
            if best is not None:
                found = sorted([*found, best], key=lambda one: one.step.step_s)[:places]
        return found

    def share(self, tp: int) -> Share | PlacementError:
        """With its sequence divided where it can be: less memory, and the bytes of one gather more."""
        if tp not in self._shares:
            whole = None if tp == 1 else self.share(1)
            assert not isinstance(whole, PlacementError)
            plan = plan_step(self.graph, self.base.recipe) if whole is None else whole.plan
            try:
                self._shares[tp] = _first_that_can(self.graph, plan, tp, self.base.placement.cluster)
            except PlacementError as error:
                self._shares[tp] = error
        return self._shares[tp]

    def _bounded(self) -> Iterator[tuple[float, list[Mesh]]]:
        """Meshes that differ in ZeRO's stage alone, with what none of them can be faster than."""
        for tp in _divisors(self.gpus):
            if tp > 1 and self.base.placement.cluster.server.gpus % tp:
                self.ruled_out["tensor parallel groups that would leave a server"] += 1
                continue
            share = self.share(tp)
            if isinstance(share, PlacementError):
                self.ruled_out[str(share)] += 1
                continue
            for pp, chunks in product(_divisors(self.gpus // tp), CHUNKS):
                if self._divided and tp * pp == 1:
                    continue
                meshes = list(self._with_zero(tp, pp, chunks, share))
                if not meshes:
                    continue
                try:
                    yield _bound_s(share, meshes[0], self.base), meshes
                except PlacementError:
                    self.ruled_out["more stages than layers"] += len(meshes)

    def _with_zero(self, tp: int, pp: int, chunks: int, share: Share) -> Iterator[Mesh]:
        dp, micro_batches = self.gpus // (tp * pp), tp * pp * self.options.accumulate
        if chunks > 1 and (pp == 1 or micro_batches % pp):
            return
        schedule = Schedule.INTERLEAVED if chunks > 1 else Schedule.ONE_F_ONE_B
        for zero in (0, 1, 2, 3) if dp > 1 else (0,):
            self.tried += 1
            mesh = Mesh(tp, pp, dp, 1, zero, share.sharded.sequence, micro_batches, schedule, chunks)
            room = self.base.placement.cluster.device.mem_bytes - CONTEXT_BYTES
            if _static_bytes(share.plan.memory, mesh) > room:
                self.ruled_out["weights, gradients and optimizer alone do not fit"] += 1
                continue
            if _least_bytes(share, mesh, activation_bytes(self.base.recipe)) > room:
                self.ruled_out["does not fit with its activations"] += 1
                continue
            yield mesh

    def _best_of(self, meshes: list[Mesh]) -> Found | None:
        """The fastest of meshes that differ in ZeRO's stage, if one fits.

        Stage 2 sends at least what stage 1 sends and updates as much, so that it waits for that one's not fitting.
        """
        place, first = self.base.placement, meshes[0]
        share, whole = self.share(first.tp), self.share(1)
        assert not isinstance(share, PlacementError)
        assert not isinstance(whole, PlacementError)
        recipe = replace(self.base.recipe, accumulate=first.micro_batches)
        mine, kept = share.under(recipe), self._memories.setdefault(first.tp, {})
        divided = divide(replace(whole.plan, recipe=recipe), mine, first, place.cluster, place.gpus_per_server, kept)
        found: list[Found] = []
        for mesh in meshes:
            if found and mesh.zero == 2:
                self.ruled_out["a lower stage of ZeRO fits"] += 1
                continue
            choice = replace(self.base, arch=Product(mesh), recipe=recipe)
            plan: DividedPlan = replace(divided, mesh=mesh)
            memory = memory_on(plan, choice)
            if not fits(memory, place.cluster.device):
                self.ruled_out["does not fit with its activations"] += 1
                continue
            step = predict(plan, choice, self.options)
            samples = samples_of(plan, choice)
            found.append(Found(mesh.name, step, memory, samples / step.step_s if samples else None))
        return min(found, key=lambda one: one.step.step_s, default=None)


def _first_that_can(graph: OpGraph, plan: StepPlan, tp: int, cluster: Cluster) -> Share:
    """Divided along the sequence too, or else without."""
    if tp > 1:
        try:
            return share_of(graph, plan, Mesh(tp, dp=1, sequence=True), cluster)
        except PlacementError:
            pass
    return share_of(graph, plan, Mesh(tp, dp=1), cluster)


def _static_bytes(memory: Memory, mesh: Mesh) -> float:
    """What the fullest stage holds at least: an equal part of all, less what ZeRO divides."""
    parts = (memory.optimizer_bytes, memory.gradients_bytes, memory.weights_bytes)
    return sum(size / (mesh.dp if mesh.zero > at else 1) for at, size in enumerate(parts)) / mesh.pp


def _least_bytes(share: Share, mesh: Mesh, width: int) -> float:
    """Weights, states and activations when a forward pass ends, in the stage that they fill most, at least.

    Stages that keep ``k`` micro-batches of shares ``a`` of all activations: the largest ``k a`` is least where
    ``a`` goes as ``1 / k``.
    """
    memory = less_regathered(share.plan.memory, share.sharded, range(len(share.ids)), width)
    kept = [in_flight(mesh, stage) for stage in range(mesh.pp)]
    activations = memory.activations_bytes / sum(1 / one for one in kept)
    return activations + _static_bytes(replace(memory, gradients_bytes=0), mesh)


def _bound_s(share: Share, mesh: Mesh, base: Choice) -> float:
    """Operators, sums of the tensor parallel group, and the bubble; raises ``PlacementError``."""
    place, width = base.placement, activation_bytes(base.recipe)
    groups = groups_of(mesh, place.cluster, place.gpus_per_server, ("tp", "dp", "pp"))
    stage_of = [
        chunk % mesh.pp for chunk in chunk_of_operators(len(share.ids), cuts_of(share, mesh, groups["pp"], width))
    ]
    once_s = [0.0] * mesh.pp
    for stage, seconds in zip(stage_of, share.seconds, strict=True):
        once_s[stage] += seconds
    known: dict[tuple[Collective, int], float] = {}
    for one in share.sharded.transfers:
        key = (one.collective, one.numel)
        if key not in known:
            known[key] = groups["tp"].seconds(one.collective)(float(one.numel * width))
        once_s[stage_of[one.node]] += known[key]
    return mesh.micro_batches * max(once_s) + bubble_s(once_s, mesh.chunks)


def _why(step: StepTime, best: StepTime) -> str:
    """The part of a step that it takes longer for than the best one, and how much."""
    slower, faster = _parts(step), _parts(best)
    more = {name: slower.get(name, 0.0) - faster.get(name, 0.0) for name in {**slower, **faster}}
    worst = max(more, key=lambda name: (more[name], name))
    return f"{worst} +{format_seconds(more[worst])}" if more[worst] > 0 else "nothing in particular"


_SHORT = {
    "pipeline bubble": "bubble", "tensor parallel": "tp sums", "multi-GPU overhead": "overhead",
    "between stages": "sends",
}  # fmt: skip


def _parts(step: StepTime) -> dict[str, float]:
    parts = {"operators": step.compute_s + step.memory_s, "launches": step.host_s, "input": step.input_s}
    for message in step.messages:
        name = _SHORT.get(name := message.what.partition(",")[0].partition(":")[0], name)
        parts[name] = parts.get(name, 0.0) + message.exposed_s
    return parts


def _divisors(number: int) -> list[int]:
    return [size for size in range(1, number + 1) if number % size == 0]
