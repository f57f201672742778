"""Laws of the rules, and second oracles."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcost.ir import OpCost, OpNode
from graphcost.ops import backward_cost, forward_cost

from .build import MS, i64, op

BATCHED: dict[str, Callable[[int], OpNode]] = {
    "MatMul": lambda b: op("MatMul", [(b, 4, 5), (5, 6)], (b, 4, 6)),
    "Gemm": lambda b: op("Gemm", [(b, 5), (5, 6), (6,)], (b, 6)),
    "Einsum": lambda b: op("Einsum", [(b, 4, 5), (5, 6)], (b, 4, 6), {"equation": "bij,jk->bik"}),
    "Conv": lambda b: op("Conv", [(b, 3, 8, 8), (4, 3, 3, 3), (4,)], (b, 4, 6, 6)),
    "ConvTranspose": lambda b: op("ConvTranspose", [(b, 3, 4), (3, 2, 3)], (b, 2, 9)),
    "Attention": lambda b: op("Attention", [(b, 4, 5, 8), (b, 2, 7, 8), (b, 2, 7, 6)], (b, 4, 5, 6)),
    "ms.Attention": lambda b: op("Attention", [(b, 5, 12), (12, 36), (36,)], (b, 5, 12), {"num_heads": 3}, MS),
    "ms.MHA": lambda b: op(
        "MultiHeadAttention", [(b, 5, 12), (b, 7, 12), (b, 7, 9)], (b, 5, 9), {"num_heads": 3}, MS
    ),
    "LSTM": lambda b: op("LSTM", [(5, b, 4), (2, 24, 4), (2, 24, 6), (2, 48)], (5, 2, b, 6)),
    "GRU": lambda b: op("GRU", [(5, b, 4), (1, 18, 4), (1, 18, 6)], (5, 1, b, 6)),
    "LayerNormalization": lambda b: op("LayerNormalization", [(b, 8), (8,), (8,)], (b, 8)),
    "BatchNormalization": lambda b: op("BatchNormalization", [(b, 3, 4), *[(3,)] * 4], (b, 3, 4)),
    "Softmax": lambda b: op("Softmax", [(b, 8)], (b, 8)),
    "Relu": lambda b: op("Relu", [(b, 8)], (b, 8)),
    "ReduceMean": lambda b: op("ReduceMean", [(b, 8)], (b, 1)),
    "MaxPool": lambda b: op("MaxPool", [(b, 2, 8)], (b, 2, 4), {"kernel_shape": [3]}),
    "Gather": lambda b: op("Gather", [(1000, 8), i64(b, 5)], (b, 5, 8)),
    "Transpose": lambda b: op("Transpose", [(b, 3, 4)], (b, 4, 3)),
    "CrossEntropy": lambda b: op("SoftmaxCrossEntropyLoss", [(b, 10), i64(b)], ()),
}


def _costs(node: OpNode) -> list[OpCost]:
    costs = [forward_cost(node), backward_cost(node, range(len(node.inputs)))]
    assert None not in costs
    return costs


@pytest.mark.parametrize("name", BATCHED)
@given(batch=st.integers(2, 512))
def test_linear_in_batch(name: str, batch: int) -> None:
    build = BATCHED[name]
    for one, two, many in zip(*(_costs(build(b)) for b in (2, 3, batch)), strict=True):
        assert many.matmul_flops * 2 == one.matmul_flops * batch
        for part in ("elementwise_flops", "read_bytes", "write_bytes"):
            first, second, last = (getattr(cost, part) for cost in (one, two, many))
            assert last - first == (second - first) * (batch - 2)


@given(
    groups=st.sampled_from([1, 2, 3, 4, 6, 12]),
    kernel=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    size=st.integers(1, 9),
)
def test_grouping_divides(groups: int, kernel: list[int], size: int) -> None:
    shape = (2, 12, *[size] * len(kernel))
    dense = op("Conv", [shape, (24, 12, *kernel)], (2, 24, *shape[2:]))
    grouped = op("Conv", [shape, (24, 12 // groups, *kernel)], (2, 24, *shape[2:]), {"group": groups})
    assert forward_cost(dense).matmul_flops == groups * forward_cost(grouped).matmul_flops


@given(out=st.integers(1, 8), inner=st.integers(1, 8), kernel=st.integers(1, 4), stride=st.integers(1, 3))
def test_transposed_convolution_costs_what_its_adjoint_does(out: int, inner: int, kernel: int, stride: int) -> None:
    long = (out - 1) * stride + kernel
    conv = op("Conv", [(1, inner, long), (3, inner, kernel)], (1, 3, out))
    adjoint = op("ConvTranspose", [(1, 3, out), (3, inner, kernel)], (1, inner, long))
    assert forward_cost(conv).matmul_flops == forward_cost(adjoint).matmul_flops


@given(st.data())
def test_einsum_agrees_with_numpy(data: st.DataObject) -> None:
    """numpy counts two FLOPs a point of all labels where operands share one, summed or not."""
    sizes = {label: data.draw(st.integers(2, 5)) for label in "abcde"}
    shared = data.draw(st.sets(st.sampled_from("abcde"), min_size=1))
    left = sorted(shared | data.draw(st.sets(st.sampled_from("abcde"))))
    right = sorted(shared | data.draw(st.sets(st.sampled_from("abcde"))))
    alone = set(left) ^ set(right)  # kept: a label of one operand alone would be summed before
    result = sorted(alone | data.draw(st.sets(st.sampled_from(sorted(shared)))))
    equation = f"{''.join(left)},{''.join(right)}->{''.join(result)}"
    shapes = [tuple(sizes[label] for label in labels) for labels in (left, right, result)]
    cost = forward_cost(op("Einsum", shapes[:2], shapes[2], {"equation": equation}))
    text = np.einsum_path(equation, *(np.empty(shape) for shape in shapes[:2]), optimize=False)[1]
    naive = re.search(r"Naive FLOP count:\s+(\S+)", text)
    sums = set(result) != set(left) | set(right)
    counted = cost.matmul_flops if sums else 2 * cost.elementwise_flops
    assert float(naive[1]) == pytest.approx(counted, rel=1e-3)  # numpy prints four digits
    assert not (cost.elementwise_flops if sums else cost.matmul_flops)


@given(m=st.integers(1, 6), k=st.integers(1, 6), n=st.integers(1, 6), b=st.integers(1, 4), trans=st.booleans())
def test_three_ways_to_write_a_product_agree(m: int, k: int, n: int, b: int, trans: bool) -> None:
    rhs = (n, k) if trans else (k, n)
    letters = "bij,kj->bik" if trans else "bij,jk->bik"
    nodes = [
        op("MatMul", [(b, m, k), (k, n)], (b, m, n)),
        op("Gemm", [(b * m, k), rhs], (b * m, n), {"transB": int(trans)}),
        op("FusedMatMul", [(b, m, k), rhs], (b, m, n), {"transB": int(trans)}, MS),
        op("Einsum", [(b, m, k), rhs], (b, m, n), {"equation": letters}),
        op("Conv", [(b, k, m), (n, k, 1)], (b, n, m)),
    ]
    assert {forward_cost(node) for node in nodes} == {forward_cost(nodes[0])}


def _resnet50_convolutions() -> list[OpNode]:
    """The version that strides in the 3 x 3 convolution, on one 224 x 224 image."""
    nodes = [_conv(3, 64, 7, 224, 112)]
    channels, size = 64, 56
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            after = size // stride if block == 0 else size
            nodes += [_conv(channels, width, 1, size, size), _conv(width, width, 3, size, after)]
            nodes.append(_conv(width, 4 * width, 1, after, after))
            if block == 0:
                nodes.append(_conv(channels, 4 * width, 1, size, after))
            channels, size = 4 * width, after
    return nodes


def _conv(inner: int, outer: int, kernel: int, before: int, after: int) -> OpNode:
    shapes = [(1, inner, before, before), (outer, inner, kernel, kernel)]
    return op("Conv", shapes, (1, outer, after, after))


def test_resnet50() -> None:
    """4 089 184 256 MACs; torchvision documents 4.089 G for its weights of this model."""
    nodes = [*_resnet50_convolutions(), op("Gemm", [(1, 2048), (2048, 1000)], (1, 1000))]
    assert len(nodes) == 54
    assert sum(forward_cost(node).matmul_flops for node in nodes) == 2 * 4_089_184_256
    first = forward_cost(nodes[0]).matmul_flops
    backward = sum(backward_cost(node, {1} if i == 0 else {0, 1}).matmul_flops for i, node in enumerate(nodes))
    assert backward == 2 * 2 * 4_089_184_256 - first  # the image needs no gradient
