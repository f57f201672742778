"""aten names of views: operators that move nothing, but decide how the next one finds its data.

A view of a weight is that weight, and no operator. A view of an activation is one, under
ONNX's name for it, so that later stages know where a copy is needed after all: behind
``contiguous``, or where a reshape finds its axes apart.
"""

from __future__ import annotations

from typing import Any

from graphcost.frontends.torch.lower import HANDLERS, Lowering, handles
from graphcost.frontends.torch.records import Ref, TorchOp
from graphcost.ir import TensorSpec

RESHAPES = (
    "view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "view_as", "_unsafe_view", "_reshape_alias",
    "squeeze_", "unsqueeze_", "reshape_as",
)  # fmt: skip
TRANSPOSES = ("permute", "transpose", "t", "numpy_T", "mT", "movedim", "swapaxes", "swapdims", "moveaxis")
PARTS = ("split", "split_with_sizes", "chunk", "unbind", "unsafe_split", "unsafe_chunk", "tensor_split")
SAME = (
    "alias", "detach", "detach_", "lift_fresh_copy", "diagonal", "as_strided", "view_as_real", "view_as_complex",
    "unfold_copy", "positive", "real", "alias_copy", "conj", "resolve_conj", "resolve_neg", "_conj",
)  # fmt: skip
"""Results that are taken for their first argument itself."""


def _source(op: TorchOp) -> Any:
    return next(iter(op.args.values()), None)


def _is_stored(walk: Lowering, op: TorchOp) -> bool:
    """Whether the source is a weight or a constant, or the view changes no shape: then there is no operator."""
    source = _source(op)
    if not isinstance(source, Ref) or walk.is_param(source) or walk.is_constant(source) or not walk.is_made(source):
        return True
    return walk.spec(source) is None or any(walk.out(op, index) is None for index in range(len(op.outputs)))


def _same(walk: Lowering, op: TorchOp) -> None:
    walk.view(op, _source(op))


def _reshape(walk: Lowering, op: TorchOp) -> None:
    if _is_stored(walk, op) or walk.spec(_source(op)) == walk.out(op):
        walk.view(op, _source(op))
    else:
        walk.emit(op, "Reshape", [_source(op)])


def _transpose(walk: Lowering, op: TorchOp) -> None:
    if _is_stored(walk, op):
        walk.view(op, _source(op))
    else:
        walk.emit(op, "Transpose", [_source(op)], perm=_permutation(op, len(walk.need(op, _source(op)).shape)))


def _permutation(op: TorchOp, rank: int) -> tuple[int, ...]:
    """The axes in their new order."""
    name = op.target.split(".")[1]
    numbers = [value for key, value in op.args.items() if key != "self" and not isinstance(value, Ref)]
    if name == "permute":
        return tuple(axis % rank for axis in numbers[0])
    if name == "numpy_T" or name == "t":
        return tuple(reversed(range(rank)))
    axes = list(range(rank))
    if name in ("movedim", "moveaxis"):
        source, target = (value if isinstance(value, tuple) else (value,) for value in numbers[:2])
        places = {goal % rank: axis % rank for axis, goal in zip(source, target, strict=True)}
        rest = iter(axis for axis in axes if axis not in places.values())
        return tuple(places[place] if place in places else next(rest) for place in axes)
    first, second = (rank - 2, rank - 1) if name == "mT" else (numbers[0] % rank, numbers[1] % rank)
    axes[first], axes[second] = axes[second], axes[first]
    return tuple(axes)


@handles("aten.expand", "aten.expand_as", "aten.broadcast_to")
def _expand(walk: Lowering, op: TorchOp) -> None:
    if _is_stored(walk, op) or walk.spec(_source(op)) == walk.out(op):
        walk.view(op, _source(op))
    else:
        walk.emit(op, "Expand", [_source(op)])


@handles("aten.slice", "aten.narrow")
def _slice(walk: Lowering, op: TorchOp) -> None:
    if _is_stored(walk, op) or walk.spec(_source(op)) == walk.out(op):
        walk.view(op, _source(op))
    else:
        rank = len(walk.need(op, _source(op)).shape)
        asked = op.args.get("step", 1)
        step = asked if isinstance(asked, int) else 1
        walk.emit(op, "Slice", [_source(op)], axis=int(op.args.get("dim", 0)) % rank, step=step)


@handles("aten.select")
def _select(walk: Lowering, op: TorchOp) -> None:
    """One place of an axis, which is gone then."""
    if _is_stored(walk, op):
        walk.view(op, _source(op))
    else:
        rank = len(walk.need(op, _source(op)).shape)
        at = TensorSpec((), "int64")
        walk.emit(op, "Gather", [_source(op), None], specs={1: at}, slots=(), axis=int(op.args.get("dim", 0)) % rank)


def _parts(walk: Lowering, op: TorchOp) -> None:
    if _is_stored(walk, op):
        walk.view(op, _source(op))
    else:
        rank = len(walk.need(op, _source(op)).shape)
        walk.emit(op, "Split", [_source(op)], axis=int(op.args.get("dim", 0)) % rank)


@handles("aten.contiguous")
def _contiguous(walk: Lowering, op: TorchOp) -> None:
    """A copy where the data does not lie in order already; which it does is known later."""
    if _is_stored(walk, op):
        walk.view(op, _source(op))
    else:
        asked = str(op.args.get("memory_format", ""))
        walk.emit(op, "Identity", [_source(op)], contiguous=int("channels_last" not in asked))


for _names, _handler in ((SAME, _same), (RESHAPES, _reshape), (TRANSPOSES, _transpose), (PARTS, _parts)):
    for _name in _names:
        HANDLERS[f"aten.{_name}"] = _handler
