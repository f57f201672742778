"""Products of tensor, pipeline, data and expert parallelism: ``tp=4,pp=2,dp=8``.

Source: Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using
Megatron-LM (SC 2021), arXiv 2104.04473; ZeRO over the data parallel group as in ``zero.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from graphcost.arch._base import ARCHITECTURES, Architecture, Exchange, PaperTraffic, Placement, ProcessPerGpu
from graphcost.arch.allreduce import AllReduce, named
from graphcost.collectives import moved_share
from graphcost.engine.paper import Medium
from graphcost.errors import UsageError
from graphcost.network import Collective
from graphcost.network.links import across, inside
from graphcost.parallel.division import DividedPlan, StageShare, Traffic
from graphcost.parallel.groups import ORDERS, Group, groups_of, require_place
from graphcost.parallel.mesh import Mesh, is_mesh, parse_mesh
from graphcost.training import Memory, StepPlan

ONCE = frozenset({"gradients", "updated weights", "gradients of tied weights", "gradients of what tp holds whole"})
"""Exchanges of a step rather than of every micro-batch."""


class NotInTheStudy(ProcessPerGpu):
    """What PAI's framework has no equations for."""

    name: str

    def paper_media(self, placement: Placement) -> tuple[Medium, ...]:
        """Not in the study."""
        raise _not_in_the_study(self.name)

    def paper_traffic(self, plan: StepPlan, placement: Placement) -> tuple[PaperTraffic, ...]:
        """Not in the study."""
        raise _not_in_the_study(self.name)

    def paper_input_sharing(self, placement: Placement) -> int:
        """Not in the study."""
        raise _not_in_the_study(self.name)


def _not_in_the_study(name: str) -> UsageError:
    return UsageError(f"--arch {name}: the paper's framework knows no tensor or pipeline parallelism; use calibrated")


class Product(NotInTheStudy):
    """A mesh as an architecture. What one GPU runs is its stage; the slowest stage gives the step."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.name = mesh.name
        self.title = "product of tensor, pipeline, data and expert parallelism"

    def check(self, placement: Placement) -> None:
        """Raise ``PlacementError`` where the mesh does not make the placement's GPUs, or splits servers badly."""
        self.mesh.on(placement.gpus)
        require_place(self.mesh, placement.cluster, placement.gpus_per_server, placement.servers)

    def local_plan(self, plan: StepPlan, placement: Placement) -> StepPlan:
        """The stage that needs the most memory, with all micro-batches that it keeps."""
        held, stage = self._fullest(plan, placement)
        return replace(stage.plan, memory=held)

    def exchanges(self, plan: StepPlan, placement: Placement) -> tuple[Exchange, ...]:
        """Those of the stage that needs the most memory."""
        return self.stages(plan, placement)[self._index_of_fullest(plan, placement)].exchanges(plan, placement)

    def buffer_bytes(self, plan: StepPlan, placement: Placement) -> int:
        """Of the data parallel exchange of the stage that needs the most memory."""
        index = self._index_of_fullest(plan, placement)
        return self.stages(plan, placement)[index].buffer_bytes(plan, placement)

    def stages(
        self, plan: StepPlan, placement: Placement, order: tuple[str, ...] = ORDERS[0]
    ) -> tuple[StageArch, ...]:
        """One architecture a stage; ``order``: which groups are nearest."""
        divided = _divided(plan)
        groups = groups_of(divided.mesh, placement.cluster, placement.gpus_per_server, order)
        last = len(divided.stages) - 1
        return tuple(
            StageArch(
                divided.mesh, stage, groups, order, divided.tied_bytes if at in (0, last) and last else 0.0, self.name
            )
            for at, stage in enumerate(divided.stages)
        )

    def _index_of_fullest(self, plan: StepPlan, placement: Placement) -> int:
        peaks = []
        for arch in self.stages(plan, placement):
            held = arch.held(placement)
            peaks.append(held.peak_bytes + arch.buffer_bytes(plan, placement) * plan.recipe.trains)
        return peaks.index(max(peaks))

    def _fullest(self, plan: StepPlan, placement: Placement) -> tuple[Memory, StageShare]:
        arch = self.stages(plan, placement)[self._index_of_fullest(plan, placement)]
        return arch.held(placement), arch.stage


def _divided(plan: StepPlan) -> DividedPlan:
    if not isinstance(plan, DividedPlan):
        raise TypeError("a product of parallelism wants a plan divided over its mesh (graphcost.planning.plan_for)")
    return plan


