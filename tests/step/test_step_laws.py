"""Laws of a predicted step, over zoo models, training choices and clusters drawn at random."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from graphcost.analysis import predict
from graphcost.device_db import load_cluster
from graphcost.engine.constants import host_constants
from graphcost.graph import build_graph
from graphcost.ir import Phase
from graphcost.models_zoo import build
from graphcost.placing import AnalysisOptions, resolve
from graphcost.predict import StepTime, slices_of
from graphcost.training import StepPlan, plan_step
from graphcost.units import MIB

MODELS = {
    "mlp": {},
    "alexnet": {},
    "resnet18": {"image": 64},
    "mobilenet-v2": {"image": 64},
    "bert-base": {"seq": 32},
}
CLUSTERS = ("dgx-a100", "aws-p3.16xlarge", "pcie-8x-gen3", "dgx-h100")
FEW = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])


@cache
def plan(model: str, batch: int, training: tuple[tuple[str, Any], ...]) -> StepPlan:
    options = AnalysisOptions(gpus=1, **dict(training))
    return plan_step(build_graph(build(model, batch=batch, dims=MODELS[model])), resolve(options).recipe)


def step(model: str, batch: int, training: dict[str, Any], **options: Any) -> StepTime:
    chosen = AnalysisOptions(**training, **options)
    return predict(plan(model, batch, tuple(sorted(training.items()))), resolve(chosen), chosen)


models = st.sampled_from(sorted(MODELS))
batches = st.sampled_from([1, 3, 16])
trainings = st.fixed_dictionaries(
    {},
    optional={
        "precision": st.sampled_from(["fp32", "tf32", "amp-fp16"]),
        "optimizer": st.sampled_from(["sgd", "adam", "lamb", "none"]),
        "optimizer_kernels": st.sampled_from(["fused", "foreach", "for-loop"]),
        "execution": st.sampled_from(["eager", "compiled"]),
        "recompute": st.just(True),
        "clip_grad": st.just(True),
        "accumulate": st.sampled_from([2, 4]),
    },
)
placements = st.fixed_dictionaries(
    {
        "arch": st.sampled_from(["allreduce", "ps", "pearl", "local"]),
        "gpus": st.sampled_from([1, 2, 4, 8]),
        "cluster": st.sampled_from(CLUSTERS),
        "buckets": st.sampled_from(["ddp", "horovod", "4MiB"]),
    }
)
overlaps = st.sampled_from(["none", "ideal", "bucketed"])


@FEW
@given(models, batches, trainings, placements, overlaps)
def test_parts_add_up_and_lanes_hold_them(
    model: str, batch: int, training: dict[str, Any], placement: dict[str, Any], overlap: str
) -> None:
    found = step(model, batch, training, **placement, overlap=overlap)
    parts = {
        "input": found.input_s, "compute": found.compute_s, "memory": found.memory_s, "host": found.host_s,
        "communication": found.exposed_comm_s,
    }  # fmt: skip
    assert found.step_s == pytest.approx(sum(parts.values()))
    assert all(seconds >= 0 for seconds in parts.values())
    assert found.exposed_comm_s <= found.comm_s * (1 + 1e-9)
    assert found.forward is not None and found.backward is not None and found.update is not None
    phases = found.forward.wall_s + found.backward.wall_s + found.update.wall_s
    assert phases == pytest.approx(found.compute_s + found.memory_s + found.host_s)
    lanes, sums = defaultdict(list), defaultdict(float)
    for piece in slices_of(found):
        lanes[piece.lane].append(piece)
        sums[piece.part] += piece.duration_s
    for part, seconds in parts.items():
        assert sums[part] == pytest.approx(seconds, abs=1e-12), part
    for name, pieces in lanes.items():
        for one, after in pairwise(pieces):
            assert after.start_s >= one.start_s + one.duration_s - 1e-12, name
        assert found.step_s >= sum(piece.duration_s for piece in pieces) * (1 - 1e-9), name


@FEW
@given(models, batches, trainings, placements)
def test_overlap_never_costs_and_never_beats_its_longest_lane(
    model: str, batch: int, training: dict[str, Any], placement: dict[str, Any]
) -> None:
    ideal, bucketed, none = (
        step(model, batch, training, **placement, overlap=name) for name in ("ideal", "bucketed", "none")
    )
    assert ideal.step_s <= bucketed.step_s * (1 + 1e-9) <= none.step_s * (1 + 2e-9)
    for found in (ideal, bucketed, none):
        assert found.step_s >= found.comm_s * (1 - 1e-9)
    assert none.hidden_comm_s == pytest.approx(0, abs=1e-12)


RATES = {
    "network_bytes_per_s": 12.5e9, "nvlink_bytes_per_s": 150e9, "pcie_bytes_per_s": 12e9, "mem_bytes_per_s": 1e12,
    "peak_flops_per_s": 100e12,
}  # fmt: skip


@settings(FEW, max_examples=80)
@given(
    models, batches, trainings, placements, overlaps, st.sampled_from(sorted(RATES)),
    st.sampled_from([0.01, 0.2, 1.0, 5.0]), st.sampled_from([1.01, 2.0, 30.0]), st.sampled_from([1, 2]),
)  # fmt: skip
def test_a_faster_part_never_slows_the_step(
    model: str, batch: int, training: dict[str, Any], placement: dict[str, Any], overlap: str,
    rate: str, share: float, factor: float, servers: int,
) -> None:  # fmt: skip
    several = placement["arch"] in ("allreduce", "ps") and placement["gpus"] >= servers
    assume(rate != "nvlink_bytes_per_s" or load_cluster(placement["cluster"]).server.scale_up is not None)
    options = {**placement, "overlap": overlap, "servers": servers if several else 1}
    slow = step(model, batch, training, **options, **{rate: share * RATES[rate]})
    fast = step(model, batch, training, **options, **{rate: factor * share * RATES[rate]})
    assert fast.step_s <= slow.step_s * (1 + 1e-9)


@FEW
@given(models, batches, trainings, placements)
def test_one_gpu_sends_nothing_but_to_servers(
    model: str, batch: int, training: dict[str, Any], placement: dict[str, Any]
) -> None:
    assume(placement["arch"] != "ps")
    found = step(model, batch, training, **{**placement, "gpus": 1})
    assert found.messages == () and found.comm_s == found.exposed_comm_s == 0


@FEW
@given(models, batches, trainings, placements, st.integers(2, 6))
def test_micro_batches_send_once(
    model: str, batch: int, training: dict[str, Any], placement: dict[str, Any], count: int
) -> None:
    once = step(model, batch, {**training, "accumulate": 1}, **placement)
    several = step(model, batch, {**training, "accumulate": count}, **placement)
    sent = [[(m.what, m.bytes, m.time_s) for m in one.messages if m.bytes] for one in (once, several)]
    assert sent[0] == sent[1]  # what several GPUs lose beyond the wire grows with the work
    work = [(m.forward.busy_s, m.backward.busy_s) for m in (once, several) if m.forward and m.backward]
    assert work[1] == pytest.approx(tuple(count * seconds for seconds in work[0]))
    assert several.step_s <= count * once.step_s * (1 + 1e-9)


@FEW
@given(models, st.integers(1, 6), trainings)
def test_matmul_flops_are_linear_in_the_batch(model: str, batch: int, training: dict[str, Any]) -> None:
    key = tuple(sorted(training.items()))
    one, many = plan(model, 1, key), plan(model, batch, key)
    for phase in (Phase.FORWARD, Phase.BACKWARD):
        assert many.total(phase).matmul_flops == batch * one.total(phase).matmul_flops
    assert many.gradient_bytes == one.gradient_bytes
    assert many.memory.weights_bytes == one.memory.weights_bytes


def test_a_gradient_twice_as_large_takes_longer_to_send() -> None:
    made = plan("alexnet", 16, ())
    options = AnalysisOptions(gpus=16, cluster="aws-p3.16xlarge")
    heavier = replace(made, gradients=tuple(replace(g, bytes=2 * g.bytes) for g in made.gradients))
    once, twice = (predict(one, resolve(options), options) for one in (made, heavier))
    assert twice.comm_s == pytest.approx(2 * once.comm_s, rel=0.01)  # latencies stay
    assert sum(g.bytes for g in made.gradients) > 25 * MIB


def test_a_step_takes_the_longer_of_gpu_and_host_and_waiting_for_launches_hides_communication() -> None:
    """Three Gemm and two Relu forward, six tensors; backward three dW, two dX (the input has none) and two
    Relu: 690 us of host at 43, 42 and 30 us each. At batch 1 the gradient of a bias is dY itself.
    """
    each = host_constants()
    host_s = 5 * each["forward_op_s"] + 7 * each["backward_op_s"] + 6 * each["param_tensor_s"]
    alone = step("mlp", 1, {}, gpus=1, cluster="dgx-h100")
    local = step("mlp", 1, {}, gpus=8, cluster="dgx-h100")
    assert alone.step_s == pytest.approx(local.step_s) == pytest.approx(host_s)
    assert 0 < local.exposed_comm_s < local.comm_s  # the last gradients come after every launch of the backward pass
    assert local.host_s == pytest.approx(host_s - local.compute_s - local.memory_s - local.exposed_comm_s)
    # 2 * 7/8 * 2.68 MB at 0.92 * 1 GB/s take 5.1 ms: the GPU is the slower, and nothing waits for launches
    slow = step("mlp", 1, {}, gpus=8, servers=8, cluster="dgx-h100", network_bytes_per_s=1e9, network_kind="tcp")
    assert slow.host_s == 0 and slow.step_s > 5.1e-3
    assert slow.alone_s == pytest.approx(alone.step_s) == pytest.approx(host_s)


def test_a_step_that_the_gpu_bounds_never_waits_for_launches() -> None:
    """Exactly 0, whatever rounding leaves of the sums."""
    for model in MODELS:
        for gpus in (1, 8, 16):
            found = step(model, 64, {}, gpus=gpus, cluster="aws-p3.16xlarge", peak_flops_per_s=1e11)
            assert found.host_s == 0, (model, gpus)
