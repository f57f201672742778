"""Attention in its standard and fused forms: both products count the full square."""

from __future__ import annotations

import pytest

from onnx_frontend.onnx_models import MS, find, floats, ints, model, node, one, weight

I32 = "INT32"

# id: (model, matmul FLOPs, parameters)
ATTENTION = {
    "4d": (
        one("Attention", {"q": [2, 3, 5, 8], "k": [2, 3, 7, 8], "v": [2, 3, 7, 6]}, opset=23),
        2 * (2 * 3 * 5 * 7) * (8 + 6),
        0,
    ),
    "3d-grouped": (
        # 8 query heads of 4 share 2 key heads: 32 = 8 * 4, 8 = 2 * 4
        one(
            "Attention",
            {"q": [2, 5, 32], "k": [2, 7, 8], "v": [2, 7, 8]},
            opset=23,
            q_num_heads=8,
            kv_num_heads=2,
        ),
        2 * (2 * 8 * 5 * 7) * (4 + 4),
        0,
    ),
    "with-past": (
        # 3 keys of the past and 2 new ones
        one(
            "Attention",
            {"q": [1, 4, 2, 8], "k": [1, 4, 2, 8], "v": [1, 4, 2, 8], "pk": [1, 4, 3, 8], "pv": [1, 4, 3, 8]},
            order=["q", "k", "v", "", "pk", "pv"],
            outputs=["y", "present_k", "present_v"],
            opset=24,
        ),
        2 * (4 * 2 * 5) * (8 + 8),
        0,
    ),
    "causal-counts-the-square": (
        one("Attention", {"q": [1, 1, 6, 4], "k": [1, 1, 6, 4], "v": [1, 1, 6, 4]}, opset=23, is_causal=1),
        2 * (6 * 6) * (4 + 4),
        0,
    ),
    "ms-attention": (
        # projection of 12 features to 3 * 12, then 3 heads of 4
        one("Attention", {"x": [2, 5, 12]}, {"w": [12, 36], "b": [36]}, domain=MS, num_heads=3),
        2 * (2 * 5) * 12 * 36 + 2 * (2 * 3 * 5 * 5) * (4 + 4),
        12 * 36 + 36,
    ),
    "ms-attention-with-past": (
        model(
            [node("Attention", ["x", "w", "b", "", "past"], ["y", "present"], "op", domain=MS, num_heads=3)],
            {"x": [2, 1, 12], "past": [2, 2, 3, 7, 4]},
            ["y", "present"],
            {"w": [12, 36], "b": [36]},
        ),
        2 * 2 * 12 * 36 + 2 * (2 * 3 * 1 * 8) * (4 + 4),
        12 * 36 + 36,
    ),
    "multi-head": (
        one("MultiHeadAttention", {"q": [2, 5, 12], "k": [2, 7, 12], "v": [2, 7, 12]}, domain=MS, num_heads=3),
        2 * (2 * 3 * 5 * 7) * (4 + 4),
        0,
    ),
    "multi-head-bias": (
        one(
            "MultiHeadAttention",
            {"q": [2, 5, 12], "k": [2, 7, 12], "v": [2, 7, 12]},
            {"b": [36]},
            domain=MS,
            num_heads=3,
        ),
        2 * (2 * 3 * 5 * 7) * (4 + 4),
        36,
    ),
    "grouped-query": (
        model(
            [
                node(
                    "GroupQueryAttention",
                    ["q", "k", "v", "", "", "lengths", "total"],
                    ["y", "pk", "pv"],
                    "op",
                    domain=MS,
                    num_heads=8,
                    kv_num_heads=2,
                )
            ],
            {"q": [2, 6, 32], "k": [2, 6, 8], "v": [2, 6, 8], "lengths": (I32, [2]), "total": (I32, [])},
            ["y", "pk", "pv"],
        ),
        2 * (2 * 8 * 6 * 6) * (4 + 4),
        0,
    ),
    "grouped-query-with-past": (
        # one new token after 9 in the cache
        model(
            [
                node(
                    "GroupQueryAttention",
                    ["q", "k", "v", "past_k", "past_v", "lengths", "total"],
                    ["y", "pk", "pv"],
                    "op",
                    domain=MS,
                    num_heads=8,
                    kv_num_heads=2,
                )
            ],
            {
                "q": [2, 1, 32],
                "k": [2, 1, 8],
                "v": [2, 1, 8],
                "past_k": [2, 2, 9, 4],
                "past_v": [2, 2, 9, 4],
                "lengths": (I32, [2]),
                "total": (I32, []),
            },
            ["y", "pk", "pv"],
        ),
        2 * (2 * 8 * 1 * 10) * (4 + 4),
        0,
    ),
    "grouped-query-packed": (
        # 32 + 8 + 8 columns hold query, key and value
        model(
            [
                node(
                    "GroupQueryAttention",
                    ["qkv", "", "", "past_k", "past_v", "lengths", "total"],
                    ["y", "pk", "pv"],
                    "op",
                    domain=MS,
                    num_heads=8,
                    kv_num_heads=2,
                )
            ],
            {
                "qkv": [1, 3, 48],
                "past_k": [1, 2, 4, 4],
                "past_v": [1, 2, 4, 4],
                "lengths": (I32, [1]),
                "total": (I32, []),
            },
            ["y", "pk", "pv"],
        ),
        2 * (8 * 3 * 7) * (4 + 4),
        0,
    ),
}

