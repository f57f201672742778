"""Expert parallelism: a data parallel group holds one set of experts between them.

Every GPU sends its tokens to the experts they chose and gets results back: two all-to-alls
forward, two backward. assumed: tokens spread evenly, so that a GPU computes as many as it sends.
Source: Lepikhin et al., GShard (2020), arXiv 2006.16668; Fedus et al., Switch (2021).
"""

from __future__ import annotations

from dataclasses import replace

from graphcost.errors import PlacementError
from graphcost.ir import OpNode, Param, Phase, TensorSpec
from graphcost.network import Collective
from graphcost.parallel.sharding import Sharded, Transfer

EXPERT_TYPES = frozenset({"com.microsoft.MoE"})
"""Operators that hold all experts of a layer, first axis of each weight."""

ROUTING = 1
"""The input with a column an expert."""


def spread_experts(sharded: Sharded, ranks: int) -> Sharded:
    """``sharded`` with ``1 / ranks`` of the experts; raises ``PlacementError`` where there are none to divide."""
    if ranks == 1:
        return sharded
    model = sharded.model
    transfers = list(sharded.transfers)
    names: set[str] = set()
    nodes = []
    for position, node in enumerate(model.nodes):
        if node.kind not in EXPERT_TYPES:
            nodes.append(node)
            continue
        nodes.append(_mine(node, ranks))
        names |= {param.name for _, param in node.params}
        numel = node.require(0).numel * int(node.attrs.get("k", 1))
        transfers += [
            Transfer(position, phase, Collective.ALL_TO_ALL, numel, "ep")
            for phase in (Phase.FORWARD, Phase.FORWARD, Phase.BACKWARD, Phase.BACKWARD)
        ]
    if not names:
        raise PlacementError(
            f"ep={ranks}: {model.name} has no operator with experts ({', '.join(sorted(EXPERT_TYPES))}); leave ep out"
        )
    return replace(
        sharded, model=replace(model, nodes=tuple(nodes)), transfers=tuple(transfers), experts=frozenset(names)
    )


def _mine(node: OpNode, ranks: int) -> OpNode:
    experts = node.require(ROUTING).shape[-1]
    if experts % ranks:
        raise PlacementError(f"ep={ranks} does not divide the {experts} experts of {node.name}")
    share = experts // ranks

    def local(index: int, spec: TensorSpec | None) -> TensorSpec | None:
        if spec is None or index == 0:
            return spec
        shape = (*spec.shape[:-1], share) if index == ROUTING else (share, *spec.shape[1:])
        return TensorSpec(shape, spec.dtype)

    return replace(
        node,
        inputs=tuple(local(index, spec) for index, spec in enumerate(node.inputs)),
        params=tuple((slot, _share(param, ranks)) for slot, param in node.params),
    )


def _share(param: Param, ranks: int) -> Param:
    first, *rest = param.spec.shape
    return replace(
        param, spec=TensorSpec((first // ranks, *rest), param.spec.dtype), numel=param.numel // ranks,
        stored_bytes=-(-param.stored_bytes // ranks),
    )  # fmt: skip
