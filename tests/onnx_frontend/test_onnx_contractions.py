"""Convolutions, products and Einsum: FLOPs and parameters worked out by hand."""

from __future__ import annotations

import pytest

from onnx_frontend.onnx_models import MS, find, model, node, one

# id: (model, matmul FLOPs = 2 * output elements * terms of each sum, parameters)
CONVOLUTIONS = {
    "1d": (
        # (10 + 2*1 - 3) / 2 + 1 = 5 positions
        one("Conv", {"x": [2, 4, 10]}, {"w": [6, 4, 3], "b": [6]}, strides=[2], pads=[1, 1]),
        2 * (2 * 6 * 5) * (4 * 3),
        6 * 4 * 3 + 6,
    ),
    "2d": (
        one("Conv", {"x": [2, 3, 8, 8]}, {"w": [5, 3, 3, 3]}, pads=[1, 1, 1, 1]),
        2 * (2 * 5 * 8 * 8) * (3 * 9),
        5 * 3 * 9,
    ),
    "3d": (
        one("Conv", {"x": [1, 2, 4, 5, 6]}, {"w": [3, 2, 2, 2, 2]}),
        2 * (3 * 3 * 4 * 5) * (2 * 8),
        3 * 2 * 8,
    ),
    "grouped": (
        one("Conv", {"x": [1, 8, 6, 6]}, {"w": [12, 2, 3, 3]}, group=4),
        2 * (12 * 4 * 4) * (2 * 9),
        12 * 2 * 9,
    ),
    "depthwise": (
        one("Conv", {"x": [1, 8, 6, 6]}, {"w": [16, 1, 3, 3]}, group=8),
        2 * (16 * 4 * 4) * 9,
        16 * 9,
    ),
    "dilated": (
        # a kernel of 3 at dilation 2 spans 5: 9 - 4 = 5 positions; at dilation 3 it spans 7: 9 - 6 = 3
        one("Conv", {"x": [1, 2, 9, 9]}, {"w": [4, 2, 3, 3]}, dilations=[2, 3]),
        2 * (4 * 5 * 3) * (2 * 9),
        4 * 2 * 9,
    ),
    "same-upper": (
        # ceil(7 / 2) = 4
        one("Conv", {"x": [1, 2, 7, 7]}, {"w": [4, 2, 3, 3]}, auto_pad="SAME_UPPER", strides=[2, 2]),
        2 * (4 * 4 * 4) * (2 * 9),
        4 * 2 * 9,
    ),
    "same-lower": (
        one("Conv", {"x": [1, 2, 7, 8]}, {"w": [4, 2, 2, 2]}, auto_pad="SAME_LOWER", strides=[3, 3]),
        2 * (4 * 3 * 3) * (2 * 4),  # ceil(7 / 3) = ceil(8 / 3) = 3
        4 * 2 * 4,
    ),
    "valid": (
        one("Conv", {"x": [1, 2, 7, 7]}, {"w": [4, 2, 3, 3]}, auto_pad="VALID"),
        2 * (4 * 5 * 5) * (2 * 9),
        4 * 2 * 9,
    ),
    "transposed-1d": (
        one("ConvTranspose", {"x": [2, 6, 5]}, {"w": [6, 4, 3]}, strides=[2]),
        2 * (2 * 6 * 5) * (4 * 3),  # every input element meets 4 outputs at 3 places
        6 * 4 * 3,
    ),
    "transposed-grouped": (
        one("ConvTranspose", {"x": [1, 6, 5, 5]}, {"w": [6, 2, 3, 3], "b": [6]}, group=3, strides=[2, 2]),
        2 * (6 * 5 * 5) * (2 * 9),
        6 * 2 * 9 + 6,
    ),
    "transposed-3d": (
        one(
            "ConvTranspose",
            {"x": [1, 2, 3, 3, 3]},
            {"w": [2, 4, 2, 2, 2]},
            output_padding=[1, 1, 1],
            strides=[2, 2, 2],
        ),
        2 * (2 * 27) * (4 * 8),
        2 * 4 * 8,
    ),
    "deformable": (
        one(
            "DeformConv",
            {"x": [1, 2, 5, 5], "offset": [1, 18, 3, 3]},
            {"w": [4, 2, 3, 3]},
            order=["x", "w", "offset"],
        ),
        2 * (4 * 9) * (2 * 9),
        4 * 2 * 9,
    ),
    "fused-channels-last": (
        one("NhwcConv", {"x": [1, 5, 6, 3]}, {"w": [8, 3, 2, 2]}, domain=MS, kernel_shape=[2, 2]),
        2 * (4 * 5 * 8) * (3 * 4),
        8 * 3 * 4,
    ),
    "fused-activation": (
        one("FusedConv", {"x": [1, 3, 5, 5]}, {"w": [8, 3, 3, 3], "b": [8]}, domain=MS, activation="Relu"),
        2 * (8 * 9) * (3 * 9),
        8 * 3 * 9 + 8,
    ),
}

