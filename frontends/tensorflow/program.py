"""One TensorFlow computation, whatever it was saved as: nodes, what is fed, what comes out, what is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphcost.frontends.onnx.bindings import DeclaredInput
from graphcost.frontends.tensorflow.body import Body, Ref
from graphcost.frontends.tensorflow.train_graph import Training
from graphcost.frontends.tensorflow.values import Array, Variable


@dataclass(frozen=True, slots=True)
class Feed:
    """An input: what the user calls it, where it enters the graph, and its declared sizes."""

    ref: Ref
    dtype: int
    declared: DeclaredInput


@dataclass(frozen=True, slots=True)
class Captured:
    """A tensor that a traced function took along: like a constant of the graph."""

    name: str
    dtype: int
    shape: tuple[int, ...]
    data: Array | None


@dataclass(frozen=True, slots=True)
class Program:
    """``outputs`` maps names to references. ``variables`` are looked up by node name, then by shared name.

    ``training`` is the step that the graph itself takes, beyond ``outputs``.
    """

    name: str
    label: str
    format: str
    body: Body
    functions: Mapping[str, Any]
    feeds: tuple[Feed, ...]
    outputs: Mapping[str, str]
    variables: Mapping[str, Variable] = field(default_factory=dict)
    handles: Mapping[str, Variable] = field(default_factory=dict)
    captured: Mapping[str, Captured] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    training: Training | None = None


def declared_dims(shape: Any) -> tuple[int | None, ...] | None:
    """A ``TensorShapeProto`` as written: open sizes are None, and so is a shape of unknown rank."""
    if shape.unknown_rank:
        return None
    return tuple(dim.size if dim.size >= 0 else None for dim in shape.dim)


def reached(body: Body, targets: Sequence[str]) -> list[Any]:
    """Nodes that the targets depend on, in execution order."""
    from graphcost.frontends.tensorflow.frames import frame_needs

    return body.order(targets, needs=frame_needs(body))
