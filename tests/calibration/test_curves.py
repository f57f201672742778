"""Measured curves: between points, beyond them, through noise, and in a device file."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcost.curves import RateCurve, curve_through
from graphcost.device_db import load_device
from graphcost.engine.curves import curve_for, curve_work
from graphcost.engine.roofline import Bound, DeviceModel
from graphcost.errors import DataFileError
from graphcost.ir import OpCost, Phase
from graphcost.ops import OpClass
from graphcost.recipe import Recipe
from graphcost.training import PlannedOp

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


def test_a_class_that_was_not_timed_takes_the_nearest_in_kind() -> None:
    product, relu = RateCurve((1.0,), (1.0,)), RateCurve((1.0,), (2.0,))
    curves = {"matmul.forward": product, "pointwise.backward": relu}
    assert curve_for(curves, "conv", Phase.BACKWARD) is product
    assert curve_for(curves, "pointwise", Phase.BACKWARD) is relu
    assert curve_for({"matmul.forward": product}, "pointwise", Phase.FORWARD) is None


def test_products_count_flops_and_the_rest_bytes() -> None:
    cost = OpCost(matmul_flops=100, elementwise_flops=7, read_bytes=30, write_bytes=10)
    assert curve_work("conv", cost) == 107 and curve_work("softmax", cost) == 40


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
    assert model.time(relu).bound is Bound.UNKNOWN  # no curve stands for it


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
    plain, half = RateCurve((1.0,), (2.0,)), RateCurve((1.0,), (1.0,))
    curves = {"conv.forward": plain, "conv.forward.float16": half, "conv.backward": plain}
    assert curve_for(curves, "conv", Phase.FORWARD, "float16") is half
    assert curve_for(curves, "conv", Phase.FORWARD, "float32") is plain
    assert curve_for(curves, "conv", Phase.BACKWARD, "float16") is plain
