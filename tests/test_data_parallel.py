"""nn.DataParallel: one host for all GPUs, weights out and gradients back in the open."""

from __future__ import annotations

import pytest
from helpers import RESNET50

from graphcost.analysis import analyze_with
from graphcost.arch import ARCHITECTURES, Placement
from graphcost.device_db import load_cluster
from graphcost.errors import PlacementError
from graphcost.frontends.options import LoadOptions
from graphcost.graph import build_graph
from graphcost.ir import Phase
from graphcost.placing import AnalysisOptions
from graphcost.recipe import OPTIMIZERS, Recipe
from graphcost.result import Analysis
from graphcost.sources import load_model
from graphcost.training import plan_step

DP = ARCHITECTURES["dataparallel"]


def step(gpus: int, arch: str = "dataparallel", cluster: str = "geforce-8x-gen4", batch: int = 32) -> Analysis:
    return analyze_with(
        str(RESNET50), AnalysisOptions(arch=arch, gpus=gpus, cluster=cluster, load=LoadOptions(batch))
    )


def test_weights_and_gradients_cross_once_each_and_nothing_hides() -> None:
    """ResNet-50: 102.2 MB out and 102.2 MB back over PCIe 4 x16 at 1.06 of the database's 24 GB/s: 4.0 ms each."""
    found = step(4)
    out, back = found.communication[:2]
    assert (out.kind, back.kind) == ("broadcast", "reduce")
    assert out.bytes == back.bytes == 25_557_032 * 4
    assert out.time_s == pytest.approx(102.2e6 / (1.06 * 24e9), rel=0.02)
    assert out.exposed_s == out.time_s and back.exposed_s == back.time_s


def test_the_host_launches_for_every_gpu_and_copies_every_tensor() -> None:
    plan = plan_step(build_graph(load_model(str(RESNET50), LoadOptions(batch=32))))
    place = Placement(4, 1, 0, load_cluster("geforce-8x-gen4"))
    once = {Phase.FORWARD: 7e-3, Phase.BACKWARD: 9e-3, Phase.UPDATE: 5e-3}
    found = DP.host_s(once, plan, place)
    tensors = len(plan.gradients)
    assert tensors == 161
    assert found[Phase.FORWARD] == pytest.approx(4 * 7e-3 + 161 * 146e-6)
    assert (found[Phase.BACKWARD], found[Phase.UPDATE]) == (pytest.approx(4 * 9e-3), 5e-3)
    assert ARCHITECTURES["allreduce"].host_s(once, plan, place) == once


def test_a_small_batch_scales_badly_and_says_so() -> None:
    """The step waits for one host, so that more GPUs bring fewer samples per second each."""
    found = [step(gpus, batch=4).step for gpus in (1, 2, 4, 8)]
    efficiencies = [one.scaling_efficiency for one in found]
    assert efficiencies == sorted(efficiencies, reverse=True) and efficiencies[-1] < 0.3
    assert found[0].step_s / found[-1].step_s == pytest.approx(efficiencies[-1], rel=0.05)
    assert found[-1].bound == "host"


@pytest.mark.parametrize("batch", [4, 32, 128])
def test_over_nvlink_it_is_no_faster_than_a_process_per_gpu(batch: int) -> None:
    took = [step(8, arch, "dgx-a100", batch).step.step_s for arch in ("allreduce", "dataparallel")]
    assert took[0] <= took[1]


def test_one_gpu_is_single() -> None:
    assert step(1).step == step(1, "single").step


def test_where_it_cannot_be() -> None:
    with pytest.raises(PlacementError, match="inside one server, and 16 GPUs need 2"):
        step(16)
    plan = plan_step(
        build_graph(load_model(str(RESNET50), LoadOptions(batch=32))), Recipe(optimizer=OPTIMIZERS["none"])
    )
    with pytest.raises(PlacementError, match="known for training, not inference"):
        DP.local_plan(plan, Placement(2, 1, 0, load_cluster("dgx-a100")))
