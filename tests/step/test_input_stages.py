"""Training data on its way to the GPU: read, decode, copy, and when a step waits for it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcost.analysis import analyze
from graphcost.device_db import load_cluster
from graphcost.engine.input import InputPipeline, exposed_input_s, input_stages
from graphcost.result import Analysis

IMAGE = 4 * 3 * 224 * 224
JPEG = 110e3


def resnet(pipeline: InputPipeline | None = None, **options: Any) -> Analysis:
    given = {"gpus": 8, "batch": 32, **options}
    return analyze("zoo:resnet50", pipeline=pipeline or InputPipeline(), **given)


def test_stages_by_hand() -> None:
    """64 samples of 110 kB for each of 8 GPUs from 1 GB/s; 4 workers of 200 a second; 38.5 MB at 3 GB/s."""
    pipeline = InputPipeline(JPEG, 1e9, 200.0, 4)
    read, decode, copy = input_stages(pipeline, 64, 64 * IMAGE, 8, 3e9)
    assert (read.what, read.bytes, read.time_s) == ("read", 64 * JPEG, pytest.approx(64 * 110e3 * 8 / 1e9))
    assert (decode.what, decode.time_s) == ("decode", pytest.approx(64 / (4 * 200)))
    assert (copy.what, copy.bytes, copy.time_s) == ("copy", 64 * IMAGE, pytest.approx(64 * 602_112 / 3e9))
    stages = (read, decode, copy)
    assert exposed_input_s(pipeline, stages, 0.05) == pytest.approx(0.08 - 0.05)  # decoding, the slowest
    assert exposed_input_s(pipeline, stages, 1.0) == 0
    unfetched = InputPipeline(JPEG, 1e9, 200.0, 4, prefetch=False)
    assert exposed_input_s(unfetched, stages, 1.0) == pytest.approx(0.05632 + 0.08 + 64 * 602_112 / 3e9)


def test_what_nobody_said_takes_no_time_and_is_named() -> None:
    assert InputPipeline().unknown == ("read", "decode")
    assert InputPipeline(JPEG).unknown == ("read", "decode")
    assert InputPipeline(JPEG, 1e9, 10.0).unknown == ()
    stages = resnet().step.input_stages
    assert stages is not None
    assert (stages.read_s, stages.decode_s, stages.prefetched) == (None, None, True)
    assert "read and decode not given" in resnet().report()


@pytest.mark.parametrize(
    ("pipeline", "slowest_s"),
    [
        (InputPipeline(JPEG, 100e6), 32 * 110e3 * 8 / 100e6),  # storage: a server's 8 GPUs share 100 MB/s
        (InputPipeline(decode_samples_per_s=50.0, workers=2), 32 / (2 * 50)),
    ],
    ids=["storage", "decode"],
)
def test_slow_data_bounds_the_step(pipeline: InputPipeline, slowest_s: float) -> None:
    fed, plain = resnet(pipeline).step, resnet().step
    assert plain.input_s == 0 and plain.bound == "compute"
    assert fed.bound == "input" and fed.step_s == pytest.approx(slowest_s)
    assert fed.input_s == pytest.approx(slowest_s - plain.step_s)
    assert fed.comm_share < plain.comm_share
    assert fed.samples_per_s == pytest.approx(8 * 32 / slowest_s)


def test_workers_and_rate_count_alike() -> None:
    rates = [(2, 100.0), (4, 50.0), (8, 25.0)]
    times = [resnet(InputPipeline(decode_samples_per_s=rate, workers=count)).step.step_s for count, rate in rates]
    assert times == pytest.approx([times[0]] * 3)
    twice = resnet(InputPipeline(decode_samples_per_s=100.0, workers=4)).step
    assert twice.input_stages is not None and twice.input_stages.decode_s == pytest.approx(32 / 400)


def test_without_prefetching_a_step_waits_for_every_stage() -> None:
    parts = resnet(InputPipeline(JPEG, 10e9, 1000.0, 4, prefetch=False)).step
    assert parts.input_stages is not None
    stages = parts.input_stages
    assert stages.read_s == pytest.approx(32 * 110e3 * 8 / 10e9) and stages.decode_s == pytest.approx(32 / 4000)
    assert parts.input_s == pytest.approx(stages.read_s + stages.decode_s + stages.copy_s)
    ahead = resnet(InputPipeline(JPEG, 10e9, 1000.0, 4)).step
    assert ahead.input_s == 0 and ahead.step_s == pytest.approx(parts.step_s - parts.input_s)


def test_copies_share_pcie() -> None:
    """A p3.16xlarge's GPUs share uplinks in pairs; 32 images of 602 112 bytes at half of one uplink's rate."""
    server = load_cluster("aws-p3.16xlarge").server
    alone, full = (resnet(gpus=gpus, cluster="aws-p3.16xlarge").step.input_stages for gpus in (1, 8))
    assert alone is not None and full is not None
    assert alone.copy_s == pytest.approx(32 * IMAGE / server.pcie.bytes_per_s)
    assert full.copy_s == pytest.approx(alone.copy_s * server.pcie_gpus_sharing)
    slower = resnet(cluster="aws-p3.16xlarge", pcie_bytes_per_s=server.pcie.bytes_per_s / 4).step.input_stages
    assert slower is not None and slower.copy_s == pytest.approx(4 * full.copy_s)


def test_micro_batches_read_as_many_samples() -> None:
    pipeline = InputPipeline(JPEG, 1e9, 100.0)
    once, four = (resnet(pipeline, accumulate=count).step.input_stages for count in (1, 4))
    assert once is not None and four is not None and once.read_s and once.decode_s
    assert (four.read_s, four.decode_s, four.copy_s) == pytest.approx(
        (4 * once.read_s, 4 * once.decode_s, 4 * once.copy_s)
    )


rates = st.floats(1e6, 1e12)


@given(rates, st.floats(0.1, 1e5), st.integers(1, 64), st.integers(1, 512), st.integers(1, 8), st.floats(0, 10))
def test_faster_stages_never_wait_longer(
    storage: float, decode: float, workers: int, samples: int, gpus: int, rest_s: float
) -> None:
    def waits(storage: float, decode: float, workers: int, prefetch: bool = True) -> float:
        pipeline = InputPipeline(JPEG, storage, decode, workers, prefetch)
        return exposed_input_s(pipeline, input_stages(pipeline, samples, samples * IMAGE, gpus, 3e9), rest_s)

    base = waits(storage, decode, workers)
    assert 0 <= base <= waits(storage, decode, workers, prefetch=False)
    assert waits(2 * storage, decode, workers) <= base
    assert waits(storage, 2 * decode, workers) <= base
    assert waits(storage, decode, workers + 1) <= base
