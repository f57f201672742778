"""Parameter servers without a barrier: laws against the synchronous ones, and one case by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcost.advising import advise_model
from graphcost.analysis import analyze_graph
from graphcost.arch import SYNCHRONOUS, PsStyle
from graphcost.comparison import compare_model
from graphcost.errors import UsageError
from graphcost.graph import build_graph
from graphcost.models_zoo import build
from graphcost.placing import AnalysisOptions, resolve
from graphcost.result import Analysis
from graphcost.sources import LoadOptions

GRAPH = build_graph(build("vgg16", batch=8))
CLUSTER = "aws-p3.16xlarge"
GRADIENT_BYTES = 4 * 138_357_544  # fp32


def analysed(arch: str, gpus: int, servers: int, **options: object) -> Analysis:
    chosen = AnalysisOptions(arch=arch, gpus=gpus, servers=servers, cluster=CLUSTER, **options)  # type: ignore[arg-type]
    return analyze_graph(GRAPH, chosen, resolve(chosen))


PLACES = st.tuples(st.integers(1, 12), st.integers(1, 8), st.integers(1, 8), st.sampled_from(list(PsStyle)))


@settings(max_examples=40, deadline=None)
@given(PLACES, st.booleans(), st.sampled_from([1e9, 3e9, 12e9]), st.sampled_from(["none", "bucketed", "ideal"]))
def test_never_slower_than_waiting_for_each_other(
    place: tuple[int, int, int, PsStyle], beside: bool, rate: float, overlap: str
) -> None:
    servers, per_server, ps, style = place
    common = {
        "ps": ps, "ps_style": style.value, "ps_colocated": beside and not style.always_colocated,
        "network_bytes_per_s": rate, "overlap": overlap,
    }  # fmt: skip
    alone, together = (analysed(arch, servers * per_server, servers, **common) for arch in ("async-ps", "ps"))
    assert alone.step.step_s <= together.step.step_s * (1 + 1e-9)
    if servers == 1:  # one worker has nobody to wait for
        assert alone.step.step_s == together.step.step_s
    assert alone.placement.global_batch == together.placement.global_batch


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 32), st.integers(1, 8))
def test_servers_bound_the_throughput(servers: int, ps: int) -> None:
    """Everything passes the fullest server: m 2 S/(P B) a step of all, at the 2.9 GB/s of many streams of TCP."""
    found = analysed("async-ps", servers, servers, ps=ps, network_bytes_per_s=12.5e9, network_kind="tcp")
    served_s = servers * 2 * GRADIENT_BYTES / (ps * 2.9e9)
    assert found.step.step_s >= served_s * 0.98


def test_a_full_server_by_hand() -> None:
    """32 workers, one server at 2.9 GB/s: 32 x 2 x 0.553 GB / 2.9 GB/s = 12.2 s, far over a worker's own step."""
    found = analysed("async-ps", 32, 32, ps=1, network_bytes_per_s=12.5e9, network_kind="tcp")
    assert found.step.step_s == pytest.approx(32 * 2 * 0.5534 / 2.9, rel=0.02)
    queue = next(message for message in found.communication if message.what == "queue at parameter servers")
    assert queue.exposed_s > 10 and "derived, not measured" in queue.source
    more = analysed("async-ps", 64, 64, ps=1, network_bytes_per_s=12.5e9, network_kind="tcp")
    assert more.step.samples_per_s == pytest.approx(found.step.samples_per_s, rel=0.01)  # no worker helps


@pytest.mark.parametrize(("style", "updates"), [("byteps", 3), ("grpc", 31), ("mxnet", 3)])
def test_staleness_is_said(style: str, updates: int) -> None:
    found = analysed("async-ps", 32, 4, ps_style=style)
    notes = [finding.message for finding in found.findings if finding.rule == "staleness"]
    assert len(notes) == 1 and f"a staleness of {updates} (other workers' updates" in notes[0]
    assert not [f for f in analysed("ps", 32, 4).findings if f.rule == "staleness"]
    assert not [f for f in analysed("async-ps", 1, 1).findings if f.rule == "staleness"]


def test_a_straggler_holds_nobody_up_across_servers() -> None:
    slow = {arch: analysed(arch, 4, 4, straggler_spread=0.2).step.step_s for arch in ("ps", "async-ps")}
    even = {arch: analysed(arch, 4, 4).step.step_s for arch in ("ps", "async-ps")}
    assert slow["ps"] > even["ps"] and slow["async-ps"] == even["async-ps"]


def test_it_is_compared_and_advised_only_where_asked() -> None:
    options = AnalysisOptions(cluster=CLUSTER, load=LoadOptions(batch=8))
    archs = {one.placement.arch for one in compare_model("zoo:mlp", options, [8]).ranked}
    assert "async-ps" not in SYNCHRONOUS and "async-ps" not in archs
    assert "async-ps" in {one.placement.arch for one in compare_model("zoo:mlp", options, [8], ["async-ps"]).ranked}
    flagged = AnalysisOptions(arch="ps", gpus=16, cluster=CLUSTER, load=LoadOptions(batch=8))
    assert "async-ps" not in str(advise_model("zoo:vgg16", flagged))


def test_options_of_parameter_servers_go_with_both() -> None:
    with pytest.raises(UsageError, match="--ps goes with --arch ps or async-ps, not allreduce"):
        resolve(AnalysisOptions(arch="allreduce", gpus=8, ps=2))
