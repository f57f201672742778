"""Experts spread over a data parallel group: tokens travel, weights do not."""

from __future__ import annotations

from functools import cache

import pytest

from graphcost.analysis import analyze_graph
from graphcost.errors import PlacementError
from graphcost.graph import build_graph
from graphcost.ir import Model, OpNode, Param, TensorSpec
from graphcost.parallel.experts import spread_experts
from graphcost.parallel.sharding import shard
from graphcost.placing import AnalysisOptions, resolve

TOKENS, WIDTH, INNER, EXPERTS, CHOSEN = 256, 64, 128, 8, 2


@cache
def model() -> Model:
    """A router and eight experts of two layers."""
    router = Param.dense("router", TensorSpec((WIDTH, EXPERTS)))
    first = Param.dense("fc1", TensorSpec((EXPERTS, INNER, WIDTH)))
    second = Param.dense("fc2", TensorSpec((EXPERTS, WIDTH, INNER)))
    x, scores = TensorSpec((TOKENS, WIDTH)), TensorSpec((TOKENS, EXPERTS))
    nodes = (
        OpNode("norm", "LayerNormalization", (x, TensorSpec((WIDTH,))), (x,), {"axis": -1}, input_names=("x", ""),
               output_names=("h",), params=((1, Param.dense("scale", TensorSpec((WIDTH,)))),)),
        OpNode("route", "MatMul", (x, router.spec), (scores,), input_names=("h", ""), output_names=("scores",),
               params=((1, router),)),
        OpNode("moe", "MoE", (x, scores, first.spec, None, second.spec), (x,), {"k": CHOSEN}, "com.microsoft",
               ("h", "scores", "", "", ""), ("y",), ((2, first), (4, second))),
    )  # fmt: skip
    return Model("moe", "test", "test", nodes, {"x": x}, ("y",), batch=TOKENS)


def run(arch: str, gpus: int) -> dict[str, float]:
    options = AnalysisOptions(arch=arch, gpus=gpus)
    found = analyze_graph(build_graph(model()), options, resolve(options))
    return {one.what: one.bytes for one in found.communication} | {"weights": found.training.memory.weights_bytes}


def test_tokens_travel_there_and_back_in_both_passes() -> None:
    """Two all-to-alls a pass, each of 256 tokens x 2 experts x 64 floats, of which 3/4 leave a GPU."""
    moved = run("dp=4,ep=4", 4)
    once = TOKENS * CHOSEN * WIDTH * 4 * 3 / 4
    assert moved["tokens to experts and back, forward: all-to-all"] == 2 * once
    assert moved["tokens to experts and back, backward: all-to-all"] == 2 * once


def test_gradients_of_experts_are_summed_where_they_are_held_twice() -> None:
    experts, rest = 4 * 2 * EXPERTS * INNER * WIDTH, 4 * (WIDTH * EXPERTS + WIDTH)
    whole, spread, half = run("dp=4", 4), run("dp=4,ep=4", 4), run("dp=4,ep=2", 4)
    assert whole["gradients"] == 2 * 3 / 4 * (experts + rest)
    assert spread["gradients"] == 2 * 3 / 4 * rest
    assert "gradients of experts" not in spread
    assert half["gradients of experts"] == 2 * 1 / 2 * experts / 2  # two GPUs hold each half
    assert spread["weights"] == rest + experts / 4


def test_a_gpu_computes_as_many_tokens_as_it_sends() -> None:
    from graphcost.graph import totals

    mine = spread_experts(shard(model(), 1), 4).model
    assert totals(build_graph(mine)).cost.matmul_flops == totals(build_graph(model())).cost.matmul_flops


def test_experts_that_do_not_divide() -> None:
    with pytest.raises(PlacementError, match="ep=3 does not divide the 8 experts of moe"):
        run("dp=3,ep=3", 3)
