"""Which values share storage, and where a transposed or broadcast one is copied after all.

Reshapes, transposes, slices and expansions are views, as in torch: they move nothing
and their results share their source's storage. A copy comes where strides allow no view:
a reshape over transposed axes, a batched product whose leading axes do not fold, a
normalisation or convolution of something transposed.
Source: torch's view rule (``at::detail::computeStride``) and ``aten::matmul``'s folding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod

from graphcost.ir import OpNode, TensorSpec
from graphcost.ops import OpClass, op_class_of
from graphcost.training.strides import (
    Strides,
    broadcast,
    channels_last,
    contiguous,
    dense_like,
    is_channels_last,
    same_order,
    view_strides,
)

_RESHAPES = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "ExpandDims", "BitCast"})
_NEED_CONTIGUOUS = frozenset({OpClass.NORM, OpClass.SOFTMAX, OpClass.CONV, OpClass.DEPTHWISE, OpClass.POOL})


_EITHER_ORDER = frozenset({OpClass.CONV, OpClass.DEPTHWISE, OpClass.POOL})
_EITHER_ORDER_TYPES = frozenset({"BatchNormalization", "Concat", "Pad", "Resize", "Upsample"})
"""Kernels that take images in the order they lie in and give it on: torch's memory format propagation."""


@dataclass(frozen=True, slots=True)
class Laid:
    """An operator and where its values lie.

    ``reads``: storage of each input, ``writes``: of each output (a view's is its source's).
    ``is_view``: nothing runs. ``copied``: inputs that are copied first; of a reshape, the
    copy is all it does. ``channels_last``: the order that its kernel takes an image in.
    """

    node: OpNode
    op_class: OpClass | None
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    is_view: bool
    copied: tuple[int, ...] = ()
    channels_last: bool = False

    @property
    def copied_bytes(self) -> int:
        """Bytes of the copies, one direction, one trip."""
        return sum(spec.size_bytes for i in self.copied if (spec := self.node.spec(i)) is not None)


def lay_out(
    nodes: Iterable[OpNode],
    *,
    trains: bool = True,
    channels_last: bool = False,
    images: Mapping[str, TensorSpec] | None = None,
) -> Iterator[Laid]:
    """Every operator in order with the storages of its values. Dropout does nothing unless the step ``trains``.

    ``channels_last``: the weights of convolutions are kept in that order, and so are the inputs ``images``.
    """
    walk = _Walk(trains, channels_last, images or {})
    for node in nodes:
        yield walk.step(node)