PRODUCTS = {
    "matrix-matrix": (one("MatMul", {"a": [4, 5]}, {"b": [5, 6]}), 2 * 4 * 6 * 5, 30),
    "vector-vector": (one("MatMul", {"a": [5], "b": [5]}), 2 * 5, 0),
    "vector-matrix": (one("MatMul", {"a": [5]}, {"b": [5, 6]}), 2 * 6 * 5, 30),
    "matrix-vector": (one("MatMul", {"a": [4, 5]}, {"b": [5]}), 2 * 4 * 5, 5),
    "batch-matrix": (one("MatMul", {"a": [2, 3, 4, 5]}, {"b": [5, 6]}), 2 * (2 * 3 * 4 * 6) * 5, 30),
    "batch-vector": (one("MatMul", {"a": [2, 3, 4, 5]}, {"b": [5]}), 2 * (2 * 3 * 4) * 5, 5),
    "batch-broadcast": (one("MatMul", {"a": [2, 1, 4, 5], "b": [3, 5, 6]}), 2 * (2 * 3 * 4 * 6) * 5, 0),
    "matrix-batch": (one("MatMul", {"a": [4, 5], "b": [7, 5, 6]}), 2 * (7 * 4 * 6) * 5, 0),
    "empty": (one("MatMul", {"a": [0, 5]}, {"b": [5, 6]}), 0, 30),
    "gemm": (one("Gemm", {"a": [4, 5]}, {"b": [5, 6], "c": [6]}), 2 * 4 * 6 * 5, 36),
    "gemm-transposed": (one("Gemm", {"a": [5, 4]}, {"b": [6, 5]}, transA=1, transB=1), 2 * 4 * 6 * 5, 30),
    "weight-first": (one("MatMul", {"a": [5, 4]}, {"b": [6, 5]}, order=["b", "a"]), 2 * 6 * 4 * 5, 30),
    "fused-transposed": (one("FusedMatMul", {"a": [2, 5, 4]}, {"b": [6, 5]}, domain=MS, transA=1, transB=1),
                         2 * (2 * 4 * 6) * 5, 30),
    "fused-gemm": (one("FusedGemm", {"a": [4, 5]}, {"b": [5, 6]}, domain=MS, activation="Relu"), 2 * 4 * 6 * 5, 30),
    "gemm-fast-gelu": (one("GemmFastGelu", {"a": [4, 5]}, {"b": [5, 6], "c": [6]}, domain=MS), 2 * 4 * 6 * 5, 36),
    "einsum-matrix": (one("Einsum", {"a": [4, 5]}, {"b": [5, 6]}, equation="ij,jk->ik"), 2 * 4 * 5 * 6, 30),
    "einsum-batch": (one("Einsum", {"a": [2, 3, 4, 8], "b": [2, 3, 5, 8]}, equation="bhqd,bhkd->bhqk"),
                     2 * (2 * 3) * 4 * 5 * 8, 0),
    "einsum-ellipsis": (one("Einsum", {"a": [7, 2, 4, 5]}, {"b": [5, 6]}, equation="...ij,jk->...ik"),
                        2 * (7 * 2) * 4 * 5 * 6, 30),
    "einsum-implicit": (one("Einsum", {"a": [4, 5], "b": [5, 6]}, equation="ij,jk"), 2 * 4 * 5 * 6, 0),
    "einsum-outer": (one("Einsum", {"a": [4], "b": [5]}, equation="i,j->ij"), 0, 0),
    "einsum-diagonal": (one("Einsum", {"a": [4, 4]}, equation="ii->i"), 0, 0),
    "einsum-three": (
        # ab,bc -> ac over b, then ac,cd -> ad over c
        one("Einsum", {"a": [2, 3], "b": [3, 4], "c": [4, 5]}, equation="ab,bc,cd->ad"),
        2 * 2 * 3 * 4 + 2 * 2 * 4 * 5,
        0,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("source", "flops", "params"), CONVOLUTIONS.values(), ids=CONVOLUTIONS)
def test_convolutions(source, flops, params) -> None:
    found = find(source)
    assert (found.flops, found.params, found.unknown) == (flops, params, {})


@pytest.mark.parametrize(("source", "flops", "params"), PRODUCTS.values(), ids=PRODUCTS)
def test_products(source, flops, params) -> None:
    found = find(source)
    assert (found.flops, found.params, found.unknown) == (flops, params, {})


def test_a_convolution_without_kernel_shape_takes_the_weight_s() -> None:
    found = find(one("Conv", {"x": [1, 2, 8, 8]}, {"w": [4, 2, 5, 3]}))
    assert found.shape("y") == (1, 4, 4, 6)


def test_weights_reached_through_a_transpose() -> None:
    layers = [node("Transpose", ["w"], ["wt"], perm=[1, 0]), node("MatMul", ["x", "wt"], ["y"])]
    found = find(model(layers, {"x": [4, 5]}, ["y"], {"w": [6, 5]}))
    assert (found.flops, found.params, found.param_names) == (2 * 4 * 6 * 5, 30, ("w",))
    assert list(found.ops) == ["y"]  # the transpose is done once, not every step
    assert found.model.folded == 1
