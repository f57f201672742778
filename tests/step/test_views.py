"""Views against torch's real strides: graphcost copies exactly where torch does."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcost.ir import OpNode, TensorSpec
from graphcost.training.strides import contiguous, dense_like, same_order, view_strides
from graphcost.training.views import Laid, lay_out

torch = pytest.importorskip("torch")
KINDS = ("Reshape", "Transpose", "Slice", "Reshape", "Gather", "Expand", "Unsqueeze", "Squeeze")
Draw = Callable[[st.SearchStrategy[Any]], Any]


def node(
    op_type: str, source: str, shape: tuple[int, ...], out: str, to: tuple[int, ...], *more: TensorSpec, **known: Any
) -> OpNode:
    """``out = op(source)``; ``more`` inputs are constants."""
    names = (source, *(f"{out}.{index}" for index in range(len(more))))
    inputs = (TensorSpec(shape), *more)
    return OpNode(out, op_type, inputs, (TensorSpec(to),), input_names=names, output_names=(out,), **known)


def divisions(numel: int, draw: Draw) -> tuple[int, ...]:
    """A shape of ``numel`` elements, often all on one axis: that merges every axis there was."""
    sizes: list[int] = []
    if draw(st.booleans()):
        return (numel,)
    while numel > 1 and len(sizes) < 4:
        size = draw(st.sampled_from([d for d in range(1, numel + 1) if numel % d == 0]))
        sizes.append(size)
        numel //= size
    return (*sizes, numel)


@st.composite
def chains(draw: Draw) -> list[tuple[OpNode, Any, bool]]:
    """Operators one after another, each with torch's result, and whether that shares its source's storage."""
    value = torch.empty(tuple(draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=4))))
    chain: list[tuple[OpNode, Any, bool]] = []
    for _ in range(draw(st.integers(2, 6))):
        before, held, source = tuple(value.shape), value, f"v{len(chain)}"
        kind = draw(st.sampled_from(KINDS))
        known: dict[str, Any] = {}
        more: tuple[TensorSpec, ...] = ()
        if kind == "Reshape":
            value = value.reshape(divisions(value.numel(), draw))
        elif kind == "Transpose":
            order = tuple(draw(st.permutations(range(len(before)))))
            value, known = value.permute(order), {"attrs": {"perm": order}}
        elif kind == "Unsqueeze" and len(before) < 5:
            value = value.unsqueeze(draw(st.integers(0, len(before))))
        elif kind == "Squeeze":
            value = value.squeeze()
        elif kind == "Slice" and before:
            axis = draw(st.integers(0, len(before) - 1))
            start, step = draw(st.integers(0, min(1, before[axis] - 1))), draw(st.integers(1, 3))
            value = value[(slice(None),) * axis + (slice(start, None, step),)]
            more = (TensorSpec((1,), "int64"),) * 4
            known = {"values": {1: (start,), 2: (2**31,), 3: (axis - len(before),), 4: (step,)}}
        elif kind == "Gather" and before:
            axis = draw(st.integers(0, len(before) - 1))
            value, known = value.select(axis, 0), {"attrs": {"axis": axis}}
            more = (TensorSpec((), "int64"),)
        elif kind == "Expand":
            wider = tuple(size if size != 1 else draw(st.integers(1, 3)) for size in before)
            value = value.expand((*([2] if len(before) < 4 and draw(st.booleans()) else []), *wider))
        else:
            continue
        made = node(kind, source, before, f"v{len(chain) + 1}", tuple(value.shape), *more, **known)
        chain.append((made, value, value.untyped_storage().data_ptr() == held.untyped_storage().data_ptr()))
    return chain


@settings(max_examples=600)
@given(chains())
def test_a_chain_copies_exactly_where_torch_does(chain: list[tuple[OpNode, Any, bool]]) -> None:
    laid = lay_out([one for one, _, _ in chain])
    for found, (one, _, shares) in zip(laid, chain, strict=True):
        assert found.is_view == shares, one
        assert found.copied == (() if shares else (0,))


@settings(max_examples=400)
@given(st.data())
def test_strides_of_a_view_are_torchs(data: st.DataObject) -> None:
    """``Tensor.view`` takes a shape, or refuses it; graphcost gives its strides, or None."""
    draw = data.draw
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    order = tuple(draw(st.permutations(range(len(shape)))))
    value = torch.empty(shape).permute(order)[tuple(slice(None, None, draw(st.integers(1, 2))) for _ in shape)]
    target = divisions(value.numel(), draw)
    found = view_strides(tuple(value.shape), value.stride(), target)
    try:
        expected = value.view(target)
    except RuntimeError:
        assert found is None
        return
    assert found is not None
    wide = [index for index, size in enumerate(target) if size != 1]  # the step over a single element is anything
    assert [found[i] for i in wide] == [expected.stride()[i] for i in wide]


@settings(max_examples=200)
@given(st.data())
def test_dense_means_that_elements_fill_their_storage(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    order = tuple(data.draw(st.permutations(range(len(shape)))))
    value = torch.empty(shape).permute(order)
    if data.draw(st.booleans()):
        value = value[tuple(slice(None, None, data.draw(st.integers(1, 2))) for _ in shape)]
    span = sum((size - 1) * stride for size, stride in zip(value.shape, value.stride(), strict=True)) + 1
    shape_now, strides = tuple(value.shape), value.stride()
    assert same_order(shape_now, dense_like(shape_now, strides), strides) == (span == value.numel())
    assert contiguous(shape) == torch.empty(shape).stride()


def laid_one(op_type: str, shape: tuple[int, ...], to: tuple[int, ...], *more: TensorSpec, **known: Any) -> Laid:
    return next(iter(lay_out([node(op_type, "x", shape, "y", to, *more, **known)])))


BOUNDS = (TensorSpec((1,), "int64"),) * 4


@pytest.mark.parametrize(
    ("found", "is_view"),
    [
        (laid_one("Slice", (8, 4), (4, 4), *BOUNDS, values={4: (2,)}), True),
        (laid_one("Slice", (8, 4), (8, 4), *BOUNDS, values={3: (0,), 4: (-1,)}), False),  # torch.flip copies
        (laid_one("ReverseSequence", (8, 4), (8, 4)), False),
        (laid_one("Tile", (8, 4), (16, 4)), False),
        (laid_one("Gather", (8, 4), (3, 4), TensorSpec((3,), "int64")), False),
        (laid_one("Gather", (8, 4), (4,), TensorSpec((), "int64")), True),
        (laid_one("Split", (8, 4), (4, 4)), True),
        (laid_one("Concat", (8, 4), (8, 4)), False),
    ],
    ids=lambda value: value.node.op_type if isinstance(value, Laid) else str(value),
)
def test_what_is_a_view(found: Laid, is_view: bool) -> None:
    assert found.is_view is is_view


def test_dropout_is_a_view_in_inference_alone() -> None:
    one = node("Dropout", "x", (8, 4), "y", (8, 4))
    assert [next(iter(lay_out([one], trains=trains))).is_view for trains in (True, False)] == [False, True]


ATTENTION = (2, 8, 12, 64)
"""Batch, length, heads, width of a head."""


def test_attention_written_out_copies_once_a_batched_operand() -> None:
    """torch.matmul of four axes: q, k and v behind their transposes fold into three axes by copies alone."""
    batch, length, heads, width = ATTENTION
    moved = (batch, heads, length, width)
    value = torch.empty(ATTENTION).permute(0, 2, 1, 3)
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        value.view(batch * heads, length, width)
    scores = OpNode(
        "scores", "MatMul", (TensorSpec(moved), TensorSpec((batch, heads, width, length))),
        (TensorSpec((batch, heads, length, length)),), input_names=("q", "kt"), output_names=("scores",),
    )  # fmt: skip
    made = [
        node("Transpose", "q0", ATTENTION, "q", moved, attrs={"perm": (0, 2, 1, 3)}),
        node("Transpose", "k0", ATTENTION, "kt", (batch, heads, width, length), attrs={"perm": (0, 2, 3, 1)}),
        scores,
    ]
    *views, product = lay_out(made)
    assert all(one.is_view for one in views) and product.copied == (0, 1)
    assert product.copied_bytes == 2 * 4 * prod(ATTENTION)


def test_two_operands_of_one_storage_are_copied_apart() -> None:
    """Queries and keys sliced from one product: each is kept for the other's gradient."""
    batch, length, heads, width = ATTENTION
    both, half, moved = (batch, length, 2 * heads, width), ATTENTION, (batch, heads, length, width)
    scores = OpNode(
        "scores", "MatMul", (TensorSpec(moved), TensorSpec((batch, heads, width, length))),
        (TensorSpec((batch, heads, length, length)),), input_names=("q", "kt"), output_names=("scores",),
    )  # fmt: skip
    ends = TensorSpec((1,), "int64")
    made = [
        node("Slice", "qk", both, "q0", half, ends, ends),
        node("Slice", "qk", both, "k0", half, ends, ends),
        node("Transpose", "q0", half, "q", moved, attrs={"perm": (0, 2, 1, 3)}),
        node("Transpose", "k0", half, "kt", (batch, heads, width, length), attrs={"perm": (0, 2, 3, 1)}),
        scores,
    ]
    product = list(lay_out(made))[-1]
    assert product.copied == (0, 1)
    assert len({"qk", *product.reads}) == 3
