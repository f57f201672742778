"""Which values share storage, and where a transposed or broadcast one is copied after all.

Reshapes, transposes, slices and expansions are views, as in torch: they move nothing
and their results share their source's storage. A copy comes where strides allow no view:
a reshape over transposed axes, a batched product whose leading axes do not fold, a
normalisation or convolution of something transposed.
Source: torch's view rule (``at::detail::computeStride``) and ``aten::matmul``'s folding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod

from graphcost.ir import OpNode, TensorSpec
from graphcost.ops import OpClass, op_class_of

Strides = tuple[int, ...]

_RESHAPES = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "ExpandDims", "BitCast"})
_NEED_CONTIGUOUS = frozenset({OpClass.NORM, OpClass.SOFTMAX, OpClass.CONV, OpClass.DEPTHWISE, OpClass.POOL})


@dataclass(frozen=True, slots=True)
class Laid:
    """An operator and where its values lie.

    ``reads``: storage of each input, ``writes``: of each output (a view's is its source's).
    ``is_view``: nothing runs. ``copied``: inputs that are copied first; of a reshape, the
    copy is all it does.
    """

    node: OpNode
    op_class: OpClass | None
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    is_view: bool
    copied: tuple[int, ...] = ()

    @property
    def copied_bytes(self) -> int:
        """Bytes of the copies, one direction, one trip."""
        return sum(spec.size_bytes for i in self.copied if (spec := self.node.spec(i)) is not None)


def contiguous(shape: tuple[int, ...]) -> Strides:
    """Row-major strides in elements.

    >>> contiguous((2, 3, 4))
    (12, 4, 1)
    """
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(1, size)
    return tuple(reversed(strides))


def view_strides(shape: tuple[int, ...], strides: Strides, target: tuple[int, ...]) -> Strides | None:
    """Strides of a view of ``target`` shape, or None where only a copy has it.

    Axes of the source merge where each one steps over the whole of the next.

    >>> view_strides((2, 3, 4), (12, 4, 1), (6, 4)), view_strides((3, 2, 4), (4, 12, 1), (6, 4))
    ((4, 1), None)
    """
    if prod(shape) != prod(target) or 0 in shape:
        return contiguous(target)
    found: list[int] = []
    left = [(size, stride) for size, stride in zip(shape, strides, strict=True) if size != 1]
    position = len(left) - 1
    chunk, base = (1, 1) if not left else left[position]
    while position > 0 and left[position - 1][1] == left[position][0] * left[position][1]:
        position -= 1
        chunk *= left[position][0]
    taken = 1
    for size in reversed(target):
        if taken == chunk and size != 1 and position > 0:
            position -= 1
            chunk, base, taken = left[position][0], left[position][1], 1
            while position > 0 and left[position - 1][1] == left[position][0] * left[position][1]:
                position -= 1
                chunk *= left[position][0]
        if size != 1 and chunk % (taken * size):
            return None
        found.append(base * taken)
        taken *= size
    return tuple(reversed(found))


def is_dense(shape: tuple[int, ...], strides: Strides) -> bool:
    """Whether the elements fill their storage, in whatever order of axes.

    >>> is_dense((2, 3), (1, 2)), is_dense((2, 3), (0, 1))
    (True, False)
    """
    step = 1
    for stride, size in sorted(zip(strides, shape, strict=True)):
        if size != 1 and stride != step:
            return False
        step *= max(1, size)
    return True


def lay_out(nodes: Iterable[OpNode], *, trains: bool = True) -> Iterator[Laid]:
    """Every operator in order with the storages of its values. Dropout does nothing unless the step ``trains``."""
    walk = _Walk(trains)
    for node in nodes:
        yield walk.step(node)


class _Walk:
    def __init__(self, trains: bool) -> None:
        self._trains = trains
        self._root: dict[str, str] = {}
        self._strides: dict[str, Strides] = {}

    def step(self, node: OpNode) -> Laid:
        op_class = op_class_of(node)
        reads = tuple(self._root.get(name, name) for name in node.input_names)
        seen = self._view(node)
        if seen is not None:
            for name, strides in seen.items():
                self._root[name] = reads[0]
                self._strides[name] = strides
            return Laid(node, op_class, reads, (reads[0],) * len(node.output_names), is_view=True)
        if self._reshapes(node) and node.spec(0) is not None and node.input_names and node.output_names:
            return Laid(node, OpClass.COPY, reads, node.output_names, is_view=False, copied=(0,))
        copied = tuple(self._copied(node, op_class))
        reads = tuple(f"{name}@{node.output_names[0]}" if i in copied else name for i, name in enumerate(reads))
        self._keep_order(node, op_class)
        return Laid(node, op_class, reads, node.output_names, is_view=False, copied=copied)

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
            return {name: _broadcast(spec.shape, strides, shape) for name, shape in shapes.items()}
        if node.op_type in ("Slice", "Split") and all(_within(shape, spec.shape) for shape in shapes.values()):
            steps = _steps(node, len(strides))
            if any(step < 1 for step in steps):
                return None  # torch has no negative strides: flip copies
            return dict.fromkeys(shapes, tuple(a * b for a, b in zip(strides, steps, strict=True)))
        if node.op_type == "Gather" and not node.params_at(0) and (at := node.spec(1)) is not None and not at.shape:
            axis = int(node.attrs.get("axis", 0)) % max(1, len(strides))
            return dict.fromkeys(shapes, strides[:axis] + strides[axis + 1 :])
        return None

    def _copied(self, node: OpNode, op_class: OpClass | None) -> Iterator[int]:
        """Inputs that the operator cannot read as they lie."""
        if node.op_type == "MatMul":
            yield from self._unfolded(node)
        elif op_class in _NEED_CONTIGUOUS and (found := self._of(node, 0)) is not None:
            spec, strides = found
            if view_strides(spec.shape, strides, (spec.numel,)) is None:
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

    def _keep_order(self, node: OpNode, op_class: OpClass | None) -> None:
        """Pointwise results lie like their input, attention's with heads beside head size."""
        out = node.outputs[0] if node.outputs else None
        if out is None or not node.output_names:
            return
        if node.op_type == "Attention" and len(out.shape) == 4 and not node.domain:
            _, heads, length, width = out.shape
            self._strides[node.output_names[0]] = (length * heads * width, width, heads * width, 1)
        elif op_class is OpClass.POINTWISE:
            for index, spec in enumerate(node.inputs):
                found = self._of(node, index)
                if found is not None and spec is not None and spec.shape == out.shape:
                    if is_dense(spec.shape, found[1]):
                        self._strides[node.output_names[0]] = found[1]
                    return


def _within(shape: tuple[int, ...], source: tuple[int, ...]) -> bool:
    return len(shape) == len(source) and all(part <= whole for part, whole in zip(shape, source, strict=True))


def _steps(node: OpNode, rank: int) -> Strides:
    """A slice's step along every axis; 1 where it says none."""
    steps = [1] * rank
    given = node.values.get(4, ()) if node.op_type == "Slice" else ()
    for axis, step in zip(node.values.get(3, range(len(given))), given, strict=False):
        steps[int(axis) % rank] = int(step)
    return tuple(steps)


def _broadcast(shape: tuple[int, ...], strides: Strides, target: tuple[int, ...]) -> Strides:
    """Strides after broadcasting: 0 along axes that repeat."""
    added = len(target) - len(shape)
    padded = (1,) * max(0, added) + shape
    steps = (0,) * max(0, added) + strides
    return tuple(
        0 if have == 1 and want != 1 else step for have, want, step in zip(padded, target, steps, strict=False)
    )
