"""Bytes held on one device at the peak of a training step, by category."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from graphcost.ir import OpNode, Param, ParamKind
from graphcost.ops import find_rule
from graphcost.recipe import Optimizer, Precision


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes held on one device at the peak of the step, by category."""

    weights_bytes: int
    gradients_bytes: int
    optimizer_bytes: int
    activations_bytes: int
    buffers_bytes: int

    @property
    def peak_bytes(self) -> int:
        """All categories at the turn from forward to backward; workspace and fragmentation are not in it."""
        return (
            self.weights_bytes + self.gradients_bytes + self.optimizer_bytes
            + self.activations_bytes + self.buffers_bytes
        )  # fmt: skip


def memory_of(
    params: Mapping[str, Param],
    gradient_bytes: Mapping[str, int],
    tape: Iterable[OpNode],
    precision: Precision,
    optimizer: Optimizer,
) -> Memory:
    """Memory of a step: ``gradient_bytes`` by parameter, ``tape`` the operators with a backward pass."""
    width = precision.weight_bytes
    trained = sum(params[name].numel for name in gradient_bytes)
    return Memory(
        weights_bytes=sum(p.numel * width for p in params.values() if p.kind is ParamKind.WEIGHT),
        gradients_bytes=sum(gradient_bytes.values()),
        optimizer_bytes=trained * optimizer.state_values * width,
        activations_bytes=_saved_bytes(tape, half=precision.halves_activations),
        buffers_bytes=sum(p.stored_bytes for p in params.values() if p.kind is ParamKind.BUFFER),
    )


def _saved_bytes(tape: Iterable[OpNode], *, half: bool) -> int:
    """Distinct tensors kept for the backward pass; views share their source's storage.

    ``half``: fp32 activations are kept in a 2-byte format (assumed for every tensor).
    """
    root: dict[str, str] = {}
    kept: dict[str, int] = {}
    for node in tape:
        rule = find_rule(node)
        if rule is None:
            continue
        if rule.is_free:
            if node.input_names and node.output_names:
                root[node.output_names[0]] = root.get(node.input_names[0], node.input_names[0])
            continue
        for token in rule.saves:
            if token == "mask":
                elements = next((spec.numel for spec in node.outputs if spec is not None), 0)
                kept[f"{node.name}:mask"] = elements * node.repeat
            else:
                for name, size in _saved_by(node, token, half=half):
                    kept[root.get(name, name)] = size * node.repeat
    return sum(kept.values())


def _saved_by(node: OpNode, token: str, *, half: bool) -> Iterator[tuple[str, int]]:
    """(value, bytes) that a token of ``Rule.saves`` names; parameters are stored anyway."""
    if token.startswith("out"):
        names, specs, skipped = node.output_names, node.outputs, set[int]()
    else:
        names, specs, skipped = node.input_names, node.inputs, {index for index, _ in node.params}
    wanted = range(len(names)) if token == "inputs" else [int(token.lstrip("inout"))]
    for index in wanted:
        spec = specs[index] if index < len(specs) else None
        if index < len(names) and names[index] and index not in skipped and spec is not None:
            yield names[index], spec.size_bytes // 2 if half and spec.dtype == "float32" else spec.size_bytes
