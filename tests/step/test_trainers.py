"""Libraries around the training loop: host time after the backward pass, and the speed of a machine's host."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graphcost.analysis import analyze
from graphcost.arch import ARCHITECTURES, Placement
from graphcost.device_db import load_cluster
from graphcost.engine.trainers import TRAINERS
from graphcost.errors import UnknownNameError, UsageError
from graphcost.graph import build_graph
from graphcost.hardware import Cluster
from graphcost.ir import Phase
from graphcost.models_zoo import build
from graphcost.predict import StepTime, slices_of
from graphcost.predict.calibrated import predict_calibrated
from graphcost.recipe import Recipe
from graphcost.training import StepPlan, plan_step

ADAPTDL = TRAINERS.find("adaptdl")


def plan(batch: int, trainer: str) -> StepPlan:
    return plan_step(build_graph(build("resnet18", batch=batch)), Recipe(trainer=trainer))


def step(batch: int, trainer: str, *, gpus: int = 1, cluster: Cluster | None = None) -> StepTime:
    arch = ARCHITECTURES.find("single" if gpus == 1 else "allreduce")
    placement = Placement(gpus, 1, None, cluster or load_cluster("dgx-a100"))
    return predict_calibrated(plan(batch, trainer), arch, placement)


def test_a_gpu_at_work_all_the_time_waits_for_every_tensor() -> None:
    """62 tensors: 20 convolutions, 20 norms of two, a layer of two; the update's own launches too."""
    plain, held = step(256, "torch"), step(256, "adaptdl")
    assert plain.host_s == 0 and plain.update is not None and held.update is not None
    assert held.update.host_s == pytest.approx(plain.update.host_s + 62 * ADAPTDL.tensor_s)
    assert held.step_s == pytest.approx(plain.step_s + held.update.host_s - held.update.busy_s)
    assert held.alone_s == pytest.approx(held.step_s)


def test_a_host_that_is_the_slower_side_anyway_adds_them_to_its_own() -> None:
    plain, held = step(1, "torch"), step(1, "adaptdl")
    assert plain.host_s > 0
    assert held.step_s == pytest.approx(plain.step_s + 62 * ADAPTDL.tensor_s)


def test_gradients_are_sent_before_the_host_reads_them() -> None:
    """What is sent waits for nothing more; what grows with the step alone, 0.02 a doubling, grows with it."""
    plain, held = step(256, "torch", gpus=8), step(256, "adaptdl", gpus=8)
    wire, beyond = (
        [m.exposed_s for one in (plain, held) for m in one.messages if bool(m.bytes) is sent]
        for sent in (True, False)
    )
    assert wire[0] == wire[1] and beyond == pytest.approx([0.06 * plain.alone_s, 0.06 * held.alone_s])


def test_the_update_is_launched_after_the_passes() -> None:
    found = step(256, "adaptdl")
    slices = slices_of(found)
    ends = max(one.start_s + one.duration_s for one in slices if one.phase == Phase.BACKWARD)
    launches = [one.start_s for one in slices if one.lane == "host" and one.phase == Phase.UPDATE]
    assert min(launches) >= ends - 1e-12
    parts = {
        name: sum(one.duration_s for one in slices if one.part == name) for name in ("compute", "memory", "host")
    }
    assert parts["host"] == pytest.approx(found.host_s) and parts["memory"] == pytest.approx(found.memory_s)


def test_a_slow_host_launches_slowly() -> None:
    """Only where the host decides: a factor of two doubles a step that waits for launches from end to end."""
    cluster = load_cluster("dgx-a100")
    slow = replace(cluster, server=replace(cluster.server, host_factor=2.0))
    assert step(1, "torch", cluster=slow).step_s == pytest.approx(2 * step(1, "torch").step_s)
    assert step(256, "torch", cluster=slow).step_s == pytest.approx(step(256, "torch").step_s)


def test_an_unknown_trainer() -> None:
    with pytest.raises(UnknownNameError, match="no trainer named 'adaptld'; did you mean 'adaptdl'"):
        step(1, "adaptld")


def test_the_option_is_said_in_every_report() -> None:
    """161 tensors of ResNet-50; under the study's framework, which has no host, it is refused."""
    how = {"batch": 20, "cluster": "sia-dgx-a100", "precision": "amp-fp16"}
    plain, held = analyze("zoo:resnet50", **how), analyze("zoo:resnet50", trainer="adaptdl", **how)
    assert held.to_dict()["training"]["trainer"] == "adaptdl" and plain.to_dict()["training"]["trainer"] == "torch"
    assert "adam, adaptdl, calibrated profile" in held.report() and "adaptdl" not in plain.report()
    assert held.step.step_s - plain.step.step_s == pytest.approx(161 * ADAPTDL.tensor_s, rel=0.1)
    with pytest.raises(UsageError, match="--trainer: the paper's framework knows no host"):
        analyze("zoo:resnet50", trainer="adaptdl", profile="paper")
