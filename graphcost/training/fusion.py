"""Groups of operators that a compiler, or a kernel written by hand, runs as one.

A compiler (``compiled``): pointwise operators, reductions, copies and normalisations over rows join the group of
the operator before them; a contraction takes a pointwise epilogue where it is its only
reader. A group reads every tensor from outside once and writes what others read.
Source: TorchInductor's scheduler (vertical fusion, ``max_fusion_size`` 64), XLA's
loop fusion; epilogues as Inductor's templates and XLA's GEMM rewriter have them.

By hand (``fused``): a product adds its bias itself; chains of pointwise operators are one kernel, and
so is a chain that ends in a softmax (scale, mask, softmax), if its sizes allow (``by_hand``). Dropout before
a sum, GELU behind a bias and their kin are such chains. Source: Megatron-LM's fused kernels (arXiv
2104.04473, section 4.2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from graphcost.ops import OpClass
from graphcost.recipe import Execution
from graphcost.training.by_hand import left_to_torch
from graphcost.training.views import Laid

MAX_MEMBERS = 64
_LOOPS = frozenset({OpClass.POINTWISE, OpClass.NORM, OpClass.SOFTMAX, OpClass.REDUCE, OpClass.COPY, OpClass.GATHER})
_CHAINS = frozenset({OpClass.POINTWISE, OpClass.SOFTMAX})
_CONTRACTIONS = frozenset({OpClass.MATMUL, OpClass.CONV, OpClass.DEPTHWISE})
_WHOLE_TENSOR = frozenset({"BatchNormalization", "GroupNormalization", "InstanceNormalization", "GroupNorm"})
"""Statistics over more than a row: the data must be in memory before they are known."""


class Takes(Enum):
    """What may join a group that an operator began."""

    LOOPS = "loops"
    CHAIN = "chain"
    EPILOGUE = "epilogue"
    BIAS = "bias"
    NOTHING = "nothing"


@dataclass(slots=True)
class Group:
    """Positions of its members, elements of its loop, and what may still join."""

    first: int
    numel: int
    takes: Takes
    members: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Fusion:
    """``group_of``: position -> group, None for a view. ``inside``: storages that never reach memory."""

    group_of: tuple[Group | None, ...]
    inside: frozenset[str]

    def leads(self, position: int) -> bool:
        """Whether the operator's kernel is its group's."""
        group = self.group_of[position]
        return group is not None and group.members[0] == position


def fusion_of(laid: Sequence[Laid], outputs: Iterable[str], execution: Execution) -> Fusion:
    """How ``execution`` groups the operators; ``outputs`` are storages that the caller reads."""
    if execution is Execution.EAGER:
        return unfused(laid)
    if execution is Execution.COMPILED:
        return fuse(laid, outputs, _takes)
    return fuse(laid, outputs, _takes_by_hand, left_to_torch(laid))


def unfused(laid: Sequence[Laid]) -> Fusion:
    """Eager execution: every operator alone."""
    groups = (None if op.is_view else Group(i, 0, Takes.NOTHING, [i]) for i, op in enumerate(laid))
    return Fusion(tuple(groups), frozenset())


def fuse(
    laid: Sequence[Laid],
    outputs: Iterable[str],
    takes: Callable[[Laid], Takes],
    alone: frozenset[int] = frozenset(),
) -> Fusion:
    """Greedy grouping in execution order; ``takes``: what may join an operator that stands alone.

    Positions in ``alone`` join nothing, and nothing joins them.

    An operator joins the latest-begun group that feeds it if everything else it reads was
    made before that group began, so groups never wait for each other in a circle.
    """
    readers: Counter[str] = Counter(name for op in laid if not op.is_view for name in set(op.reads))
    made_at: dict[str, int] = {}
    group_of: list[Group | None] = []
    for position, op in enumerate(laid):
        if op.is_view:
            group_of.append(None)
            continue
        if position in alone:
            group = Group(position, 0, Takes.NOTHING)
        else:
            group = _joined(op, made_at, group_of, readers) or Group(position, _space(op), takes(op))
        group.members.append(position)
        if group.takes is Takes.CHAIN and op.op_class is OpClass.SOFTMAX:
            group.takes = Takes.NOTHING
        group_of.append(group)
        made_at.update((name, position) for name in op.writes if name)
    return Fusion(tuple(group_of), _inside(laid, group_of, set(outputs)))


def _joined(
    op: Laid, made_at: dict[str, int], group_of: Sequence[Group | None], readers: Counter[str]
) -> Group | None:
    """The group that ``op`` joins, or None: it begins its own."""
    if op.op_class not in _LOOPS or op.node.op_type in _WHOLE_TENSOR or op.node.repeat != 1:
        return None
    sources = {name: made_at[name] for name in op.reads if name in made_at}
    candidates = [group for at in sources.values() if (group := group_of[at]) is not None]
    if not candidates:
        return None
    group = max(candidates, key=lambda one: one.first)
    if group.takes is Takes.NOTHING or len(group.members) >= MAX_MEMBERS or _space(op) != group.numel:
        return None
    if any(at >= group.first and group_of[at] is not group for at in sources.values()):
        return None
    if group.takes is Takes.CHAIN and op.op_class not in _CHAINS:
        return None
    if group.takes is Takes.BIAS and not _adds_parameter(op):
        return None
    if group.takes in (Takes.EPILOGUE, Takes.BIAS):
        lead = group.members[-1]
        fed = [name for name, at in sources.items() if at == lead]
        alone = bool(fed) and all(readers[name] == 1 for name in fed)
        return group if alone and op.op_class is OpClass.POINTWISE else None
    return group


def _takes(op: Laid) -> Takes:
    if op.node.repeat != 1:
        return Takes.NOTHING
    if op.op_class in _CONTRACTIONS:
        return Takes.EPILOGUE
    return Takes.LOOPS if op.op_class in _LOOPS else Takes.NOTHING


def _takes_by_hand(op: Laid) -> Takes:
    if op.node.repeat != 1:
        return Takes.NOTHING
    if op.op_class is OpClass.MATMUL:
        return Takes.BIAS
    return Takes.CHAIN if op.op_class is OpClass.POINTWISE else Takes.NOTHING


def _adds_parameter(op: Laid) -> bool:
    return op.node.op_type == "Add" and bool(op.node.params)


def _space(op: Laid) -> int:
    """Elements of the loop: the larger of first input and first output (a lookup's: its output)."""
    out = next((spec.numel for spec in op.node.outputs if spec is not None), 0)
    if op.op_class in _CONTRACTIONS or op.op_class not in _LOOPS or op.op_class is OpClass.GATHER:
        return out
    source = op.node.spec(0)
    return max(out, source.numel if source is not None else 0)


def _inside(laid: Sequence[Laid], group_of: Sequence[Group | None], outputs: set[str]) -> frozenset[str]:
    """Storages that are made and read in one group only."""
    maker: dict[str, Group | None] = {}
    escaped: set[str] = set(outputs)
    for op, group in zip(laid, group_of, strict=True):
        if group is None:
            continue
        escaped.update(name for name in op.reads if maker.get(name) is not group)
        maker.update((name, group) for name in op.writes if name)
    return frozenset(name for name in maker if name not in escaped)
