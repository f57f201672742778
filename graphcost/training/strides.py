"""Strides of tensors: views of them, and the two orders that images are kept in."""

from __future__ import annotations

from math import prod

Strides = tuple[int, ...]


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


def broadcast(shape: tuple[int, ...], strides: Strides, target: tuple[int, ...]) -> Strides:
    """Strides after broadcasting: 0 along axes that repeat."""
    added = len(target) - len(shape)
    padded = (1,) * max(0, added) + shape
    steps = (0,) * max(0, added) + strides
    return tuple(
        0 if have == 1 and want != 1 else step for have, want, step in zip(padded, target, steps, strict=False)
    )


def channels_last(shape: tuple[int, ...]) -> Strides:
    """Strides of an image batch ``[N, C, *spatial]`` whose channels lie side by side.

    >>> channels_last((2, 3, 4, 5))
    (60, 1, 15, 3)
    """
    steps = contiguous((shape[0], *shape[2:], shape[1]))
    return (steps[0], steps[-1], *steps[1:-1])


def is_channels_last(shape: tuple[int, ...], strides: Strides) -> bool:
    """Whether channels are the innermost axis; no where the order cannot be told (one pixel, one channel).

    Source: torch's ``is_channels_last_strides_2d`` and its kin, which look at the order alone.

    >>> is_channels_last((2, 3, 4, 4), (48, 1, 12, 3)), is_channels_last((2, 3, 1, 1), (3, 1, 1, 1))
    (True, False)
    """
    if len(shape) not in (4, 5) or shape[1] == 1 or prod(shape[2:]) == 1:
        return False
    inner, step = strides[1], strides[1]
    for size, stride in reversed(
        [*zip(shape[:1], strides[:1], strict=True), *zip(shape[2:], strides[2:], strict=True)]
    ):
        if size != 1 and stride < step:
            return False
        step = max(step, stride if size != 1 else step)
    return inner < step


def dense_like(shape: tuple[int, ...], strides: Strides) -> Strides:
    """Dense strides with the axes in the order of ``strides``, as pointwise kernels write their result.

    >>> dense_like((2, 3, 4), (100, 1, 10))
    (12, 1, 3)
    """
    order = sorted(range(len(shape)), key=lambda axis: (-strides[axis], axis))
    found, step = [0] * len(shape), 1
    for axis in reversed(order):
        found[axis] = step
        step *= max(1, shape[axis])
    return tuple(found)


def same_order(shape: tuple[int, ...], first: Strides, second: Strides) -> bool:
    """Whether two layouts of one shape are the same in memory: axes of one element do not count."""
    return all(size == 1 or a == b for size, a, b in zip(shape, first, second, strict=True))
