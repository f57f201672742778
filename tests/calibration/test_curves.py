"""Measured curves: between points, beyond them, through noise, and in a device file."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcost.analysis import analyze
from graphcost.curves import RateCurve, curve_through
from graphcost.device_db import load_device
from graphcost.engine.curves import Kernel, curve_work, kernel_of, reading
from graphcost.engine.roofline import Bound, DeviceModel
from graphcost.errors import DataFileError
from graphcost.ir import OpCost, Phase
from graphcost.ops import OpClass
from graphcost.recipe import Recipe
from graphcost.training import PlannedOp
from graphcost.training.work import Part, Work

POINTS = st.lists(st.tuples(st.floats(1, 1e12), st.floats(1e-7, 10)), min_size=1, max_size=30)


@given(points=POINTS, smaller=st.floats(1, 1e13), larger=st.floats(1, 1e13))
def test_more_work_never_takes_less(points: list[tuple[float, float]], smaller: float, larger: float) -> None:
    curve = curve_through(points)
    smaller, larger = sorted((smaller, larger))
    assert 0 < curve.at(smaller) <= curve.at(larger) * (1 + 1e-9) < inf


@given(points=POINTS)
def test_a_curve_keeps_its_own_points(points: list[tuple[float, float]]) -> None:
    curve = curve_through(points)
    assert list(curve.work) == sorted(curve.work) and list(curve.seconds) == sorted(curve.seconds)
    for work, seconds in zip(curve.work, curve.seconds, strict=True):
        assert curve.at(work) == pytest.approx(seconds)


def test_between_and_beyond() -> None:
    curve = RateCurve((1e3, 1e5), (1e-6, 1e-4))
    assert curve.at(10) == 1e-6  # a launch takes its time
    assert curve.at(1e4) == pytest.approx(1e-5)  # half way on both logarithmic axes
    assert curve.at(1e6) == pytest.approx(1e-3)  # the last point's rate


def test_a_larger_step_that_was_faster_shares_its_neighbours_mean() -> None:
    curve = curve_through([(1e3, 4e-6), (1e4, 1e-6), (1e5, 9e-6)])
    assert curve.seconds == pytest.approx((2e-6, 2e-6, 9e-6))  # sqrt(4e-6 x 1e-6)


COST = OpCost(matmul_flops=100, elementwise_flops=7, read_bytes=30, write_bytes=10)
ONE, TWO = RateCurve((1.0,), (1.0,)), RateCurve((1.0,), (2.0,))


def test_a_class_that_was_not_timed_takes_the_nearest_in_kind_and_says_so() -> None:
    curves = {"matmul.forward": ONE, "pointwise.backward": TWO}
    found = reading(curves, Kernel("conv", "conv_1x1", "wgrad"), COST)
    assert (found.curve, found.work, found.instead) == (ONE, 107, "matmul.forward")
    found = reading(curves, Kernel("pointwise", "Relu", "backward"), COST)
    assert (found.curve, found.work, found.instead) == (TWO, 40, "")


@pytest.mark.parametrize(
    ("curves", "work", "instead"),
    [
        ({"matmul.forward": ONE, "softmax.forward": ONE, "gather.forward": TWO}, 40, "gather.forward"),
        ({"matmul.forward": ONE, "conv/conv_1x1.wgrad": TWO}, 107, "conv/conv_1x1.wgrad"),
    ],
)
def test_a_class_that_nothing_is_like_takes_the_slowest_curve_not_nothing(
    curves: dict[str, RateCurve], work: float, instead: str
) -> None:
    found = reading(curves, Kernel("sort", "TopK", "forward"), COST)
    assert (found.curve, found.work, found.instead) == (TWO, work, instead)


def test_a_kernel_takes_its_own_curve_before_its_class() -> None:
    curves = {"conv.backward": ONE, "conv/conv_1x1.wgrad": TWO}
    assert reading(curves, Kernel("conv", "conv_1x1", "wgrad"), COST).curve is TWO
    assert reading(curves, Kernel("conv", "conv_1x1", "dgrad"), COST).curve is ONE
    assert reading(curves, Kernel("conv", "conv", "wgrad"), COST).curve is ONE


@pytest.mark.parametrize(
    ("op_class", "op_type", "phase", "work", "name"),
    [
        (OpClass.CONV, "Conv", Phase.BACKWARD, Work("conv_1x1", Part.WGRAD), "conv/conv_1x1.wgrad"),
        (OpClass.CONV, "ConvTranspose", Phase.FORWARD, Work("conv_strided", Part.DGRAD), "conv/conv_strided.dgrad"),
        (OpClass.MATMUL, "Gemm", Phase.BACKWARD, Work("reduce", Part.BIAS), "reduce/bias.backward"),
        (OpClass.CONV, "Conv", Phase.BACKWARD, Work("reduce", Part.BIAS), "reduce/conv_bias.backward"),
        (OpClass.POINTWISE, "Gelu", Phase.BACKWARD, Work("pointwise", Part.DGRAD), "pointwise/Gelu.backward"),
        (OpClass.POINTWISE, "Add", Phase.BACKWARD, Work("pointwise"), "pointwise/Add.forward"),  # a gradient sum
        (OpClass.POINTWISE, "adam", Phase.UPDATE, None, "update/adam.update"),
    ],
)
def test_planned_operators_know_their_kernel(
    op_class: OpClass, op_type: str, phase: Phase, work: Work | None, name: str
) -> None:
    op = PlannedOp("a", "a", op_type, op_class, phase, COST, work=work)
    assert kernel_of(op).names[0] == name


def test_products_count_flops_and_the_rest_bytes() -> None:
    assert curve_work("conv", COST) == 107 and curve_work("softmax", COST) == 40
    assert curve_work("depthwise", COST) == 40  # few FLOPs a byte


DEVICE = """
name = "mine"
vendor = "me"
arch = "measured"
confidence = "measured"
source = "graphcost calibrate"
mem_bytes = 16e9
mem_bytes_per_s = 2e10
launch_s = 3e-6
vector_dtypes = ["float32"]
[peak_flops_per_s]
float32 = 1e11
[curves."matmul.forward"]
work = [1e4, 1e8]
seconds = [1e-5, 1e-3]
"""


def op(trips: int, op_class: OpClass = OpClass.MATMUL) -> PlannedOp:
    return PlannedOp("a", "a", "MatMul", op_class, Phase.FORWARD, OpCost(int(trips * 1e8)), repeat=trips)


def test_a_device_with_curves_is_read_off_them(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(DEVICE)
    device = load_device(str(path))
    model = DeviceModel(device, Recipe())
    once = model.time(op(1))
    assert (once.time_s, once.bound) == (pytest.approx(1e-3), Bound.COMPUTE)
    assert once.efficiency == pytest.approx(1e8 / 1e-3 / 1e11)
    assert model.time(op(3)).time_s == pytest.approx(3e-3)
    relu = PlannedOp("b", "b", "Relu", OpClass.POINTWISE, Phase.FORWARD, OpCost(0, 4, 16, 16))
    other = model.time(relu)  # nothing that moves was timed: the slowest curve stands for it, and the source says so
    assert (other.time_s, other.bound) == (1e-5, Bound.MEMORY)
    assert other.source.endswith("no curve for pointwise: matmul.forward")


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ("work = [1e4]\nseconds = [1e-5, 1]", "equal length"),
        ("work = [1e4, 1e3]\nseconds = [1e-5, 1e-4]", "rise in work"),
        ("work = [1e3, 1e4]\nseconds = [1e-4, 1e-5]", "not fall in seconds"),
        ('work = ["fast"]\nseconds = [1]', "numbers over 0"),
        ("work = [0]\nseconds = [1]", "numbers over 0"),
        ("seconds = [1]", "numbers over 0"),
        ("work = []\nseconds = []", "numbers over 0"),
    ],
)
def test_lists_that_are_no_curve_are_refused(lines: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(DEVICE.partition("work")[0] + lines)
    with pytest.raises(DataFileError) as error:
        load_device(str(path))
    assert complaint in str(error.value) and "matmul.forward" in str(error.value)


def test_a_dtype_takes_its_own_curve_first() -> None:
    curves = {"conv.forward": TWO, "conv.forward.float16": ONE, "conv.backward": TWO, "conv/conv.forward": TWO}
    assert reading(curves, Kernel("conv", "conv_stem", "forward", "float16"), COST).curve is ONE
    assert reading(curves, Kernel("conv", "conv_stem", "forward", "float32"), COST).curve is TWO
    assert reading(curves, Kernel("conv", "conv_stem", "wgrad", "float16"), COST).curve is TWO


def test_stand_ins_are_counted_in_the_result(tmp_path: Path) -> None:
    """zoo:mlp has products, which were timed, and biases, activations and updates, which were not."""
    path = tmp_path / "mine.toml"
    path.write_text(DEVICE)
    found = analyze("zoo:mlp", batch=32, device=str(path), optimizer="sgd")
    notes = {one.where: one.message for one in found.findings if one.rule == "no-curve"}
    assert set(notes) == {"pointwise", "reduce", "update"}
    assert notes["reduce"] == "mine has no curve for reduce: 3 kernels are timed by that of matmul.forward"
    assert all(one.time.time_s > 0 for one in found.predicted.ops if one.op.launches)  # unknown is not nothing