# Fused operators beside attention: (model, matmul FLOPs, parameters, shape of "y")
FUSED = {
    "skip-layer-norm": (
        one("SkipLayerNormalization", {"x": [2, 5, 12], "skip": [2, 5, 12]}, {"g": [12], "b": [12]}, domain=MS),
        0,
        24,
        (2, 5, 12),
    ),
    "skip-rms-norm": (
        one("SkipSimplifiedLayerNormalization", {"x": [2, 5, 12], "skip": [2, 5, 12]}, {"g": [12]}, domain=MS),
        0,
        12,
        (2, 5, 12),
    ),
    "bias-gelu": (one("BiasGelu", {"x": [2, 5, 12]}, {"b": [12]}, domain=MS), 0, 12, (2, 5, 12)),
    "fast-gelu": (one("FastGelu", {"x": [2, 5, 12]}, {"b": [12]}, domain=MS), 0, 12, (2, 5, 12)),
    "embed-layer-norm": (
        model(
            [
                node(
                    "EmbedLayerNormalization",
                    ["ids", "types", "words", "places", "segments", "g", "b"],
                    ["y", "mask"],
                    "op",
                    domain=MS,
                )
            ],
            {"ids": (I32, [2, 5]), "types": (I32, [2, 5])},
            ["y"],
            {"words": [100, 12], "places": [16, 12], "segments": [2, 12], "g": [12], "b": [12]},
        ),
        0,
        (100 + 16 + 2 + 1 + 1) * 12,
        (2, 5, 12),
    ),
    "n-bits": (
        # 64 x 24 weights of 4 bits, two a byte
        model(
            [node("MatMulNBits", ["x", "w", "s"], ["y"], "op", domain=MS, K=64, N=24, bits=4, block_size=32)],
            {"x": [2, 5, 64]},
            ["y"],
            [weight("w", [24, 2, 16], "UINT8"), weight("s", [48])],
        ),
        2 * (2 * 5) * 64 * 24,
        64 * 24,
        (2, 5, 24),
    ),
    "integer-to-float": (
        model(
            [node("MatMulIntegerToFloat", ["x", "w", "sx", "sw"], ["y"], "op", domain=MS)],
            {"x": ("UINT8", [2, 5, 8]), "sx": []},
            ["y"],
            [weight("w", [8, 6], "INT8"), floats("sw", 0.5)],
        ),
        2 * (2 * 5) * 8 * 6,
        48,
        (2, 5, 6),
    ),
    "dynamic-quantize-matmul": (
        model(
            [node("DynamicQuantizeMatMul", ["x", "w", "sw"], ["y"], "op", domain=MS)],
            {"x": [2, 5, 8]},
            ["y"],
            [weight("w", [8, 6], "INT8"), floats("sw", 0.5)],
        ),
        2 * (2 * 5) * 8 * 6,
        48,
        (2, 5, 6),
    ),
    "quantized-table": (
        # rows of 16 weights in 8 bytes
        model(
            [
                node(
                    "GatherBlockQuantized",
                    ["w", "ids", "s"],
                    ["y"],
                    "op",
                    domain=MS,
                    bits=4,
                    block_size=16,
                    quantize_axis=1,
                )
            ],
            {"ids": ("INT64", [2, 5])},
            ["y"],
            [weight("w", [100, 8], "UINT8"), weight("s", [100, 1])],
        ),
        0,
        100 * 8,
        (2, 5, 16),
    ),
}


