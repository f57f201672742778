"""Gradients of parameters: how large, when ready, how much of a table they touch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from graphcost.ir import OpNode, Param, ParamKind
from graphcost.recipe import Recipe


@dataclass(frozen=True, slots=True)
class Gradient:
    """A parameter's gradient. ``ready_index``: position in the backward list after which it is whole.

    ``rows_bytes`` are the touched rows (values and indices) where the parameter is a table
    that is only looked up; None where the gradient is dense in any case.
    """

    param: str
    bytes: int
    ready_index: int
    rows_bytes: int | None = None
    sparse: bool = False

    @property
    def sent_bytes(self) -> int:
        """Bytes where a table marked sparse travels, and is kept, as its touched rows."""
        return self.rows_bytes if self.sparse and self.rows_bytes is not None else self.bytes


def gradients_of(
    nodes: Iterable[OpNode], params: Mapping[str, Param], ready: Mapping[str, int], recipe: Recipe
) -> tuple[Gradient, ...]:
    """Gradients in order of readiness. A table that anything but a lookup uses is dense."""
    width = recipe.weight_bytes
    lookups: dict[str, int] = {}
    index_bytes: dict[str, int] = {}
    dense: set[str] = set()
    for node in nodes:
        for slot, param in node.params:
            if param.name not in ready:
                continue
            indices = node.spec(1)
            if looks_up(node, slot) and indices is not None:
                lookups[param.name] = lookups.get(param.name, 0) + indices.numel * node.repeat
                index_bytes[param.name] = indices.size_bytes // max(1, indices.numel)
            else:
                dense.add(param.name)
    rows = {
        name: _rows_bytes(params[name], count, index_bytes[name], width, recipe)
        for name, count in lookups.items()
        if name not in dense
    }
    return tuple(
        Gradient(
            param=name,
            bytes=params[name].numel * width,
            ready_index=index,
            rows_bytes=rows.get(name),
            sparse=params[name].sparse,
        )
        for name, index in sorted(ready.items(), key=lambda item: item[1])
    )


def values_read(nodes: Iterable[OpNode]) -> int:
    """Values of parameters that a forward pass reads at least once: whole ones, and the rows that lookups return."""
    read: dict[str, int] = {}
    for node in nodes:
        for slot, param in node.params:
            if param.kind is ParamKind.WEIGHT:
                values = node.out.numel * node.repeat if looks_up(node, slot) else param.numel
                read[param.name] = min(param.numel, read.get(param.name, 0) + values)
    return sum(read.values())


def looks_up(node: OpNode, slot: int) -> bool:
    """Whether the operator picks rows of a table at ``slot``."""
    return (
        node.op_type == "Gather" and slot == 0 and node.attrs.get("axis", 0) == 0 and node.spec(1) is not None
        and any(spec is not None for spec in node.outputs)
    )  # fmt: skip


def by_rows(node: OpNode, slot: int) -> bool:
    """Whether the gradient at ``slot`` is the touched rows of a table marked sparse."""
    return looks_up(node, slot) and any(param.sparse for param in node.params_at(slot))


def _rows_bytes(param: Param, lookups: int, index_bytes: int, width: int, recipe: Recipe) -> int:
    """Bytes of the touched rows with their indices, at most the whole table."""
    table_rows = param.spec.shape[0]
    row = param.numel // max(1, table_rows)
    touched = recipe.lookups.rows(lookups, table_rows)
    return min(touched * (row * width + index_bytes), param.numel * width)