class _Walk:
    def __init__(self, trains: bool, last: bool, images: Mapping[str, TensorSpec]) -> None:
        self._trains = trains
        self._last = last
        self._root: dict[str, str] = {}
        self._strides: dict[str, Strides] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        for name, spec in images.items():
            if len(spec.shape) in (4, 5):
                self._strides[name] = channels_last(spec.shape)

    def step(self, node: OpNode) -> Laid:
        op_class = op_class_of(node)
        reads = tuple(self._root.get(name, name) for name in node.input_names)
        seen = self._view(node)
        if seen is not None:
            for (name, strides), out in zip(seen.items(), node.outputs, strict=False):
                self._root[name] = reads[0]
                self._strides[name] = strides
                if out is not None:
                    self._shapes[name] = out.shape
            return Laid(node, op_class, reads, (reads[0],) * len(node.output_names), is_view=True)
        if self._reshapes(node) and node.spec(0) is not None and node.input_names and node.output_names:
            return Laid(node, OpClass.COPY, reads, node.output_names, is_view=False, copied=(0,))
        last = self._takes_last(node, op_class)
        copied = tuple(self._copied(node, op_class, last))
        # Two inputs of one storage (queries and keys split from one product) have a copy each.
        reads = tuple(f"{name}@{node.output_names[0]}:{i}" if i in copied else name for i, name in enumerate(reads))
        self._keep_order(node, op_class, last)
        return Laid(node, op_class, reads, node.output_names, is_view=False, copied=copied, channels_last=last)

    def _takes_last(self, node: OpNode, op_class: OpClass | None) -> bool:
        """Whether the kernel works on channels last: its data lies so, or its weight does."""
        if op_class not in _EITHER_ORDER and node.op_type not in _EITHER_ORDER_TYPES:
            return False
        found = self._of(node, 0)
        if found is None or len(found[0].shape) not in (4, 5):
            return False
        weights = self._last and op_class in (OpClass.CONV, OpClass.DEPTHWISE)
        return weights or is_channels_last(found[0].shape, found[1])

    def _reshapes(self, node: OpNode) -> bool:
        """Whether the values stay as they are: reshapes, and a dropout that drops nothing."""
        if node.op_type != "Dropout" or node.domain:
            return node.op_type in _RESHAPES
        ratio = node.values.get(1) or (node.attrs.get("ratio"),)
        return not self._trains or ratio[0] == 0

    def _of(self, node: OpNode, index: int) -> tuple[TensorSpec, Strides] | None:
        spec = node.spec(index)
        if spec is None or index >= len(node.input_names):
            return None
        strides = self._strides.get(node.input_names[index])
        return spec, strides if strides is not None and len(strides) == len(spec.shape) else contiguous(spec.shape)

    def _view(self, node: OpNode) -> dict[str, Strides] | None:
        """Strides of every output where the operator is a view, else None."""
        source = self._of(node, 0)
        if source is None or not node.output_names or any(out is None for out in node.outputs):
            return None
        spec, strides = source
        shapes = {name: out.shape for name, out in zip(node.output_names, node.outputs, strict=False) if name and out}
        if node.op_type == "Identity" and node.attrs.get("contiguous") and strides != contiguous(spec.shape):
            return None
        if self._reshapes(node):
            found = {name: view_strides(spec.shape, strides, shape) for name, shape in shapes.items()}
            return (
                {n: s for n, s in found.items() if s is not None}
                if all(s is not None for s in found.values())
                else None
            )
        if node.domain:
            return None
        if node.op_type == "Transpose":
            perm = node.attrs.get("perm") or tuple(reversed(range(len(strides))))
            return {name: tuple(strides[axis] for axis in perm) for name in shapes}
        if node.op_type == "Expand":
            return {name: broadcast(spec.shape, strides, shape) for name, shape in shapes.items()}
        if node.op_type in ("Slice", "Split") and all(_within(shape, spec.shape) for shape in shapes.values()):
            steps = _steps(node, len(strides))
            if any(step < 1 for step in steps):
                return None  # torch has no negative strides: flip copies
            return dict.fromkeys(shapes, tuple(a * b for a, b in zip(strides, steps, strict=True)))
        if node.op_type == "Split" and all(len(shape) == len(strides) - 1 for shape in shapes.values()):
            axis = int(node.attrs.get("axis", 0)) % len(strides)  # torch's unbind: the axis is gone
            return dict.fromkeys(shapes, strides[:axis] + strides[axis + 1 :])
        if node.op_type == "Gather" and not node.params_at(0) and (at := node.spec(1)) is not None and not at.shape:
            axis = int(node.attrs.get("axis", 0)) % max(1, len(strides))
            return dict.fromkeys(shapes, strides[:axis] + strides[axis + 1 :])
        return None

    def _copied(self, node: OpNode, op_class: OpClass | None, last: bool) -> Iterator[int]:
        """Inputs that the operator cannot read as they lie."""
        if node.op_type == "MatMul":
            yield from self._unfolded(node)
        elif node.op_type == "Gemm":
            yield from self._unfolded_rows(node)
        elif op_class in _NEED_CONTIGUOUS and (found := self._of(node, 0)) is not None:
            spec, strides = found
            wanted = channels_last(spec.shape) if last else contiguous(spec.shape)
            if not same_order(spec.shape, strides, wanted):
                yield 0

    def _unfolded(self, node: OpNode) -> Iterator[int]:
        """Operands of a batched product that must be copied for its leading axes to become one."""
        ranks = [len(spec.shape) if spec is not None else 0 for spec in (node.spec(0), node.spec(1))]
        for index in (0, 1):
            found = self._of(node, index)
            if found is None or ranks[index] < 3:
                continue
            spec, strides = found
            *batch, rows, columns = spec.shape
            if ranks[1 - index] < 3 and index == 0:
                if view_strides(spec.shape, strides, (prod(batch) * rows, columns)) is None:
                    yield index
                continue
            leading = (*batch, rows, columns) if not batch else (prod(batch), rows, columns)
            dense = 1 in strides[-2:] or 1 in (rows, columns)
            if not dense or view_strides(spec.shape, strides, leading) is None:
                yield index

    def _unfolded_rows(self, node: OpNode) -> Iterator[int]:
        """The data of a linear layer, where its leading axes are no rows of one matrix."""
        name = node.input_names[0] if node.input_names else ""
        shape, spec = self._shapes.get(name), node.spec(0)
        strides = self._strides.get(name)
        if shape is None or strides is None or spec is None or len(shape) < 3 or prod(shape) != spec.numel:
            return
        rows = view_strides(shape, strides, (prod(shape[:-1]), shape[-1]))
        if rows is None or 1 not in rows:
            yield 0

    def _keep_order(self, node: OpNode, op_class: OpClass | None, last: bool) -> None:
        """Pointwise results lie like their input, images like the kernel's, attention's heads beside head size."""
        out = node.outputs[0] if node.outputs else None
        if out is None or not node.output_names:
            return
        if node.op_type == "Attention" and len(out.shape) == 4 and not node.domain:
            _, heads, length, width = out.shape
            self._strides[node.output_names[0]] = (length * heads * width, width, heads * width, 1)
        elif last and len(out.shape) in (4, 5):
            self._strides[node.output_names[0]] = channels_last(out.shape)
        elif op_class is OpClass.POINTWISE:
            for index, spec in enumerate(node.inputs):
                found = self._of(node, index)
                if found is not None and spec is not None and spec.shape == out.shape:
                    self._strides[node.output_names[0]] = dense_like(spec.shape, found[1])
                    self._shapes[node.output_names[0]] = out.shape
                    return


def _within(shape: tuple[int, ...], source: tuple[int, ...]) -> bool:
    return len(shape) == len(source) and all(part <= whole for part, whole in zip(shape, source, strict=True))


def _steps(node: OpNode, rank: int) -> Strides:
    """A slice's step along every axis; 1 where it says none. Attributes are those of the torch frontend."""
    steps = [1] * rank
    if "step" in node.attrs:
        steps[int(node.attrs["axis"]) % rank] = int(node.attrs["step"])
    given = node.values.get(4, ()) if node.op_type == "Slice" else ()
    for axis, step in zip(node.values.get(3, range(len(given))), given, strict=False):
        steps[int(axis) % rank] = int(step)
    return tuple(steps)
