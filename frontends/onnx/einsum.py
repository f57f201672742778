"""The shape of an Einsum's result.

onnx's own inference does not end on some malformed equations, so it is never asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from graphcost.errors import ShapeError

_TERM = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*")


def einsum_shape(name: str, equation: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Result of ``equation`` on operands of ``shapes``.

    Raises ``ShapeError`` where they do not fit. Source: ONNX Einsum-12 (numpy.einsum
    semantics; the ellipsis' axes broadcast, and lead an implicit result).
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes) or not all(_TERM.fullmatch(term) for term in (*terms, right)):
        raise ShapeError(f"{name} (Einsum): equation {equation!r} is not one for {len(shapes)} operands")
    sizes: dict[str, int] = {}
    spread: list[int] = []  # the ellipsis' axes, from the right
    for term, shape in zip(terms, shapes, strict=True):
        head, dots, tail = term.partition("...")
        spare = len(shape) - len(head) - len(tail)
        if spare < 0 or (spare and not dots):
            raise ShapeError(
                f"{name} (Einsum): term {term!r} of {equation!r} has {len(head) + len(tail)} labels "
                f"for the {len(shape)} axes of {list(shape)}"
            )
        last = len(shape) - len(tail)
        for label, size in zip(head + tail, shape[: len(head)] + shape[last:], strict=True):
            sizes[label] = _common(sizes.get(label, 1), size, name, equation)
        for at, size in enumerate(reversed(shape[len(head) : last])):
            if at == len(spread):
                spread.append(1)
            spread[at] = _common(spread[at], size, name, equation)
    if not arrow:
        letters = "".join(terms).replace("...", "")
        right = "..." + "".join(sorted(label for label in sizes if letters.count(label) == 1))
    before, dots, after = right.partition("...")
    if missing := sorted(set(before + after) - sizes.keys()):
        raise ShapeError(f"{name} (Einsum): equation {equation!r} gives {missing} that no operand has")
    middle = tuple(reversed(spread)) if dots else ()
    return (*(sizes[label] for label in before), *middle, *(sizes[label] for label in after))


def _common(known: int, size: int, name: str, equation: str) -> int:
    if 1 not in (known, size) and known != size:
        raise ShapeError(f"{name} (Einsum): equation {equation!r} makes one axis both {known} and {size}")
    return size if known == 1 else known
