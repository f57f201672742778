"""What every operator keeps for its backward pass, by storage.

Source: torch.autograd's saved tensors, formula by formula (``derivatives.yaml``), as
``Rule.saves`` lists them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from graphcost.ops import OpClass, find_rule
from graphcost.training.fusion import Fusion
from graphcost.training.views import Laid

INDEX_BYTES = 8
"""Per element of a maximum's position: torch keeps int64."""


@dataclass(frozen=True, slots=True)
class TapeOp:
    """An operator with a backward pass: its position, and the inputs whose gradient is needed."""

    position: int
    wrt: frozenset[int]


def saved_by_tape(
    laid: Sequence[Laid], tape: Sequence[TapeOp], fusion: Fusion, mask_bytes: int
) -> list[dict[str, int]]:
    """Per operator of ``tape``: storage -> bytes kept over all trips.

    A tensor that never leaves its kernel is computed again from what the kernel reads, as
    a compiler's partitioner does: those inputs are kept in its place.
    """
    return [_saved(laid, one, fusion, mask_bytes) for one in tape]


def _saved(laid: Sequence[Laid], one: TapeOp, fusion: Fusion, mask_bytes: int) -> dict[str, int]:
    op = laid[one.position]
    kept: dict[str, int] = {}
    for name, size in _tokens(op, one.wrt, mask_bytes):
        if name not in fusion.inside:
            kept[name] = size
            continue
        group = fusion.group_of[one.position]
        for position in group.members if group is not None else ():
            kept.update((n, s) for n, s in _floats_read(laid[position]) if n not in fusion.inside)
    return {name: size * op.node.repeat for name, size in kept.items()}


def _tokens(op: Laid, wrt: frozenset[int], mask_bytes: int) -> Iterator[tuple[str, int]]:
    """(storage, bytes) that the rule's ``saves`` name; parameters are stored anyway."""
    rule = find_rule(op.node)
    if rule is None or op.is_view:
        return
    stored = {index for index, _ in op.node.params}
    numel = next((spec.numel for spec in op.node.outputs if spec is not None), 0)
    for token in rule.saves:
        what, _, needed = token.partition("?")
        if needed and int(needed) not in wrt:
            continue
        if what in ("mask", "indices"):
            yield (
                f"{op.writes[0] if op.writes else op.node.name}:{what}",
                numel * (mask_bytes if what == "mask" else INDEX_BYTES),
            )
        elif what.startswith("out"):
            yield from _one(op.writes, op.node.outputs, int(what[3:]))
        else:
            for index in range(len(op.reads)) if what == "inputs" else (int(what[2:]),):
                if index not in stored:
                    yield from _one(op.reads, op.node.inputs, index)


def _one(names: Sequence[str], specs: Sequence[object], index: int) -> Iterator[tuple[str, int]]:
    spec = specs[index] if index < len(specs) else None
    if index < len(names) and names[index] and spec is not None:
        yield names[index], spec.size_bytes  # type: ignore[attr-defined]


def _floats_read(op: Laid) -> Iterator[tuple[str, int]]:
    stored = {index for index, _ in op.node.params}
    for index, (name, spec) in enumerate(zip(op.reads, op.node.inputs, strict=False)):
        if name and spec is not None and spec.is_float and spec.shape and index not in stored:
            yield name, spec.size_bytes


def checkpoints(laid: Sequence[Laid], sizes: Mapping[str, int], segments: int) -> tuple[list[int], dict[str, int]]:
    """Recomputation in ``segments`` equal runs of operators: first positions, and what is kept between them.

    Kept are the tensors made before a boundary and read after it.
    Source: Chen et al., Training Deep Nets with Sublinear Memory Cost (2016).
    """
    starts = sorted({len(laid) * index // segments for index in range(segments)})
    made: dict[str, int] = {}
    last: dict[str, int] = {}
    for position, op in enumerate(laid):
        for name in op.reads:
            last[name] = position
        for name in op.writes:
            made.setdefault(name, position)
    kept: dict[str, int] = {}
    for start in starts[1:]:
        for name, position in last.items():
            if position >= start and name in sizes and made.get(name, -1) < start:
                kept[name] = sizes[name]
    return starts, kept


def kept_results(laid: Sequence[Laid]) -> frozenset[int]:
    """Operators that selective recomputation does not run again.

    In each block (a module with a number: ``layers.0``) attention and every second product, the first among them;
    outside of blocks everything.
    Source: torchtitan's activation checkpointing by operator (``selective_ac_option = "op"``).
    """
    kept: set[int] = set()
    products: Counter[str] = Counter()
    for position, op in enumerate(laid):
        block = _block(op.node.module)
        products[block] += op.op_class is OpClass.MATMUL
        saved = op.op_class is OpClass.ATTENTION or (op.op_class is OpClass.MATMUL and products[block] % 2)
        if saved or not block:
            kept.add(position)
    return frozenset(kept)


def _block(module: str) -> str:
    """The path up to its first number; empty where it has none."""
    path = module.split(".")
    ends = [index for index, part in enumerate(path) if part.isdigit()]
    return ".".join(path[: ends[0] + 1]) if ends else ""
