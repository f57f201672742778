"""One GPU's share of a model under tensor parallelism, found in its op graph.

Products with weights go in pairs: the first divides its columns, what follows works on
shares (heads of attention, pointwise chains), the last divides its rows and its result is
summed over the group. A product whose divided result would have to be gathered again stays
whole, and is counted. With ``sequence`` what lies between pairs is divided along the
sequence: the sum becomes a reduce-scatter, and an all-gather stands before the next pair.
Source: Shoeybi et al. (2019), arXiv 1909.08053; Korthikanti et al. (2022), arXiv 2205.05198.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from graphcost.errors import PlacementError
from graphcost.graph import step_cost
from graphcost.ir import Model, OpNode, Param, Phase, TensorSpec
from graphcost.network import Collective
from graphcost.ops import OpClass, op_class_of
from graphcost.parallel.rules import Local, local_of, require_heads
from graphcost.parallel.splits import Split, local


@dataclass(frozen=True, slots=True)
class Transfer:
    """What a group moves once in a pass, beside operator ``node`` (its position). ``numel``: of the whole value."""

    node: int
    phase: Phase
    collective: Collective
    numel: int
    group: str = "tp"


@dataclass(frozen=True, slots=True)
class Sharded:
    """The model that one GPU of the group runs.

    ``replicated``: names of products with weights that every GPU repeats; ``replicated_flops``: of
    all operators that it repeats, forward, without elementwise ones. ``regathered_numel``: elements of whole
    inputs of products, of which only a share is kept for backward. ``summed``: parameters held
    whole whose gradients are parts of a sum. ``experts``: parameters that a data parallel group divides.
    ``sequence``: what lies between pairs of products is divided too.
    """

    model: Model
    parts: int
    transfers: tuple[Transfer, ...] = ()
    divided: int = 0
    replicated: tuple[str, ...] = ()
    replicated_flops: int = 0
    regathered: tuple[tuple[int, int], ...] = ()
    summed: frozenset[str] = frozenset()
    experts: frozenset[str] = frozenset()
    sequence: bool = False


def shard(model: Model, parts: int, *, sequence: bool = False) -> Sharded:
    """``model`` divided among ``parts`` GPUs; raises ``PlacementError`` where it has nothing that can be."""
    if parts == 1:
        return Sharded(model, 1)
    for node in model.nodes:
        require_heads(node, parts)
    barred: set[str] = set()
    while True:
        walk = _Walk(parts, sequence, frozenset(barred))
        nodes = tuple(walk.step(position, node) for position, node in enumerate(model.nodes))
        if not walk.refused:
            break
        barred |= walk.refused
    if not walk.divided:
        raise PlacementError(
            f"tp={parts}: {model.name} has no product with weights that {parts} GPUs could divide; use dp"
        )
    return Sharded(
        replace(model, nodes=tuple(walk.with_params(node) for node in nodes)),
        parts, tuple(walk.transfers), walk.divided, tuple(walk.replicated), walk.replicated_flops,
        tuple(walk.regathered), frozenset(walk.summed) - walk.divided_params.keys(), sequence=sequence,
    )  # fmt: skip


_ROWS = "parameter "


@dataclass(slots=True)
class _Walk:
    """Operators in order, with how every value made so far is divided."""

    parts: int
    sequence: bool
    barred: frozenset[str]
    transfers: list[Transfer] = field(default_factory=list)
    divided: int = 0
    replicated: list[str] = field(default_factory=list)
    replicated_flops: int = 0
    regathered: list[tuple[int, int]] = field(default_factory=list)
    summed: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    divided_params: dict[str, int] = field(default_factory=dict)
    _splits: dict[str, Split] = field(default_factory=dict)
    _columns: dict[str, frozenset[str]] = field(default_factory=dict)
    _made: set[str] = field(default_factory=set)
    _moved: set[tuple[str, Phase, Collective]] = field(default_factory=set)
    _specs: dict[tuple[TensorSpec, Split | None], TensorSpec] = field(default_factory=dict)

    def step(self, position: int, node: OpNode) -> OpNode:
        """The operator as one GPU runs it."""
        names = [node.input_names[i] if i < len(node.input_names) else "" for i in range(len(node.inputs))]
        splits = [self._splits.get(name) for name in names]
        barred = node.name in self.barred or any(f"{_ROWS}{param.name}" in self.barred for _, param in node.params)
        found = local_of(node, splits, self.parts, barred=barred)
        if found is not None and barred and found.params and not found.partial:
            found = None
        if found is not None and not self._agrees(node, found):
            found = None
        if found is None:
            return self._whole(position, node, names, splits)
        columns = {name for used in names for name in self._columns.get(used, ())} if any(splits) else set()
        if found.columns:
            columns = {node.name}
        if found.columns or found.partial:
            self.divided += 1
        self._moves(position, node, names, splits, found)
        inputs = [
            spec if spec is None else self._local(spec, None if index in found.begins else split)
            for index, (spec, split) in enumerate(zip(node.inputs, found.inputs, strict=True))
        ]
        outputs = []
        for name, spec, split in zip(node.output_names, node.outputs, found.outputs, strict=False):
            self._made.add(name)
            if split is not None:
                self._splits[name] = split
                self._columns[name] = frozenset(columns)
            outputs.append(spec if spec is None else self._local(spec, split))
        outputs += node.outputs[len(outputs) :]
        if found.partial:
            self._reduce(position, node)
        elif any(split is not None and split.sequence for split in found.outputs):
            self.summed.update(param.name for slot, param in node.params if slot not in found.params)
        return replace(node, inputs=tuple(inputs), outputs=tuple(outputs), attrs={**node.attrs, **found.attrs})

    def with_params(self, node: OpNode) -> OpNode:
        """The operator with its share of stored tensors."""
        if not node.params:
            return node
        return replace(node, params=tuple((slot, self._share(param)) for slot, param in node.params))

    def _share(self, param: Param) -> Param:
        size = self.divided_params.get(param.name)
        if size is None or not size:
            return param
        mine = -(-size // self.parts)
        shape = list(param.spec.shape)
        if size in shape:
            shape[shape.index(size)] = mine
        return replace(
            param, spec=TensorSpec(tuple(shape), param.spec.dtype), numel=param.numel // size * mine,
            stored_bytes=-(-param.stored_bytes * mine // size),
        )  # fmt: skip

    def _agrees(self, node: OpNode, found: Local) -> bool:
        """Whether every use of a parameter divides the same of its sizes; notes it."""
        for slot, axis in found.params.items():
            for param in node.params_at(slot):
                size = node.require(slot).shape[axis]
                if self.divided_params.setdefault(param.name, size) != size:
                    self.refused.add(f"{_ROWS}{param.name}")
                    return False
        return True

    def _local(self, spec: TensorSpec, split: Split | None) -> TensorSpec:
        """Equal shares are one object: rules are asked once about operators that look the same."""
        key = (spec, split)
        if key not in self._specs:
            self._specs[key] = local(spec, split, self.parts)
        return self._specs[key]

    def _move(self, position: int, value: str, phase: Phase, collective: Collective, numel: int) -> None:
        key = (value, phase, collective)
        if key not in self._moved:
            self._moved.add(key)
            self.transfers.append(Transfer(position, phase, collective, numel))

    def _moves(self, position: int, node: OpNode, names: list[str], splits: list[Split | None], found: Local) -> None:
        """What the operator's inputs cost: gathered shares, sums of gradients."""
        for index, (name, was, split) in enumerate(zip(names, splits, found.inputs, strict=True)):
            spec = node.inputs[index]
            if spec is None or name not in self._made:
                continue
            if index in found.begins:
                if was is None:
                    self._move(position, name, Phase.BACKWARD, Collective.ALL_REDUCE, spec.numel)
                else:
                    self._gathered(position, name, spec)
                    self._move(position, name, Phase.BACKWARD, Collective.REDUCE_SCATTER, spec.numel)
            elif was is None and split is not None and spec.is_float:
                self._move(position, name, Phase.BACKWARD, Collective.ALL_GATHER, spec.numel)

    def _gathered(self, position: int, name: str, spec: TensorSpec) -> None:
        """A whole input out of shares: kept as a share, so that backward gathers it again."""
        if (name, Phase.FORWARD, Collective.ALL_GATHER) not in self._moved:
            self.regathered.append((position, spec.numel))
        self._move(position, name, Phase.FORWARD, Collective.ALL_GATHER, spec.numel)
        self._move(position, name, Phase.BACKWARD, Collective.ALL_GATHER, spec.numel)

    def _reduce(self, position: int, node: OpNode) -> None:
        """The sum over the group: every GPU has it whole, or its share of the sequence."""
        out, name = node.out, node.output_names[0]
        axis = max(0, len(out.shape) - 2)
        if self.sequence and out.shape[axis] % self.parts == 0:
            self._splits[name] = Split(axis, sequence=True)
            self._move(position, name, Phase.FORWARD, Collective.REDUCE_SCATTER, out.numel)
            self._move(position, name, Phase.BACKWARD, Collective.ALL_GATHER, out.numel)
            return
        if self.sequence:
            raise PlacementError(f"sp=1: tp={self.parts} does not divide the {out.shape[axis]} rows of {node.name}")
        self._move(position, name, Phase.FORWARD, Collective.ALL_REDUCE, out.numel)

    def _whole(self, position: int, node: OpNode, names: list[str], splits: list[Split | None]) -> OpNode:
        """The operator with whole inputs; products whose shares it would have to gather are barred."""
        for name, split, spec in zip(names, splits, node.inputs, strict=True):
            if split is None or spec is None:
                continue
            if split.sequence:
                self._move(position, name, Phase.FORWARD, Collective.ALL_GATHER, spec.numel)
            else:
                self.refused |= self._columns.get(name, frozenset())
        self._made.update(node.output_names)
        if op_class_of(node) is OpClass.MATMUL and any(node.params_at(slot) for slot in (0, 1)):
            self.replicated.append(node.name)
        cost = step_cost(node)
        self.replicated_flops += cost.matmul_flops if cost is not None else 0
        return node


def summary(found: Sharded) -> str:
    """One line for a reader: how many products are divided, which are not."""
    text = f"tensor parallel: {found.divided} products and lookups divided by {found.parts}"
    if not found.replicated:
        return text
    return f"{text}, {len(found.replicated)} repeated on every GPU ({_some(found.replicated)})"


def _some(names: Iterable[str], most: int = 3) -> str:
    listed = list(names)
    return ", ".join(listed[:most]) + (", ..." if len(listed) > most else "")
