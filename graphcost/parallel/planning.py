"""From a graph, a recipe and a mesh to the division: shares, stages, what is moved and held.

The model of one GPU is planned once as a whole; stages are its operators by where the
graph is cut, so that nothing is lost or counted twice. Memory alone is planned by stage,
equal stages once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from graphcost.engine.roofline import DeviceModel
from graphcost.graph import build_graph, stable_ids
from graphcost.hardware import Cluster
from graphcost.ir import Model, OpNode, Phase, TensorSpec
from graphcost.network import Collective
from graphcost.parallel.cuts import Crossing, crossings, cut, cut_by_layers
from graphcost.parallel.division import DividedPlan, StageShare, Traffic
from graphcost.parallel.experts import spread_experts
from graphcost.parallel.groups import Group, groups_of
from graphcost.parallel.mesh import Cut, Mesh
from graphcost.parallel.schedule import in_flight
from graphcost.parallel.sharding import Sharded, shard, summary
from graphcost.recipe import Recipe
from graphcost.training import Memory, PlannedOp, StepPlan, plan_step, step_memory
from graphcost.training.update import updates_of

if TYPE_CHECKING:
    from graphcost.graph import OpGraph


@dataclass(frozen=True, slots=True)
class Share:
    """The model of one GPU of a tensor parallel group, planned whole, with the time of every operator.

    ``seconds``: forward and backward by operator of the model. ``crossings``: places for cuts.
    """

    sharded: Sharded
    plan: StepPlan
    ids: tuple[str, ...]
    seconds: tuple[float, ...]
    crossings: tuple[Crossing, ...]

    @property
    def model(self) -> Model:
        """What the GPU runs."""
        return self.sharded.model

    def under(self, recipe: Recipe) -> Share:
        """The same with another number of micro-batches, which only the update depends on."""
        params = {param.name: param for node in self.model.nodes for _, param in node.params}
        updates = updates_of(self.plan.gradients, params, recipe)
        return replace(self, plan=replace(self.plan, updates=updates, recipe=recipe))


def share_of(graph: OpGraph, plan: StepPlan, mesh: Mesh, cluster: Cluster) -> Share:
    """The share of one GPU; ``plan``: of the whole graph, under the recipe of the job."""
    model: Model = graph.graph["model"]
    sharded = spread_experts(shard(model, mesh.tp, sequence=mesh.sequence), mesh.experts)
    mine = plan if sharded.model is model else plan_step(build_graph(sharded.model), plan.recipe)
    ids = tuple(stable_ids(sharded.model.nodes))
    device = DeviceModel(cluster.device, plan.recipe)
    by_id = dict.fromkeys(ids, 0.0)
    for op in (*mine.forward, *mine.backward):
        by_id[op.id] += device.time(op).time_s
    return Share(sharded, mine, ids, tuple(by_id[one] for one in ids), crossings(sharded.model))


Memories = dict[Hashable, tuple[int, Memory]]
"""Memory of one micro-batch by what a stage looks like, and the number of that look."""


def divide(
    plan: StepPlan,
    share: Share,
    mesh: Mesh,
    cluster: Cluster,
    gpus_per_server: int,
    memories: Memories | None = None,
) -> DividedPlan:
    """``plan`` of one replica over ``mesh``; raises ``PlacementError`` for more stages than the graph has.

    ``memories`` keeps those of stages for further calls with the same share.
    """
    width = activation_bytes(plan.recipe)
    group = groups_of(mesh, cluster, gpus_per_server, ("tp", "dp", "pp"))["pp"]
    places = cuts_of(share, mesh, group, width)
    chunks = chunk_of_operators(len(share.ids), places)
    stage_of = [chunk % mesh.pp for chunk in chunks]
    users = _users(share)
    memories = {} if memories is None else memories
    stages = tuple(_stage(share, mesh, stage, stage_of, places, users, width, memories) for stage in range(mesh.pp))
    copies = {name: len({stage_of[at] for at in at_all}) for name, at_all in users.items()}
    tied = sum(g.bytes for g in share.plan.gradients if copies.get(g.param, 1) > 1)
    notes = (summary(share.sharded),) if mesh.tp > 1 else ()
    whole = {one.name: getattr(plan, one.name) for one in fields(StepPlan)}
    return DividedPlan(**whole, mesh=mesh, stages=stages, tied_bytes=float(tied), notes=notes)


def activation_bytes(recipe: Recipe) -> int:
    """Bytes of an element that groups send: the format that operators compute in.

    assumed: mixed precision sends halves, as Megatron-LM does.
    """
    return 2 if recipe.precision.half_dtype else 4


def cuts_of(share: Share, mesh: Mesh, group: Group, width: int) -> tuple[Crossing, ...]:
    """Where the pipeline is cut; ``group``: the stages', ``width``: bytes of an element sent."""

    if mesh.cut is Cut.LAYERS:
        return cut_by_layers(share.model, share.crossings, mesh.pp * mesh.chunks)

    def send_s(numel: int) -> float:
        return 2 * group.send_s(numel * width / mesh.tp)  # there and back

    return cut(share.model, share.crossings, share.seconds, mesh.pp * mesh.chunks, send_s)


def chunk_of_operators(count: int, places: Sequence[Crossing]) -> list[int]:
    """The chunk of every operator, from 0."""
    found, chunk = [], 0
    starts = {place.position for place in places}
    for position in range(count):
        chunk += position in starts
        found.append(chunk)
    return found


def _users(share: Share) -> Mapping[str, list[int]]:
    found: dict[str, list[int]] = {}
    for position, node in enumerate(share.model.nodes):
        for _, param in node.params:
            found.setdefault(param.name, []).append(position)
    return found