@dataclass(slots=True)
class StageArch(NotInTheStudy):
    """One stage of a product: replicas over the data parallel group, and what the other groups move."""

    mesh: Mesh
    stage: StageShare
    groups: dict[str, Group]
    order: tuple[str, ...]
    tied_bytes: float = 0.0
    name: str = ""
    title: str = "one stage of a product"

    @property
    def _replicas(self) -> Architecture:
        return ARCHITECTURES[f"zero{self.mesh.zero}"] if self.mesh.zero else ARCHITECTURES[AllReduce.name]

    def _among(self, group: str, placement: Placement) -> Placement:
        """The group's GPUs as a placement of their own."""
        found = self.groups[group]
        return replace(placement, gpus=found.ranks, servers=found.servers)

    def check(self, placement: Placement) -> None:
        """The product's."""

    def local_plan(self, plan: StepPlan, placement: Placement) -> StepPlan:
        """The stage's operators; ZeRO's share of the update and of memory."""
        return self._replicas.local_plan(self.stage.plan, self._among("dp", placement))

    def held(self, placement: Placement) -> Memory:
        """Memory with the activations of all micro-batches that the stage keeps, without buffers."""
        bare = replace(self.stage.plan, updates=())
        return self.stage.held(self._replicas.local_plan(bare, self._among("dp", placement)).memory)

    def buffer_bytes(self, plan: StepPlan, placement: Placement) -> int:
        """The data parallel exchange's."""
        return self._replicas.buffer_bytes(self.stage.plan, self._among("dp", placement))

    def exchanges(self, plan: StepPlan, placement: Placement) -> tuple[Exchange, ...]:
        """Gradients; sums and gathers inside a pass; activations between stages; what is held twice."""
        made = list(self._gradients(plan, placement))
        made += [self._traffic(one) for one in self.stage.traffic if self.groups[one.group].ranks > 1]
        made += self._between_stages()
        made += self._once("gradients of tied weights", "pp", self.tied_bytes, ends=True)
        made += self._once("gradients of what tp holds whole", "tp", self.stage.summed_bytes)
        return tuple(made)

    def _gradients(self, plan: StepPlan, placement: Placement) -> Iterable[Exchange]:
        experts = self.stage.expert_params
        if not experts:
            yield from self._slowed(self._replicas.exchanges(plan, self._among("dp", placement)), "dp")
            return
        for group, mine in (("dp", False), ("expert dp", True)):
            some = tuple(g for g in plan.gradients if (g.param in experts) is mine)
            for one in self._replicas.exchanges(replace(plan, gradients=some), self._among(group, placement)):
                named_so = replace(one, what="gradients of experts") if mine else one
                yield from self._slowed((named_so,), group)

    def _slowed(self, exchanges: Iterable[Exchange], group: str) -> Iterable[Exchange]:
        """Beside the other groups of its kind, which leave the same servers."""
        found = self.groups[group]
        for one in exchanges:
            if found.slower == 1:
                yield one
                continue
            alone, slower = one.seconds, found.slower
            yield replace(
                one, seconds=lambda size, alone=alone, slower=slower: alone(slower * size),  # type: ignore[misc]
                formula=f"{one.formula}, {found.sharing} groups share a server's network",
            )  # fmt: skip

    def _traffic(self, one: Traffic) -> Exchange:
        group = self.groups[one.group]
        found, seconds = group.way(one.collective), group.seconds(one.collective)
        once_s, total, trips = sum(seconds(size) for size in one.sizes), sum(one.sizes), self.mesh.micro_batches
        what = {"tp": "tensor parallel", "ep": "tokens to experts and back"}[one.group]
        formula, source = named(found, max(one.sizes))
        moved = trips * moved_share(str(one.collective), group.ranks) * total
        return Exchange(
            f"{what}, {one.phase}: {one.collective}", found.link.name, str(one.collective), ((total, 0),), moved,
            lambda _size: once_s, False, found.link.interference, f"{len(one.sizes)} x {formula}", source,
            spread=found.link.spread, trips=trips,
        )  # fmt: skip

    def _between_stages(self) -> list[Exchange]:
        """Activations in, and their gradients back: once a micro-batch and chunk."""
        if not self.stage.received_bytes:
            return []
        group, tp = self.groups["pp"], self.groups["tp"]
        gathered = tp.seconds(Collective.ALL_GATHER)
        once_s = sum(group.send_s(size) for size in self.stage.received_bytes)
        once_s += sum(gathered(size) for size in self.stage.gathered_bytes) if tp.ranks > 1 else 0.0
        link = across(group.cluster, group.servers) if group.servers > 1 else inside(group.cluster, 2)
        total = sum(self.stage.received_bytes)
        formula = "latency + S / B" + (f", {group.sharing} senders share a server" if group.sharing > 1 else "")
        formula += ", gathered over tp" if self.stage.gathered_bytes else ""
        return [
            Exchange(
                f"between stages, {phase}", link.name, "send", ((total, 0),), self.mesh.micro_batches * total,
                lambda _size: once_s, False, link.interference, formula, link.source, spread=link.spread,
                trips=self.mesh.micro_batches,
            )
            for phase in ("forward", "backward")
        ]  # fmt: skip

    def _once(self, what: str, group: str, size_bytes: float, *, ends: bool = False) -> list[Exchange]:
        """An all-reduce after the backward pass; ``ends``: between the first and the last of the group alone."""
        found = self.groups[group]
        if found.ranks == 1 or size_bytes <= 0:
            return []
        if ends:
            found = replace(found, ranks=2, servers=min(2, found.servers))
        route, seconds = found.way(Collective.ALL_REDUCE), found.seconds(Collective.ALL_REDUCE)
        moved = moved_share("all-reduce", found.ranks) * size_bytes
        return [
            Exchange(
                what, route.link.name, "all-reduce", ((size_bytes, 0),), moved, seconds, False,
                route.link.interference, *named(route, size_bytes), spread=route.link.spread,
            )
        ]  # fmt: skip


def architecture_named(text: str) -> Architecture:
    """An entry of ``ARCHITECTURES``, or a product by its sizes; raises ``UnknownNameError``."""
    return Product(parse_mesh(text)) if is_mesh(text) else ARCHITECTURES.find(text)
