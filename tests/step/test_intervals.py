"""Intervals: what a step is made of decides their width, and nobody measured is said."""

from __future__ import annotations

from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcost.analysis import analyze
from graphcost.device_db import load_device
from graphcost.engine.spread import _table, group_of, spread_of
from graphcost.ops import OpClass
from graphcost.predict import StepTime
from graphcost.verdict import Verdict, judge

V100 = load_device("v100-sxm2-16")


def test_a_mixture_lies_between_its_parts() -> None:
    def spread(**seconds: float) -> float:
        return spread_of(seconds, V100, "fp32").high

    conv, matmul, both = spread(conv=1.0), spread(matmul=1.0), spread(conv=1.0, matmul=1.0)
    assert (1 + both) ** 2 == pytest.approx((1 + conv) * (1 + matmul))  # halves add on a log scale
    assert spread(conv=3.0) == pytest.approx(conv)  # shares, not seconds


def test_every_class_has_a_group_with_a_spread() -> None:
    for op_class in (*OpClass, "host", "update", "unknown"):
        group = group_of(str(op_class))
        assert _table()["low"][group] > 0 and _table()["high"][group] > 0


def test_what_nobody_measured_is_wider_and_says_so() -> None:
    covered = spread_of({"conv": 1.0}, V100, "fp32")
    other = spread_of({"conv": 1.0}, load_device("gaudi2"), "bf16")
    assert covered.evidence == "steps measured on Volta float32"
    assert 1 + other.high == pytest.approx(exp(1.5 * _table()["high"]["conv"]))
    assert other.evidence.startswith("no measurement covers Gaudi") and "assumed" in other.evidence


def test_the_report_says_what_the_interval_rests_on(capsys: pytest.CaptureFixture[str]) -> None:
    from graphcost.cli.main import main

    assert main(["analyze", "zoo:resnet18", "--device", "gaudi2", "--precision", "bf16", "--quiet"]) == 0
    assert "no measurement covers" in capsys.readouterr().out
    assert analyze("zoo:resnet18", device="gaudi2", precision="bf16").step.interval_evidence


@given(
    parts=st.dictionaries(st.sampled_from([str(one) for one in OpClass]), st.floats(1e-6, 10), min_size=1),
    comm_s=st.floats(0, 10),
)
def test_the_prediction_lies_inside_its_interval(parts: dict[str, float], comm_s: float) -> None:
    from dataclasses import replace

    step = StepTime(0.0, sum(parts.values()), 0.0, 0.0, comm_s, comm_s, comm_spread=0.3)
    step = replace(step, gpu_spread=spread_of(parts, V100, "fp32"))
    assert step.step_low_s <= step.step_s <= step.step_high_s
    assert step.comm_share_low <= step.comm_share <= step.comm_share_high
    if judge(step, 0.5) is Verdict.FLAGGED:
        assert step.comm_share > 0.5
