"""Laws that every architecture keeps, on a real graph."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from helpers import RESNET50

from graphcost.analysis import analyze_graph
from graphcost.arch import ARCHITECTURES, Placement
from graphcost.device_db import load_cluster
from graphcost.errors import PlacementError
from graphcost.graph import build_graph
from graphcost.placing import AnalysisOptions, resolve
from graphcost.predict import StepTime, predict_calibrated, predict_paper
from graphcost.recipe import OPTIMIZERS, Recipe
from graphcost.sources import LoadOptions, load_model
from graphcost.training import Gradient, StepPlan, plan_step

ARCHS = sorted(ARCHITECTURES)


@cache
def plan() -> StepPlan:
    return plan_step(build_graph(load_model(str(RESNET50), LoadOptions(batch=32))))


def place(arch: str, gpus: int, cluster: str = "aws-p3.16xlarge", **overrides: float) -> Placement:
    found = load_cluster(cluster).with_overrides(**overrides)
    servers = -(-gpus // found.server.gpus)
    return Placement(gpus, servers, servers if arch == "ps" else 0, found)


def calibrated(arch: str, gpus: int, step: StepPlan | None = None, **overrides: float) -> StepTime:
    return predict_calibrated(step or plan(), ARCHITECTURES[arch], place(arch, gpus, **overrides))


@pytest.mark.parametrize("arch", ["single", "local", "allreduce", "pearl"])
def test_one_worker_sends_nothing(arch: str) -> None:
    assert calibrated(arch, 1).comm_s == 0
    assert predict_paper(plan(), ARCHITECTURES[arch], place(arch, 1)).comm_s == 0


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("profile", ["paper", "calibrated"])
def test_parts_add_up(arch: str, profile: str) -> None:
    gpus = 1 if arch == "single" else 8
    if profile == "paper":
        step = predict_paper(plan(), ARCHITECTURES[arch], place(arch, gpus))
    else:
        step = calibrated(arch, gpus)
    parts = step.input_s + step.compute_s + step.memory_s + step.host_s + step.exposed_comm_s
    assert step.step_s == pytest.approx(parts)
    assert step.comm_s == pytest.approx(sum(message.time_s for message in step.messages))
    assert step.exposed_comm_s == pytest.approx(sum(message.exposed_s for message in step.messages))
    assert step.step_low_s <= step.step_s <= step.step_high_s
    assert 0 <= step.comm_share_low <= step.comm_share <= step.comm_share_high <= 1


@pytest.mark.parametrize("arch", [arch for arch in ARCHS if arch != "single"])
def test_more_bytes_or_a_slower_link_never_help(arch: str) -> None:
    base = calibrated(arch, 8)
    heavier = replace(plan(), gradients=tuple(replace(g, bytes=2 * g.bytes) for g in plan().gradients))
    assert calibrated(arch, 8, heavier).comm_s > base.comm_s
    slower = calibrated(arch, 8, network_bytes_per_s=1e9 / 8, nvlink_bytes_per_s=10e9, pcie_bytes_per_s=1e9)
    assert slower.comm_s > base.comm_s
    assert slower.comm_share > base.comm_share


@pytest.mark.parametrize(
    ("arch", "gpus"), [("single", 2), ("local", 16), ("pearl", 16)], ids=["single-2", "local-16", "pearl-16"]
)
def test_what_a_placement_cannot_hold_is_refused_by_name(arch: str, gpus: int) -> None:
    with pytest.raises(PlacementError, match=f"architecture '{arch}'"):
        ARCHITECTURES[arch].check(place(arch, gpus))


def test_allreduce_is_local_in_one_server_and_cluster_over_several() -> None:
    local, cluster = calibrated("allreduce", 8), calibrated("allreduce", 16)
    assert local.messages[0].link == "nvlink"
    assert cluster.messages[0].link == "network"
    assert cluster.comm_s > local.comm_s


def test_paper_traffic_of_resnet50() -> None:
    """W = 102 MB: 1wNg and PS move 2 W, a ring of 8 sends and receives 4 * 7/8 W = 357.8 MB."""
    weight_bytes = 4 * 25_557_032
    sent = {
        arch: sum(part.weight_bytes for part in ARCHITECTURES[arch].paper_traffic(plan(), place(arch, 8)))
        for arch in ("local", "ps", "allreduce", "pearl")
    }
    assert sent["local"] == sent["ps"] == 2 * weight_bytes
    assert sent["allreduce"] == pytest.approx(4 * 7 / 8 * weight_bytes)
    assert sent["pearl"] == pytest.approx(4 * 7 / 8 * weight_bytes)  # no tables: all dense


def test_inference_sends_nothing() -> None:
    graph = build_graph(load_model(str(RESNET50), LoadOptions()))
    forward_only = plan_step(graph, Recipe(optimizer=OPTIMIZERS["none"]))
    assert forward_only.gradients == () and forward_only.backward == ()
    options = AnalysisOptions(gpus=8, optimizer="none")
    result = analyze_graph(graph, options, resolve(options))
    assert result.step.comm_share == 0
    assert result.training.backward_flops == 0 == result.training.update_flops


def test_overlap_orders_the_exposed_time() -> None:
    exposed = [calibrated_overlap(name).exposed_comm_s for name in ("ideal", "bucketed", "none")]
    assert exposed == sorted(exposed)
    assert exposed[0] < exposed[-1]


def calibrated_overlap(name: str) -> StepTime:
    options = AnalysisOptions(gpus=16, cluster="aws-p3.16xlarge", overlap=name)
    choice = resolve(options)
    return predict_calibrated(plan(), choice.arch, choice.placement, overlap=choice.overlap)


def test_a_table_that_is_ready_last_holds_up_no_dense_gradient() -> None:
    """PEARL reduces the dense gradients alone: the rows of a huge table leave by themselves."""
    last = len(plan().backward) - 1
    table = Gradient("table", 100_000_000_000, last, rows_bytes=1_000_000, sparse=True)
    with_table = replace(plan(), gradients=(*plan().gradients, table))
    dense, rows = {}, {}
    for name, step in (("without", plan()), ("with", with_table)):
        messages = {message.what: message for message in calibrated("pearl", 8, step).messages}
        dense[name], rows[name] = messages["gradients"], messages.get("embedding rows out")
    assert dense["with"] == dense["without"]
    assert rows["without"] is None and rows["with"] is not None
    assert rows["with"].bytes == 1_000_000 * 7 / 8
