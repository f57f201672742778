"""Laws of the device model: sizes, layouts, efficiencies; and the data files' own promises."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcost.device_db import device_names, load_device
from graphcost.engine.constants import MOST, constants_of, family_of, generations, table
from graphcost.engine.quantisation import FLOOR, TILES, tile_share
from graphcost.engine.roofline import Bound, DeviceModel
from graphcost.graph import build_graph
from graphcost.hardware import FrozenMap
from graphcost.ir import Model, OpCost, OpNode, Phase, TensorSpec
from graphcost.models_zoo import build
from graphcost.ops import OpClass
from graphcost.ops._causal import tiles_share
from graphcost.recipe import OPTIMIZERS, Layout, Precision, Recipe, Stack
from graphcost.training import PlannedOp, plan_step
from graphcost.training.strides import channels_last, contiguous, dense_like, is_channels_last, same_order
from graphcost.training.work import Part, Work

sizes = st.integers(1, 1 << 20)
small = st.integers(1, 64)
A100 = load_device("a100-sxm-80")
HALF = Recipe(precision=Precision.AMP_BF16)


def product(m: int, n: int, k: int, batch: int = 1, dtype: str = "bfloat16") -> PlannedOp:
    flops, moved = 2 * batch * m * n * k, 2 * batch * (m * k + k * n + m * n)
    cost = OpCost(flops, 0, moved, 0)
    work = Work("linear" if batch == 1 else "bmm", Part.FORWARD, m, n, k, batch)
    return PlannedOp("p", "p", "MatMul", OpClass.MATMUL, Phase.FORWARD, cost, dtype=dtype, work=work)


@given(sizes, sizes, sizes, small, st.integers(1, 200))
def test_a_tile_share_is_a_share(m: int, n: int, k: int, batch: int, units: int) -> None:
    assert FLOOR <= tile_share(m, n, k, batch, units) <= 1


def test_tiles_by_hand() -> None:
    # one 128 x 128 tile fills one unit; on two units half of the wave is idle, or K is cut in two at 0.95
    assert tile_share(128, 128, 1024, 1, 1) == 1
    assert tile_share(128, 128, 64, 1, 2) == pytest.approx(max(0.5, 0.9))  # two tiles of 128 x 64
    assert tile_share(128, 64, 64, 1, 1) == pytest.approx(0.9)
    assert tile_share(256, 128, 12, 1, 1) == pytest.approx(12 / 16)  # K is padded to 16
    assert all(0 < share <= 1 for _, _, share in TILES)


@given(st.integers(1, 4096), st.integers(1, 4096), st.integers(1, 512))
def test_whole_steps_of_k_are_never_slower_per_step(m: int, n: int, k: int) -> None:
    whole = -(-k // 8) * 8
    assert tile_share(m, n, whole, 1, 108) >= tile_share(m, n, k, 1, 108)


@settings(max_examples=50)
@given(st.integers(1, 1 << 14), st.integers(1, 1 << 14), st.integers(1, 1 << 12), st.integers(1, 8))
def test_more_work_of_one_shape_takes_longer(m: int, n: int, k: int, factor: int) -> None:
    model = DeviceModel(A100, HALF)
    one = product(m, n, k)
    assert one.cost is not None
    more = replace(one, cost=factor * one.cost)
    assert model.time(more).time_s >= model.time(one).time_s > 0


@pytest.mark.parametrize("field", ["peak", "bandwidth"])
def test_a_faster_device_is_never_slower(field: str) -> None:
    slow = A100
    fast = (
        replace(slow, mem_bytes_per_s=2 * slow.mem_bytes_per_s)
        if field == "bandwidth"
        else replace(slow, peak_flops_per_s=FrozenMap({k: 2 * v for k, v in slow.peak_flops_per_s.items()}))
    )
    plan = plan_step(build_graph(build("resnet18", batch=4)), HALF)
    for op in (*plan.forward, *plan.backward, *plan.updates):
        assert DeviceModel(fast, HALF).time(op).time_s <= DeviceModel(slow, HALF).time(op).time_s


def test_alignment_is_never_slower() -> None:
    model = DeviceModel(A100, HALF)
    assert model.time(product(4096, 4096, 1024)).time_s < model.time(product(4096, 4095, 1024)).time_s


def test_a_short_k_is_padded_to_a_whole_step() -> None:
    """In a half format K comes in steps of 32, in fp32 of 128 on A100 and 64 on V100."""
    half, whole = DeviceModel(A100, HALF), DeviceModel(A100, Recipe(precision=Precision.FP32))
    volta = DeviceModel(load_device("v100-sxm2-32"), Recipe(precision=Precision.FP32))
    for model, dtype, step in ((half, "bfloat16", 32), (whole, "float32", 128), (volta, "float32", 64)):
        short, full, longer = (
            model.terms(product(1024, 1024, k, 8, dtype)).matrix_s for k in (step // 2, step, step + step // 2)
        )
        assert short == pytest.approx(full)
        assert longer == pytest.approx(2 * full)


def norm(row_bytes: int, rows: int) -> PlannedOp:
    cost = OpCost(0, 0, row_bytes * rows, row_bytes * rows)
    work = Work("layer_norm", row_bytes=row_bytes)
    return PlannedOp("n", "n", "LayerNormalization", OpClass.NORM, Phase.FORWARD, cost, work=work)


def test_a_norm_over_short_rows_takes_as_long_as_over_a_blocks_rows() -> None:
    model = DeviceModel(A100, HALF)
    short, block, double = (model.terms(norm(size, 10_000)).memory_s for size in (96, 512, 1024))
    assert short == pytest.approx(block)
    assert double == pytest.approx(2 * block)


def test_the_row_of_a_norm_is_what_it_averages_over() -> None:
    plan = plan_step(build_graph(build("bert-base", batch=2, dims={"seq": 16})))
    rows = {op.work.row_bytes for op in plan.forward if op.work is not None and op.work.kind == "layer_norm"}
    assert rows == {768 * 4}


def attention(tokens: int, *, is_causal: bool) -> PlannedOp:
    x = TensorSpec((2, 4, tokens, 64), "bfloat16")
    node = OpNode("a", "Attention", (x, x, x), (x,), {"is_causal": int(is_causal)})
    graph = build_graph(Model("a", "a", "test", (node,), {}, ()))
    return next(op for op in plan_step(graph, HALF).forward if op.op_type == "Attention")


@pytest.mark.parametrize(
    ("queries", "keys", "past", "share"),
    [
        (100, 100, 0, 1.0),  # one tile
        (256, 256, 0, 3 / 4),
        (1024, 1024, 0, 36 / 64),  # 8 tiles a side: 1 + 2 + ... + 8
        (300, 300, 0, 6 / 9),  # the last tiles are begun
        (1, 4096, 4095, 1.0),  # a token after its cache
        (256, 1024, 768, 15 / 16),  # past keys are all read: 7 + 8 of 2 x 8
        (256, 1024, 0, 3 / 16),  # no past: the keys behind are all masked
    ],
)
def test_a_causal_kernel_skips_tiles(queries: int, keys: int, past: int, share: float) -> None:
    assert tiles_share(queries, keys, past) == share


def test_causal_attention_takes_less_time_for_the_same_flops() -> None:
    causal, full = attention(1024, is_causal=True), attention(1024, is_causal=False)
    assert causal.cost == full.cost
    rate = table("base")["rules"]["causal_rate"]
    model = DeviceModel(A100, HALF)
    assert model.terms(causal).matrix_s == pytest.approx(36 / 64 / rate * model.terms(full).matrix_s)
    assert model.time(causal).time_s < model.time(full).time_s


def test_attention_in_parts_works_out_the_whole_square() -> None:
    graph = build_graph(build("llama2-7b", batch=1, dims={"seq": 512, "layers": 1}))
    fused = plan_step(graph, HALF)
    shares = {op.work.causal_share for op in (*fused.forward, *fused.backward) if op.work is not None}
    assert shares == {None, (1 + 2 + 3 + 4) / 16}
    x = TensorSpec((1, 4, 512, 64))
    apart = build_graph(Model("a", "a", "test", (OpNode("a", "Attention", (x, x, x), (x,), {"is_causal": 1},
                              input_names=("q", "k", "v"), output_names=("y",)),), {}, ("y",)))  # fmt: skip
    plan = plan_step(apart, replace(HALF, fused_attention=False))
    assert {op.work.causal_share for op in plan.forward if op.work is not None} == {None}
    assert sum(op.op_type == "MatMul" for op in plan.forward) == 2


def test_odd_channels_cost_half_convolutions_of_the_older_stack() -> None:
    cost = OpCost(10**12, 0, 1, 1)
    odd, even = (
        PlannedOp(
            "c", "c", "Conv", OpClass.CONV, Phase.FORWARD, cost, dtype="float16",
            work=Work("conv", m=1 << 16, n=128, k=9 * 64, channels=channels, window=3, filters=128),
        )
        for channels in (26, 64)
    )  # fmt: skip
    seconds = {
        stack: [DeviceModel(A100, replace(HALF, stack=stack)).terms(op).matrix_s for op in (odd, even)]
        for stack in Stack
    }
    assert seconds[Stack.TORCH_1][0] == pytest.approx(seconds[Stack.TORCH_1][1] / 0.4)
    assert seconds[Stack.TORCH_2][0] == seconds[Stack.TORCH_2][1]


@pytest.mark.parametrize("name", device_names())
def test_every_device_times_every_kind(name: str) -> None:
    device = load_device(name)
    constants = constants_of(device)
    for kind in table("base")["rows"]:
        for last in (False, True):
            row = constants.row(kind, channels_last=last)
            assert min(row.compute, row.memory, row.fp32) > 0 and max(row.compute, row.memory, row.fp32) <= MOST


def test_generations_are_chosen_by_device_then_architecture_and_others_say_so() -> None:
    found = {name: constants_of(load_device(name)).generation for name in device_names()}
    assert found["a100-sxm-80"] == "ampere-datacentre" and found["rtx3090"] == "ampere-geforce"
    assert found["h200-sxm"] == "hopper" and found["t4"] == "turing-t4" and found["v100-sxm2-16"] == "volta"
    unknown = constants_of(load_device("mi300x"))
    assert unknown.is_fallback and unknown.generation == "default"
    model = DeviceModel(load_device("mi300x"), HALF)
    assert "no file for this architecture" in model.time(product(512, 512, 512)).source
    assert "ampere-datacentre.toml [linear]" in DeviceModel(A100, HALF).time(product(512, 512, 512)).source


def test_data_files_hold_shares_and_their_fit() -> None:
    base = table("base")
    for name in ("train-channels-last", "train-nchw", "infer-nchw"):
        told = base["fit"][name]
        assert told["graphs"] > 200 and 0 < told["median"] < told["mean"] < told["p90"] < 0.5
    for name in generations():
        for rows in (table(name)["rows"], table(name)["channels-last"], table(name)["inference"]["rows"]):
            assert set(rows) <= set(base["rows"])
    for kind, values in base["rows"].items():
        assert (family_of(kind) == "memory") == ("fp32" not in values)


def test_backward_of_a_convolution_is_two_kernels() -> None:
    plan = plan_step(build_graph(build("resnet18", batch=2)))
    parts = [op.work.part for op in plan.backward if op.op_type == "Conv" and op.work is not None]
    assert parts.count(Part.WGRAD) == 20 and parts.count(Part.DGRAD) == 19  # the image needs no gradient
    conv = next(op for op in plan.backward if op.op_type == "Conv" and op.work is not None and op.work.m == 512)
    assert conv.work is not None and conv.work.part is Part.WGRAD
    assert (conv.work.n, conv.work.k) == (512 * 9, 2 * 7 * 7)


def test_channels_last_needs_no_conversion_and_no_copies() -> None:
    graph = build_graph(build("resnet50", batch=32))
    first = {layout: DeviceModel(A100, replace(HALF, layout=layout)) for layout in Layout}
    converted = {}
    for layout, model in first.items():
        plan = plan_step(graph, replace(HALF, layout=layout))
        assert all(op.work is None or op.work.kind != "copy" for op in plan.forward)
        convolutions = (op for op in plan.forward if op.op_class is OpClass.CONV)
        converted[layout] = sum(model.terms(op).convert_s for op in convolutions)
    assert converted[Layout.CHANNELS_LAST] == 0 < converted[Layout.NCHW]


def test_attention_taken_apart_has_the_same_products() -> None:
    torch_free = build_graph(build("vit-base-16", batch=2))
    fused, apart = (plan_step(torch_free, Recipe(fused_attention=flag)) for flag in (True, False))
    assert fused.total(Phase.FORWARD).matmul_flops == apart.total(Phase.FORWARD).matmul_flops


def test_an_operator_of_unknown_cost_takes_no_time() -> None:
    op = PlannedOp("x", "x", "Mystery", None, Phase.FORWARD, None)
    assert DeviceModel(A100, HALF).time(op).bound is Bound.UNKNOWN


def test_grouped_convolutions_have_a_cliff_on_one_stack_only() -> None:
    work = Work("conv_grouped", Part.FORWARD, 64 * 56 * 56, 16, 144, 4, 4, 16, 3, 1, 1, True, 10**8)
    cost = OpCost(2 * 64 * 56 * 56 * 64 * 144, 0, 10**8, 10**7)
    op = PlannedOp("g", "g", "Conv", OpClass.CONV, Phase.FORWARD, cost, dtype="bfloat16", work=work)
    old, new = (DeviceModel(A100, replace(HALF, stack=stack)).time(op) for stack in (Stack.TORCH_1, Stack.TORCH_2))
    assert old.bound is Bound.COMPUTE and old.time_s > 1.5 * new.time_s


def test_inference_has_rows_of_its_own() -> None:
    training = constants_of(load_device("rtx3090"))
    inference = constants_of(load_device("rtx3090"), trains=False)
    assert training.row("batch_norm").memory != inference.row("batch_norm").memory
    assert OPTIMIZERS["nesterov"].state_values == 1


shapes = st.lists(st.integers(1, 6), min_size=4, max_size=5).map(tuple)


@given(shapes)
def test_orders_of_images(shape: tuple[int, ...]) -> None:
    last = channels_last(shape)
    assert dense_like(shape, last) == last or any(size == 1 for size in shape)
    if min(shape) > 1:
        assert is_channels_last(shape, last) and not is_channels_last(shape, contiguous(shape))
        assert not same_order(shape, last, contiguous(shape))
