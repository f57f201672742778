"""ZeRO: volumes, memory and the queue that its collectives share."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcost.analysis import analyze
from graphcost.arch import ARCHITECTURES, Placement
from graphcost.device_db import load_cluster
from graphcost.engine.timeline import BUCKETINGS, Overlap
from graphcost.graph import build_graph
from graphcost.ir import Phase
from graphcost.predict import StepTime, predict_calibrated
from graphcost.predict.sending import Pass, messages_of
from graphcost.recipe import Precision, Recipe
from graphcost.sources import LoadOptions, load_model
from graphcost.training import Memory, StepPlan, plan_step

STAGES = (1, 2, 3)


@cache
def plan(accumulate: int = 1, precision: Precision = Precision.FP32, freeze: tuple[str, ...] = ()) -> StepPlan:
    recipe = Recipe(accumulate=accumulate, precision=precision, freeze=freeze)
    return plan_step(build_graph(load_model("zoo:mlp", LoadOptions(batch=32))), recipe)


def placed(gpus: int) -> Placement:
    cluster = load_cluster("dgx-a100")
    return Placement(gpus, -(-gpus // 8), 0, cluster)


def step(stage: int, gpus: int = 16, made: StepPlan | None = None, overlap: Overlap = Overlap.BUCKETED) -> StepTime:
    return predict_calibrated(made or plan(), ARCHITECTURES[f"zero{stage}"], placed(gpus), overlap=overlap)


def wire_bytes(arch: str, made: StepPlan, gpus: int = 16) -> float:
    return sum(part.wire_bytes for part in ARCHITECTURES[arch].exchanges(made, placed(gpus)))


@pytest.mark.parametrize(("stage", "times"), [(1, 1.0), (2, 1.0), (3, 1.5)])
def test_volume_over_that_of_all_reduce(stage: int, times: float) -> None:
    """Scatter and gather are one all-reduce, and stage 3 gathers once more."""
    assert wire_bytes(f"zero{stage}", plan()) == pytest.approx(times * wire_bytes("allreduce", plan()))


def test_half_precision_copies_travel_in_half_the_bytes() -> None:
    """Under AMP: gradients 4 bytes, two gathers of 2: (1 + 1/2 + 1/2) / 2 = 1 all-reduce."""
    made = plan(precision=Precision.AMP_BF16)
    assert wire_bytes("zero3", made) == pytest.approx(wire_bytes("allreduce", made))


@pytest.mark.parametrize(("stage", "times"), [(1, 1.0), (2, (4 + 1) / 2), (3, 4 * 1.5)])
def test_micro_batches_that_send(stage: int, times: float) -> None:
    """Of 4 micro-batches: stage 1 sends after the last, stage 2 scatters 4 times and gathers once, stage 3 all."""
    assert wire_bytes(f"zero{stage}", plan(4)) == pytest.approx(times * wire_bytes("allreduce", plan()))


def test_frozen_weights_are_gathered_but_send_no_gradients() -> None:
    frozen = plan(freeze=("*weight*",))
    gathers = [p for p in ARCHITECTURES["zero3"].exchanges(frozen, placed(16)) if p.kind == "all-gather"]
    assert [part.size_bytes for part in gathers] == pytest.approx([frozen.memory.weights_bytes] * 2)
    assert frozen.gradient_bytes < frozen.memory.weights_bytes / 100


@pytest.mark.parametrize("stage", STAGES)
def test_one_gpu_is_the_single_step(stage: int) -> None:
    alone = predict_calibrated(plan(), ARCHITECTURES["single"], placed(1))
    assert step(stage, 1).step_s == alone.step_s


@pytest.mark.parametrize("stage", STAGES)
def test_overlap_never_hurts_and_hides_no_more_than_a_pass_lasts(stage: int) -> None:
    none, bucketed, ideal = (step(stage, overlap=mode) for mode in (Overlap.NONE, Overlap.BUCKETED, Overlap.IDEAL))
    assert ideal.exposed_comm_s <= bucketed.exposed_comm_s <= none.exposed_comm_s
    assert none.hidden_comm_s == 0
    assert bucketed.forward is not None and bucketed.backward is not None
    assert bucketed.hidden_comm_s <= bucketed.forward.wall_s + bucketed.backward.wall_s


def test_a_gather_is_there_before_its_operator() -> None:
    """Two operators of 1 s; the second's weights take 0.5 s and hide, the first's expose their 0.25 s."""
    (found,) = messages_of([gather(((0.25, 0), (0.5, 1)))], PASSES, Overlap.BUCKETED, BUCKETINGS["ddp"])
    assert found.time_s == 0.75 and found.exposed_s == 0.25
    assert [(send.start_s, send.end_s) for send in found.sends] == [(0.0, 0.25), (0.75, 1.25)]


def test_two_of_one_queue_hide_one_pass_of_time() -> None:
    """Backward lasts 2 s; 1.5 s of gathers and 1.5 s of scatters: 1 s of the 3 cannot hide."""
    late = replace(gather(((1.5, 1),)), needed_in=Phase.BACKWARD)
    early = replace(late, needed_in=None, payload=((1.5, 0),))
    wide = Pass((0.0, 2.0), (0.0, 2.0), 2.0)
    found = messages_of([late, early], {Phase.BACKWARD: wide}, Overlap.BUCKETED, BUCKETINGS["ddp"])
    assert [message.exposed_s for message in found] == pytest.approx([0.0, 1.0])
    apart = [late, replace(early, queue="other")]
    assert sum(m.exposed_s for m in messages_of(apart, {Phase.BACKWARD: wide}, Overlap.BUCKETED, UNITS)) == 0


UNITS = BUCKETINGS["ddp"]
PASSES = {Phase.FORWARD: Pass((0.0, 1.0), (1.0, 2.0), 2.0)}


def gather(payload: tuple[tuple[float, int], ...]):  # type: ignore[no-untyped-def]
    """An exchange of one second a byte, every part a unit of its own."""
    (part, *_) = ARCHITECTURES["zero3"].exchanges(plan(), placed(16))
    unit = replace(BUCKETINGS["ddp"], first_bytes=0.01, cap_bytes=0.01)
    return replace(part, payload=payload, seconds=lambda size: size, interference=0.0, bucketing=unit, trips=1)


@given(st.integers(2, 512), st.sampled_from(STAGES))
@settings(max_examples=40)
def test_each_stage_holds_less(gpus: int, stage: int) -> None:
    whole = plan().memory
    held = ARCHITECTURES[f"zero{stage}"].local_plan(plan(), placed(gpus)).memory
    assert held.optimizer_bytes == -(-whole.optimizer_bytes // gpus)
    assert held.gradients_bytes == (whole.gradients_bytes if stage < 2 else -(-whole.gradients_bytes // gpus))
    assert held.weights_bytes == (whole.weights_bytes if stage < 3 else -(-whole.weights_bytes // gpus))
    assert held.activations_bytes == whole.activations_bytes
    assert held.peak_bytes >= held.weights_bytes + held.optimizer_bytes
    before = whole if stage == 1 else ARCHITECTURES[f"zero{stage - 1}"].local_plan(plan(), placed(gpus)).memory
    assert held.peak_bytes <= before.peak_bytes


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=1, max_size=8), st.integers(1, 64))
def test_the_peak_of_divided_gradients_is_an_upper_bound(moments: list[tuple[int, int]], ranks: int) -> None:
    """Moments of (rest, gradients): the exact peak is max(rest + g / n)."""
    memory = Memory(
        0, max(g for _, g in moments), 0, 0, 0, 0, max(r + g for r, g in moments), "backward",
        peak_without_gradients_bytes=max(r for r, _ in moments),
    )  # fmt: skip
    held = memory.sharded(ranks, weights=False, gradients=True, optimizer=False)
    exact = max(rest + gradient / ranks for rest, gradient in moments)
    assert exact <= held.peak_bytes <= memory.peak_bytes


@pytest.mark.parametrize("stage", STAGES)
def test_the_update_is_divided_too(stage: int) -> None:
    mine = ARCHITECTURES[f"zero{stage}"].local_plan(plan(), placed(16))
    assert mine.update.bytes == pytest.approx(plan().update.bytes / 16, rel=1e-3)


def test_a_model_that_does_not_fit_whole_fits_divided() -> None:
    """124 M parameters with Adam hold 2 GB; 64 GPUs hold 1/64 of it each."""
    whole, divided = (analyze("zoo:gpt2", arch=arch, gpus=64, batch=1) for arch in ("allreduce", "zero3"))
    states = ("weights_bytes", "gradients_bytes", "optimizer_bytes")
    held = [sum(getattr(found.training.memory, name) for name in states) for found in (whole, divided)]
    assert held[1] == pytest.approx(held[0] / 64, rel=1e-6)
    assert divided.training.memory.peak_bytes < whole.training.memory.peak_bytes