@pytest.mark.parametrize(("source", "flops", "params"), ATTENTION.values(), ids=ATTENTION)
def test_attention(source, flops, params) -> None:
    found = find(source)
    assert (found.flops, found.params, found.unknown) == (flops, params, {})


@pytest.mark.parametrize(("source", "flops", "params", "shape"), FUSED.values(), ids=FUSED)
def test_fused(source, flops, params, shape) -> None:
    found = find(source)
    assert (found.flops, found.params, found.unknown, found.shape("y")) == (flops, params, {}, shape)


def test_a_known_total_length_is_the_key_length() -> None:
    """The cache has room for 16 positions, of which 10 are in use after this step."""
    gqa = node(
        "GroupQueryAttention",
        ["q", "k", "v", "past_k", "past_v", "lengths", "total"],
        ["y", "pk", "pv"],
        "op",
        domain=MS,
        num_heads=4,
        kv_num_heads=2,
    )
    inputs = {"q": [1, 1, 16], "k": [1, 1, 8], "v": [1, 1, 8], "past_k": [1, 2, 16, 4], "past_v": [1, 2, 16, 4]}
    source = model([gqa], {**inputs, "lengths": (I32, [1]), "total": (I32, [])}, ["y", "pk", "pv"])
    assert find(source, input_values={"total": (10,)}).flops == 2 * (4 * 1 * 10) * (4 + 4)


def test_a_block_of_separate_operators_equals_the_fused_one() -> None:
    """QK^T, softmax, PV written out: [B, N, S, D] = [2, 3, 5, 4]."""
    sizes = [2, 3, 5, 4]
    written = [
        node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
        node("MatMul", ["q", "kt"], ["scores"]),
        node("Softmax", ["scores"], ["p"]),
        node("MatMul", ["p", "v"], ["y"]),
    ]
    inputs = {"q": sizes, "k": sizes, "v": sizes}
    fused = one("Attention", inputs, opset=23)
    assert find(model(written, inputs, ["y"])).flops == find(fused).flops == 2 * (2 * 3 * 5 * 5) * (4 + 4)


def test_a_quantized_attention_counts_its_integer_weight() -> None:
    names = ["x", "w", "b", "sx", "sw", "", "zx", "zw"]
    stored = [weight("w", [12, 36], "INT8"), weight("b", [36]), floats("sw", 0.1), weight("zw", [], "INT8")]
    fused = node("QAttention", names, ["y"], "op", domain=MS, num_heads=3)
    found = find(model([fused], {"x": ("UINT8", [2, 5, 12]), "sx": [], "zx": ("UINT8", [])}, ["y"], stored))
    assert found.flops == 2 * (2 * 5) * 12 * 36 + 2 * (2 * 3 * 5 * 5) * (4 + 4)
    assert (found.params, found.param_bytes) == (12 * 36 + 36, 12 * 36 * 1 + 36 * 4)


def test_constant_axes_are_no_parameters() -> None:
    steps = [node("Unsqueeze", ["x", "axes"], ["u"]), node("MatMul", ["u", "w"], ["y"])]
    found = find(model(steps, {"x": [4, 5]}, ["y"], [ints("axes", [0]), weight("w", [5, 6])]))
    assert (found.params, found.param_names) == (30, ("w",))