def _stage(
    share: Share, mesh: Mesh, stage: int, stage_of: Sequence[int], places: Sequence[Crossing],
    users: Mapping[str, list[int]], width: int, memories: Memories,
) -> StageShare:  # fmt: skip
    """Operators of one stage out of the whole plan."""
    sharded, kept = share.sharded, in_flight(mesh, stage)
    if mesh.pp == 1:
        everything = range(len(stage_of))
        memory = less_regathered(share.plan.memory, sharded, everything, width)
        return StageShare(
            replace(share.plan, memory=memory), traffic_of(sharded, everything, width),
            summed_bytes=_summed(share), expert_params=sharded.experts, kept=kept,
        )  # fmt: skip
    positions = [at for at, one in enumerate(stage_of) if one == stage]
    mine = {share.ids[at] for at in positions}
    plan = _part(share, mine, users, set(positions), stage == 0)
    key = tuple(_look(share.model.nodes[at]) for at in positions)
    if key not in memories:
        alone = build_graph(_sub_model(share.model, positions))
        memories[key] = (len(memories), step_memory(alone, share.plan.recipe))
    look, memory = memories[key]
    memory = less_regathered(memory, sharded, positions, width)
    entries = [place for at, place in enumerate(places) if (at + 1) % mesh.pp == stage]
    shares = [place.numel * width / mesh.tp for place in entries]
    sent = [place.numel * width * 1.0 for place in entries]
    sequence = mesh.sequence  # what crosses is a share already
    return StageShare(
        replace(plan, memory=memory), traffic_of(sharded, positions, width),
        tuple(sent if sequence else shares), () if sequence or mesh.tp == 1 else tuple(sent),
        _summed(share, users, set(positions)), sharded.experts, kept, look,
    )  # fmt: skip


def _part(share: Share, mine: set[str], users: Mapping[str, list[int]], positions: set[int], first: bool) -> StepPlan:
    """The whole plan's operators, gradients and updates that belong to a stage."""
    whole = share.plan
    forward = tuple(op for op in whole.forward if op.id in mine)
    backward: list[PlannedOp] = []
    behind: list[int] = []  # of every operator of the whole: the stage's last one up to it
    for op in whole.backward:
        if op.id in mine:
            backward.append(op)
        behind.append(max(0, len(backward) - 1))
    held = {name for name, at_all in users.items() if any(at in positions for at in at_all)}
    gradients, updates = [], []
    for gradient, update in zip(whole.gradients, whole.updates, strict=bool(whole.updates)):
        if gradient.param in held and backward:
            gradients.append(replace(gradient, ready_index=behind[gradient.ready_index]))
            updates.append(update)
    if updates and not updates[0].launches:  # kernels of many tensors: the first of them carries the launches
        updates[0] = replace(updates[0], launches=whole.updates[0].launches)
    return replace(
        whole, forward=forward, backward=tuple(backward), updates=tuple(updates), gradients=tuple(gradients),
        input_bytes=whole.input_bytes if first else 0,
    )  # fmt: skip


def traffic_of(sharded: Sharded, positions: Iterable[int], width: int) -> tuple[Traffic, ...]:
    """What groups move for these operators, by pass and collective."""
    mine = set(positions)
    found: dict[tuple[str, Phase, Collective], list[float]] = {}
    for one in sharded.transfers:
        if one.node in mine:
            found.setdefault((one.group, one.phase, one.collective), []).append(float(one.numel * width))
    return tuple(Traffic(group, phase, what, tuple(sizes)) for (group, phase, what), sizes in found.items())


def less_regathered(memory: Memory, sharded: Sharded, positions: Iterable[int], width: int) -> Memory:
    """Whole inputs of products are kept as shares; one whole at a time is there at the peak."""
    mine = set(positions)
    whole = [numel * width for at, numel in sharded.regathered if at in mine]
    if not whole:
        return memory
    share = 1 - 1 / sharded.parts
    return memory.with_kept(-int(share * sum(whole)), floor=int(share * max(whole)))


def _summed(share: Share, users: Mapping[str, list[int]] | None = None, positions: set[int] | None = None) -> float:
    """Gradients of parameters held whole beside divided sequences: parts of a sum over the group."""
    names = share.sharded.summed
    if positions is not None and users is not None:
        names = frozenset(name for name in names if any(at in positions for at in users.get(name, ())))
    return float(sum(g.bytes for g in share.plan.gradients if g.param in names))


def _look(node: OpNode) -> Hashable:
    """Equal for operators whose memory is the same."""
    return (node.op_type, node.inputs, node.outputs, tuple(p.numel for _, p in node.params))


def _sub_model(model: Model, positions: Sequence[int]) -> Model:
    """The operators at ``positions`` as a model: what they read from others are inputs, what others read, outputs."""
    nodes = tuple(model.nodes[at] for at in positions)
    mine = set(positions)
    made = {name for node in nodes for name in node.output_names if name}
    elsewhere = {
        name: spec
        for at, node in enumerate(model.nodes)
        if at not in mine
        for name, spec in zip(node.output_names, node.outputs, strict=False)
        if name and spec is not None
    }
    read = {name for node in nodes for name in node.input_names if name}
    inputs: dict[str, TensorSpec] = {n: s for n, s in model.inputs.items() if n in read}
    inputs.update((name, spec) for name, spec in elsewhere.items() if name in read)
    outside = {n for at, node in enumerate(model.nodes) if at not in mine for n in node.input_names}
    outputs = tuple(name for name in made if name in outside or name in model.outputs)
    return replace(model, nodes=nodes, inputs=inputs, outputs=outputs, untaken_params=())
