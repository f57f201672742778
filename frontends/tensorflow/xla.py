"""The dimension numbers of ``XlaDot``: a message of four integer lists, turned into index notation."""

from __future__ import annotations

from collections.abc import Iterator
from string import ascii_lowercase

_FIELDS = {1: "lhs_contracting", 2: "rhs_contracting", 3: "lhs_batch", 4: "rhs_batch"}


def dot_equation(serialized: bytes, lhs_rank: int, rhs_rank: int) -> str:
    """An einsum equation for ``xla.DotDimensionNumbers``; result axes: batch, lhs rest, rhs rest.

    Source: xla_data.proto, DotDimensionNumbers. Raises ``LookupError`` for a malformed message.

    >>> dot_equation(bytes([0x0A, 1, 1, 0x12, 1, 0]), 2, 2)
    'ab,bc->ac'
    """
    numbers: dict[str, list[int]] = {name: [] for name in _FIELDS.values()}
    for field, value in _varints(serialized):
        if field in _FIELDS:
            numbers[_FIELDS[field]].append(value)
    letters = iter(ascii_lowercase)
    lhs = [next(letters) for _ in range(lhs_rank)]
    rhs = [""] * rhs_rank
    pairs = [*zip(numbers["lhs_contracting"], numbers["rhs_contracting"], strict=True)]
    pairs += zip(numbers["lhs_batch"], numbers["rhs_batch"], strict=True)
    for left, right in pairs:
        rhs[right] = lhs[left]
    rhs = [letter or next(letters) for letter in rhs]
    batch = [lhs[i] for i in numbers["lhs_batch"]]
    shared = {lhs[i] for i in (*numbers["lhs_contracting"], *numbers["lhs_batch"])}
    rest = [letter for letter in (*lhs, *rhs) if letter not in shared]
    return f"{''.join(lhs)},{''.join(rhs)}->{''.join([*batch, *rest])}"


def _varints(data: bytes) -> Iterator[tuple[int, int]]:
    """(field, value) of repeated int64 fields, packed or not."""
    position = 0

    def varint() -> int:
        nonlocal position
        result = shift = 0
        while True:
            if position >= len(data):
                raise LookupError("dimension numbers end early")
            byte = data[position]
            position += 1
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result
            shift += 7

    while position < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        elif tag & 7 == 2:
            end = varint() + position
            while position < end:
                yield tag >> 3, varint()
        else:
            raise LookupError("dimension numbers hold a field of another type")
