"""Laws of products: what is divided adds up, and what is not divided costs what it did."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from graphcost.analysis import analyze, analyze_graph
from graphcost.graph import build_graph
from graphcost.ir import Phase
from graphcost.parallel.division import DividedPlan
from graphcost.placing import AnalysisOptions, resolve
from graphcost.planning import plan_for
from graphcost.result import Analysis
from graphcost.sources import LoadOptions, load_model
from graphcost.training import StepPlan

GPT = "zoo:gpt-h1024-l12"
MESHES = ("tp=1", "tp=2", "tp=4,sp=1", "pp=3", "tp=2,pp=2", "pp=2,v=3,mb=4", "tp=2,pp=2,dp=2,zero=1", "tp=8")


@cache
def graph(source: str = GPT) -> Any:
    return build_graph(load_model(source, LoadOptions(batch=2)))


def plan(mesh: str, **options: object) -> DividedPlan:
    found = plan_for(graph(), resolve(AnalysisOptions(arch=mesh, precision="amp-bf16", **options)))  # type: ignore[arg-type]
    assert isinstance(found, DividedPlan)
    return found


def run(mesh: str, gpus: int = 1, **options: object) -> Analysis:
    made = AnalysisOptions(arch=mesh, gpus=gpus, precision="amp-bf16", **options)  # type: ignore[arg-type]
    return analyze_graph(graph(), made, resolve(made))


def timing(result: Analysis) -> dict[str, object]:
    return {"step": result.step, "memory": result.training.memory, "sent": result.communication}


@pytest.mark.parametrize("options", [{}, {"recompute": True}, {"accumulate": 4}], ids=str)
def test_one_of_each_is_a_single_gpu(options: dict[str, object]) -> None:
    assert timing(run("tp=1,pp=1,dp=1", **options)) == timing(run("single", **options))


@pytest.mark.parametrize("gpus", [2, 8, 16])
@pytest.mark.parametrize(
    ("zero", "alone"), [("", "allreduce"), (",zero=1", "zero1"), (",zero=2", "zero2"), (",zero=3", "zero3")]
)
def test_data_parallelism_alone_is_its_architecture(gpus: int, zero: str, alone: str) -> None:
    assert timing(run(f"dp={gpus}{zero}", gpus)) == timing(run(alone, gpus))


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("phase", [Phase.FORWARD, Phase.BACKWARD])
def test_products_over_all_ranks_are_those_of_one_gpu(mesh: str, phase: Phase) -> None:
    divided = plan(mesh)
    whole: StepPlan = divided  # the plan of one replica, whose counts these are
    over_ranks = divided.mesh.tp * sum(stage.plan.total(phase).matmul_flops for stage in divided.stages)
    assert over_ranks == whole.total(phase).matmul_flops  # nothing in this decoder is repeated


def test_what_is_repeated_is_said_and_counted() -> None:
    """The last of three layers has ten classes, which four GPUs do not divide: every one runs all of it."""
    mlp = build_graph(load_model("zoo:mlp", LoadOptions(batch=32)))
    found = plan_for(mlp, resolve(AnalysisOptions(arch="tp=4")))
    assert isinstance(found, DividedPlan)
    mine, whole = (one.total(Phase.FORWARD).matmul_flops for one in (found.stages[0].plan, found))
    repeated = load_model("zoo:mlp", LoadOptions(batch=32)).nodes[-1]
    rows, width = repeated.require(0).shape
    assert 4 * mine == whole + 3 * 2 * rows * width * 10
    assert found.notes == ("tensor parallel: 2 products and lookups divided by 4, 1 repeated on every GPU (fc3)",)


@pytest.mark.parametrize("mesh", ["pp=2", "pp=4", "tp=2,pp=3", "pp=2,v=2,mb=2"])
def test_stages_share_operators_gradients_and_updates_out(mesh: str) -> None:
    divided, stages = plan(mesh), plan(mesh).stages
    tied = [g for g in plan("tp=2" if "tp=2" in mesh else "tp=1").stages[0].plan.gradients if g.param == "wte.weight"]
    assert sum(len(stage.plan.forward) for stage in stages) == len(plan("tp=1").stages[0].plan.forward)
    share = plan(f"tp={divided.mesh.tp}").stages[0].plan.gradients
    assert (
        sum(g.bytes for stage in stages for g in stage.plan.gradients) == sum(g.bytes for g in share) + tied[0].bytes
    )
    assert divided.tied_bytes == tied[0].bytes
    for stage in stages:
        assert all(0 <= g.ready_index < len(stage.plan.backward) for g in stage.plan.gradients)
        assert [op.id for op in stage.plan.updates] == [g.param for g in stage.plan.gradients]


def sent_bytes(result: Analysis, word: str) -> float:
    return sum(one.bytes for one in result.communication if word in one.what)


def test_a_sequence_divided_moves_the_bytes_of_the_sums_and_gathers_once_more() -> None:
    """A sum is a scatter and a gather; every product's input is gathered again for its gradient.

    25 sums forward (2 a layer and the table's) and 25 backward (the head's), of 2 x 1024 x 1024 halves.
    """
    value = 2 * 1024 * 1024 * 2
    sums = 8 * 2 * (3 / 4) * value * (25 + 25) / 2  # 4 micro-batches at tp=4: 2 (n-1)/n S each
    plain, sequence = run("tp=4", 4), run("tp=4,sp=1", 4)
    assert sent_bytes(plain, "tensor parallel") == pytest.approx(sums)
    # The gradient of the positions, one row for both samples, is gathered too.
    again = 4 * (3 / 4) * value * (25 + 1 / 2)
    assert sent_bytes(sequence, "tensor parallel") == pytest.approx(sums + again)


@pytest.mark.parametrize(("zero", "times"), [(0, 1.0), (1, 1.0), (2, 1.0), (3, 1.5)])
def test_zero_over_the_data_parallel_group(zero: int, times: float) -> None:
    """1x, 1x and 1.5x of all-reduce, of what one stage and share holds; amp gathers weights in halves: 1 + 2/4."""
    base = sent_bytes(run("tp=2,dp=4,mb=1", 8), "gradients")
    found = run(f"tp=2,dp=4,mb=1,zero={zero}" if zero else "tp=2,dp=4,mb=1", 8)
    words = ("gradients", "weights")
    moved = sum(
        one.bytes for one in found.communication if one.what.startswith(words) or one.what == "updated weights"
    )
    halves = times if zero < 3 else 0.5 + 2 * 0.5 * 2 / 4
    assert moved == pytest.approx(halves * base)


def test_activations_of_stages() -> None:
    """1F1B keeps one micro-batch for every stage to come, GPipe all of them."""
    kept = {name: [s.kept for s in plan(f"pp=4,mb=8,schedule={name}").stages] for name in ("gpipe", "1f1b")}
    assert kept == {"gpipe": [8, 8, 8, 8], "1f1b": [4, 3, 2, 1]}
    gpipe, one = (run(f"pp=4,mb=8,schedule={name}", 4) for name in ("gpipe", "1f1b"))
    assert gpipe.training.memory.peak_bytes > one.training.memory.peak_bytes
    assert gpipe.step.step_s == one.step.step_s


def test_a_shared_sequence_keeps_fewer_activations() -> None:
    assert run("tp=4,sp=1").training.memory.activations_bytes < run("tp=4").training.memory.activations_bytes


def test_more_memory_is_never_slower() -> None:
    """Recomputing saves memory and costs time; more micro-batches at once (GPipe) cost memory and no time."""
    plain, again = run("tp=2,pp=2"), run("tp=2,pp=2", recompute=True)
    assert again.training.memory.peak_bytes < plain.training.memory.peak_bytes
    assert again.step.step_s > plain.step.step_s
    small = analyze(GPT, batch=2, arch="tp=2,pp=2,dp=2", gpus=8, device="a100-sxm-40", cluster="dgx-a100")
    large = analyze(GPT, batch=2, arch="tp=2,pp=2,dp=2", gpus=8, device="a100-sxm-80", cluster="dgx-a100")
    assert large.step.step_s <= small.step.step_s


@pytest.mark.parametrize("mesh", ["pp=4,mb=8", "pp=4,v=3,mb=8", "tp=2,pp=2,dp=2,mb=4"])
def test_a_slower_link_never_makes_a_step_faster(mesh: str) -> None:
    slow = run(mesh, nvlink_bytes_per_s=50e9, cluster="dgx-a100")
    assert slow.step.step_s >= run(mesh, cluster="dgx-a100").step.step_s


def test_parts_add_up_to_the_step() -> None:
    step = run("tp=2,pp=2,dp=2").step
    parts = step.input_s + step.compute_s + step.memory_s + step.host_s + step.exposed_comm_s
    assert parts == pytest.approx(step.step_s, rel=1e-12)


def test_samples_are_those_of_the_replicas() -> None:
    found = run("tp=2,pp=2,dp=2,mb=3", 8)
    assert found.placement.global_batch == 2 * 2 * 3  # batch x replicas x micro-batches
    kept = run("tp=2,pp=2,dp=2", 8)
    assert kept.placement.global_batch == run("allreduce", 8).placement.global_batch == 16


def test_every_gpu_of_a_server_shares_its_network() -> None:
    """Eight rings of two servers each share what one ring of sixteen GPUs has."""
    alone = next(one for one in run("dp=2", 2, servers=2).communication if one.what == "gradients")
    shared = next(one for one in run("tp=8,dp=2,mb=1", 16).communication if one.what == "gradients")
    assert shared.bytes == pytest.approx(alone.bytes / 8, rel=0.05)  # positions and norms are whole
    assert shared.time_s > 0.5 * alone.time_s
    assert "8 groups share a server's network" in shared.formula


def test_replaced_options_do_not_leak() -> None:
    options = AnalysisOptions(arch="tp=2,pp=2", precision="amp-bf16")
    assert resolve(replace(options, gpus=8)).replicas == 2
