"""A job's features from its graph: split, laws, and the sums that the profile uses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcost.arch import ARCHITECTURES, PaperTraffic
from graphcost.errors import PlacementError, UsageError
from graphcost.features import JobFeatures, features_of, job_features, split_traffic
from graphcost.frontends.options import LoadOptions
from graphcost.graph import build_graph
from graphcost.models_zoo import build
from graphcost.placing import AnalysisOptions, resolve
from graphcost.predict.paper import paper_features
from graphcost.training import plan_step


def row(source: str, **options: Any) -> JobFeatures:
    load = LoadOptions(batch=options.pop("batch", 8))
    return features_of(source, AnalysisOptions(cluster="pai-paper-base", profile="paper", load=load, **options))


@pytest.mark.parametrize("arch", sorted(ARCHITECTURES))
@pytest.mark.parametrize("source", ["mlp", "dlrm-small"])
def test_columns_are_what_the_profile_charges(arch: str, source: str) -> None:
    gpus = 1 if arch == "single" else 8
    choice = resolve(AnalysisOptions(arch=arch, gpus=gpus, cluster="pai-paper-base", profile="paper"))
    plan = plan_step(build_graph(build(source, batch=16)), choice.recipe)
    found = job_features(plan, choice.arch, choice.placement)
    charged = paper_features(plan, choice.arch, choice.placement)
    assert (found.arch, found.cnodes, found.batch) == (arch, gpus, 16)
    assert found.flops == charged.flops and found.mem_bytes == charged.mem_bytes
    assert found.input_bytes == charged.input_bytes
    assert found.dense_weight_bytes is not None and found.sparse_weight_bytes is not None
    assert found.dense_weight_bytes + found.sparse_weight_bytes == pytest.approx(charged.weight_bytes)
    assert (found.sparse_weight_bytes > 0) == (source == "dlrm-small" and arch in ("ps", "async-ps", "pearl"))
    assert found.unknown == ()


def test_an_mlp_by_hand() -> None:
    """784-512-512-10 with biases; Adam: weight, gradient and two moments."""
    weights = 669_706
    found = row("zoo:mlp", arch="ps", gpus=4)
    assert found.flops == 2 * 8 * (2 * 784 * 512 + 3 * 512 * 512 + 3 * 512 * 10)  # no gradient of the input
    assert found.input_bytes == 8 * 784 * 4
    assert (found.dense_weight_bytes, found.sparse_weight_bytes) == (2 * 4 * weights, 0)
    assert (found.dense_model_bytes, found.sparse_model_bytes) == (4 * 4 * weights, 0)


def test_tables_are_stored_apart() -> None:
    """Neither gradients nor dense state: SGD keeps none, momentum one value more."""
    plain, slot = (
        row("zoo:dlrm-small", gpus=8, arch="pearl", optimizer="sgd"),
        row("zoo:dlrm-small", gpus=8, arch="pearl", optimizer="momentum"),
    )
    assert slot.sparse_model_bytes == 2 * (plain.sparse_model_bytes or 0)
    assert slot.dense_model_bytes == 1.5 * (plain.dense_model_bytes or 0)  # weight, gradient, slot
    factored = row("zoo:dlrm-small", gpus=8, arch="pearl", optimizer="adafactor")
    assert factored.dense_model_bytes is None and factored.sparse_model_bytes is None
    assert factored.unknown == ()  # a table of jobs may leave these empty


@pytest.mark.parametrize("arch", ["local", "ps", "allreduce", "pearl"])
def test_work_grows_with_the_batch_and_dense_traffic_does_not(arch: str) -> None:
    one, two = (row("zoo:dlrm-small", arch=arch, gpus=8, batch=batch) for batch in (16, 32))
    assert two.flops == 2 * (one.flops or 0) and two.input_bytes == 2 * (one.input_bytes or 0)
    assert two.dense_weight_bytes == one.dense_weight_bytes
    assert (two.sparse_weight_bytes or 0) >= (one.sparse_weight_bytes or 0)


@given(sizes=st.lists(st.tuples(st.floats(0, 1e12), st.booleans()), max_size=8))
def test_traffic_is_split_whole(sizes: list[tuple[float, bool]]) -> None:
    dense, sparse = split_traffic([PaperTraffic("x", size, (), rows) for size, rows in sizes])
    assert dense + sparse == pytest.approx(sum(size for size, _ in sizes))
    assert sparse == pytest.approx(sum(size for size, rows in sizes if rows))


def test_what_is_empty_is_named() -> None:
    found = row("zoo:mlp", gpus=2)
    assert replace(found, mem_bytes=None, batch=None, dense_model_bytes=None).unknown == ("batch", "mem_bytes")


def test_wrong_jobs_are_refused() -> None:
    with pytest.raises(PlacementError, match="'single' is one GPU, 2 were given"):
        row("zoo:mlp", arch="single", gpus=2)
    with pytest.raises(UsageError, match="at least one GPU"):
        row("zoo:mlp", gpus=0)
