"""A torch export as plain records: what both readers (archive, live module) produce.

``target`` is the aten name with its overload, ``aten.linear.default``. Arguments are by
schema name; tensors among them are ``Ref``. Sizes may be expressions in symbols; they
are resolved before lowering.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graphcost.ir import TensorSpec

Size = int | str
"""A size: a number, or an expression in the export's symbols."""


@dataclass(frozen=True, slots=True)
class Ref:
    """An argument that is a tensor, by value name."""

    name: str


@dataclass(frozen=True, slots=True)
class TensorMeta:
    """A tensor's sizes and dtype as exported."""

    sizes: tuple[Size, ...]
    dtype: str
    requires_grad: bool = False


@dataclass(frozen=True, slots=True)
class TorchOp:
    """One call of the exported graph. ``graphs`` are the bodies of higher-order operators."""

    name: str
    target: str
    args: Mapping[str, Any]
    outputs: tuple[str, ...]
    module: str = ""
    origin: str = ""
    graphs: Mapping[str, TorchGraph] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TorchGraph:
    """Operators in order, with the meta of every tensor value."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    ops: tuple[TorchOp, ...]
    tensors: Mapping[str, TensorMeta]


@dataclass(frozen=True, slots=True)
class Exported:
    """A whole export. ``params`` and ``buffers`` map a value to its name in the state dict.

    ``storage`` maps a state-dict name to the tensor it shares storage with. ``notes`` say
    how the export was made, where that matters.
    """

    graph: TorchGraph
    user_inputs: tuple[str, ...]
    params: Mapping[str, str]
    buffers: Mapping[str, str]
    storage: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Resolved:
    """Sizes of one graph with all symbols bound."""

    specs: Mapping[str, TensorSpec]
