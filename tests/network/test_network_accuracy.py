"""The benchmark of communication: how rows are read and scored, and its targets where the tables are at hand."""

from __future__ import annotations

import pytest
from helpers import shared_folder

from benchmarks.network_accuracy.__main__ import main
from benchmarks.network_accuracy.predict import Predicted, gradients_of, predict
from benchmarks.network_accuracy.rows import Row, Run
from benchmarks.network_accuracy.score import Scored, pooled, verdict, winners
from graphcost.engine.timeline import Overlap


def made(measured_s: float, wait_s: float, model: str = "m", arch: str = "allreduce", table: str = "t") -> Scored:
    """A row of 1 s on one GPU."""
    run = Run("dgx-a100", 8, 1, arch)
    return Scored(Row(table, model, run, 1.0, measured_s, None, ("a",)), Predicted(wait_s, 0.0))


def test_errors_are_points_of_efficiency_and_share() -> None:
    one = made(measured_s=2.0, wait_s=0.25)  # efficiency 0.5, predicted 0.8
    assert one.efficiency_points == pytest.approx(30)
    assert one.share_points == pytest.approx(-30)


def test_verdicts_count_hits_misses_and_borderline_rows() -> None:
    found = verdict([made(4.0, 3.0), made(4.0, 0.1), made(1.1, 2.0), made(2.1, 1.2), made(1.2, 0.2)])
    assert (found.recall, found.precision) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert found.outside == 2 / 4  # the fourth, at 52 %, is borderline


def test_models_weigh_the_same_however_many_rows_they_have() -> None:
    many = [made(1.0, 0.0, "large")] * 99 + [made(2.0, 0.0, "small")]
    assert pooled(many, lambda one: one.efficiency_points, 0.75) == pytest.approx(50)


def test_winners_compare_what_differs_in_the_architecture_only() -> None:
    ring, server = made(3.0, 1.0), made(2.0, 0.5, arch="ps")
    (winner,) = winners([ring, server])
    assert winner.measured == 1.5 and winner.right and winner.differs


def test_gradients_of_the_zoo_are_ready_in_order_and_others_are_even() -> None:
    resnet, even = gradients_of("resnet50"), gradients_of("yolov3")
    assert resnet is not None and even is not None and gradients_of("nobody knows") is None
    assert sum(g.bytes for g in resnet.plan.gradients) == 4 * 25_557_032
    assert sum(g.bytes for g in even.plan.gradients) == pytest.approx(4 * 61.9e6)
    for found in (resnet, even):
        assert list(found.done) == sorted(found.done) and found.done[-1] == pytest.approx(1)


def test_prediction_is_graphcosts_own_exchange_beside_the_measured_step() -> None:
    """Without overlap: 2 * 7/8 * 102 MB over an NVSwitch at 225 GB/s, and 0.06 of the step."""
    bare = predict("resnet50", Run("dgx-a100", 8, 1, overlap=Overlap.NONE), 0.1)
    hidden = predict("resnet50", Run("dgx-a100", 8, 1), 0.1)
    assert bare is not None and hidden is not None
    assert bare.overhead_s == pytest.approx(0.006)
    assert bare.wire_s == pytest.approx(0.79e-3, rel=0.6)  # buckets below full bandwidth
    assert hidden.wire_s < bare.wire_s


def test_the_targets_are_met(capsys: pytest.CaptureFixture[str]) -> None:
    shared = shared_folder()
    if shared is None:
        pytest.skip("no folder of shared files: set GRAPHCOST_SHARED")
    assert main([str(shared / "data" / "measured")]) == 0, capsys.readouterr().out
