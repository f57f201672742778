"""Parameter servers by implementation, gathered rows, and losses that no link explains."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from helpers import RESNET50

from graphcost.arch import ARCHITECTURES, Exchange, Placement, PsStyle
from graphcost.arch.ps_styles import ps_exchanges
from graphcost.device_db import load_cluster
from graphcost.engine.timeline import Overlap
from graphcost.errors import UsageError
from graphcost.graph import build_graph
from graphcost.network.overhead import multi_gpu_overhead_s, straggler_s
from graphcost.placing import AnalysisOptions, resolve
from graphcost.predict import StepTime, predict_calibrated
from graphcost.predict.losses import comm_spread
from graphcost.sources import LoadOptions, load_model
from graphcost.training import Gradient, StepPlan, plan_step

VGG_LIKE = ((411e6, 0), (67e6, 1), (75e6, 2))
"""VGG-16's first fully connected layer holds 411 of 553 MB."""


@cache
def plan() -> StepPlan:
    return plan_step(build_graph(load_model(str(RESNET50), LoadOptions(batch=32))))


def total(style: PsStyle, gpus: int, servers: int, cluster: str, ps: int | None = None) -> float:
    place = Placement(gpus, servers, servers if ps is None else ps, load_cluster(cluster), style)
    return sum(part.seconds(part.size_bytes) for part in ps_exchanges(VGG_LIKE, place))


def test_byteps_does_not_depend_on_the_number_of_workers() -> None:
    """2 S/B at 10 GbE: 2 * 553 MB / 1.25 GB/s = 0.885 s, with 2 as with 8 servers."""
    assert total(PsStyle.BYTEPS, 8, 2, "hkbu-2080ti-10gbe") == pytest.approx(0.885, rel=0.01)
    assert total(PsStyle.BYTEPS, 32, 8, "hkbu-2080ti-10gbe") == pytest.approx(0.885, rel=0.01)
    assert total(PsStyle.BYTEPS, 32, 8, "hkbu-2080ti-10gbe", ps=4) == pytest.approx(1.77, rel=0.01)
    # One server without parameter servers sums over PCIe: 2 * 3/4 * 553 MB / 4.5 GB/s.
    assert total(PsStyle.BYTEPS, 4, 1, "hkbu-2080ti-10gbe", ps=0) == pytest.approx(0.184, rel=0.01)


def test_grpc_is_held_up_by_the_largest_variable() -> None:
    """Horovod's tables, VGG-16 on P100: 12.9-13.7 s with 16 GPUs, 40.6-42.2 s with 64; within a quarter."""
    assert total(PsStyle.GRPC, 16, 4, "horovod-p100-25gbe") == pytest.approx(13.3 - 0.5, rel=0.25)
    assert total(PsStyle.GRPC, 64, 16, "horovod-p100-40gbe") == pytest.approx(41.4 - 0.4, rel=0.25)


def test_a_colocated_server_keeps_its_own_hosts_part() -> None:
    """Of 553 MB at 1.25 GB/s (10 GbE, many streams), twice: what leaves a host or reaches it."""

    def seconds(servers: int, ps: int) -> float:
        place = Placement(4 * servers, servers, ps, load_cluster("hkbu-2080ti-10gbe"), ps_colocated=True)
        (part,) = ps_exchanges(VGG_LIKE, place)
        assert "co-located" in part.kind and "not measured" in part.source
        return part.seconds(part.size_bytes)

    once_s = 2 * 0.553 / 1.25
    assert seconds(4, 4) == pytest.approx(3 / 4 * once_s, rel=0.01)  # a ring's 2 (m-1)/m S/B
    assert seconds(8, 8) == pytest.approx(7 / 8 * once_s, rel=0.01)
    assert seconds(4, 1) == pytest.approx(3 * once_s, rel=0.01)  # three others send all of it to one host
    assert seconds(4, 2) == pytest.approx(3 / 2 * once_s, rel=0.01)  # half of it from three others
    assert seconds(4, 6) == pytest.approx(2 * 3 / 6 * once_s, rel=0.01)  # two of six parts on the fullest
    assert seconds(1, 1) == pytest.approx(2 * 3 / 4 * 0.553 / 4.5, rel=0.02)  # nothing leaves: the ring inside


@pytest.mark.parametrize("style", [PsStyle.BYTEPS, PsStyle.GRPC])
@pytest.mark.parametrize("ps", [1, 2, 4, 8])
def test_colocated_is_never_slower_while_hosts_have_one_server_at_most(style: PsStyle, ps: int) -> None:
    apart = Placement(16, 4, ps, load_cluster("hkbu-2080ti-10gbe"), style)
    beside = replace(apart, ps_colocated=True)
    took = [sum(part.seconds(part.size_bytes) for part in ps_exchanges(VGG_LIKE, one)) for one in (apart, beside)]
    assert took[1] <= took[0] or ps > 4


@pytest.mark.parametrize("style", PsStyle)
def test_styles_keep_the_laws(style: PsStyle) -> None:
    base = total(style, 16, 4, "hkbu-2080ti-10gbe")
    assert total(style, 16, 4, "hkbu-2080ti-100gbe") <= base
    assert total(style, 16, 4, "hkbu-2080ti-10gbe", ps=8) <= base
    place = Placement(16, 4, 4, load_cluster("hkbu-2080ti-10gbe"), style)
    assert ps_exchanges((), place) == () == ps_exchanges(((0.0, 0),), place)
    for part in ps_exchanges(VGG_LIKE, place):
        assert part.formula and part.source and part.seconds(2e8) > part.seconds(1e8) > 0


@pytest.mark.parametrize("style", PsStyle)
@pytest.mark.parametrize("overlap", [Overlap.IDEAL, Overlap.BUCKETED])
def test_overlap_is_never_longer_than_none(style: PsStyle, overlap: Overlap) -> None:
    place = Placement(8, 2, 2, load_cluster("hkbu-2080ti-100gbe"), style)
    hidden, bare = (step(place, how) for how in (overlap, Overlap.NONE))
    assert hidden.exposed_comm_s <= bare.exposed_comm_s
    assert hidden.comm_s == pytest.approx(bare.comm_s)


def step(place: Placement, overlap: Overlap = Overlap.BUCKETED, straggler_spread: float = 0.0) -> StepTime:
    arch = ARCHITECTURES["ps" if place.ps else "allreduce"]
    return predict_calibrated(plan(), arch, place, overlap=overlap, straggler_spread=straggler_spread)


def test_losses_beyond_the_wire_are_messages_of_their_own() -> None:
    place = Placement(16, 2, 0, load_cluster("dgx-a100"))
    found = step(place, straggler_spread=0.05)
    alone = found.compute_s + found.memory_s + found.host_s
    by_name = {message.what: message for message in found.messages}
    overhead, slowest = by_name["multi-GPU overhead"], by_name["slowest GPU"]
    assert overhead.exposed_s == overhead.time_s == pytest.approx(alone * (0.02 * 3 + 0.01))
    assert slowest.exposed_s == pytest.approx(alone * 0.05 * 2.3548, rel=1e-3)  # sqrt(2 ln 16)
    assert overhead.bytes == 0 == slowest.bytes
    assert overhead.source and found.step_s == pytest.approx(alone + found.input_s + found.exposed_comm_s)
    assert "slowest GPU" not in {message.what for message in step(place).messages}


def test_one_gpu_loses_nothing() -> None:
    assert multi_gpu_overhead_s(1.0, 1, 1) == 0 == straggler_s(1.0, 1, 0.1)
    assert step(Placement(1, 1, 0, load_cluster("dgx-a100"))).comm_s == 0


def test_gathered_rows_grow_with_the_group_and_those_of_a_parameter_server_do_not() -> None:
    """2 MB of rows: each GPU receives (n-1) * 2 MB; a server's worker still sends and receives 2 MB."""
    last = len(plan().backward) - 1
    table = Gradient("table", 4_000_000_000, last, rows_bytes=2_000_000, sparse=True)
    with_table = replace(plan(), gradients=(*plan().gradients, table))
    cluster = load_cluster("dlperf-v100")

    def rows(gpus: int) -> Exchange:
        place = Placement(gpus, gpus // 8, 0, cluster, gather_rows=True)
        return next(
            part for part in ARCHITECTURES["allreduce"].exchanges(with_table, place) if part.what == "embedding rows"
        )

    assert rows(16).wire_bytes == 15 * 2_000_000 and rows(32).wire_bytes == 31 * 2_000_000
    assert rows(32).seconds(2e6) > rows(16).seconds(2e6)
    dense = Placement(16, 2, 0, cluster)
    whole = sum(part.size_bytes for part in ARCHITECTURES["allreduce"].exchanges(with_table, dense))
    assert whole == plan().gradient_bytes + 4_000_000_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gpus": 8, "ps_style": "grpc"}, "--ps-style goes with --arch ps or async-ps, not allreduce"),
        ({"gpus": 8, "arch": "ps", "gather_rows": True}, "--gather-rows goes with --arch allreduce, not ps"),
        ({"gpus": 8, "ps_colocated": True}, "--ps-colocated goes with --arch ps or async-ps, not allreduce"),
        ({"gpus": 8, "arch": "ps", "ps_colocated": True, "ps_style": "mxnet"}, "always keeps"),
        ({"gpus": 8, "arch": "ps", "ps_style": "bytesp"}, "did you mean 'byteps'"),
    ],
)
def test_options_that_do_not_fit_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(Exception if "did you mean" in message else UsageError, match=message):
        resolve(AnalysisOptions(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize("gpus", [12, 24, 48])
def test_rows_of_a_large_table_go_to_parameter_servers(gpus: int) -> None:
    """Parallax's charts (LM1B, 6 GPUs a server, 100 Gb/s InfiniBand): PS wins, more with more GPUs.

    22 MB of rows a GPU is assumed (the charts give no batch); the winner does not depend on it.
    """
    servers, rows = gpus // 4, ((22e6, 0),)
    cluster = load_cluster("hkbu-2080ti-ib").with_overrides(pcie_bytes_per_s=12e9)
    served = sum(
        part.seconds(part.size_bytes)
        for part in ps_exchanges(rows, Placement(gpus, servers, servers, cluster, PsStyle.TF_LOCAL))
    )
    last = len(plan().backward) - 1
    sparse = replace(plan(), gradients=(Gradient("table", 1_600_000_000, last, rows_bytes=22_000_000, sparse=True),))
    (gathered,) = ARCHITECTURES["allreduce"].exchanges(sparse, Placement(gpus, servers, 0, cluster, gather_rows=True))
    assert served < gathered.seconds(22e6)


def test_the_interval_of_communication_is_that_of_what_is_exposed() -> None:
    """NVLink alone is surer than the losses that nothing explains; a cloud's network is in between."""
    local = step(Placement(8, 1, 0, load_cluster("dgx-a100")))
    cloud = step(Placement(8, 2, 0, load_cluster("aws-g4dn.12xlarge")))
    by_name = {message.what: message.spread for message in local.messages}
    assert by_name["gradients"] < cloud.comm_spread < by_name["multi-GPU overhead"]
    assert by_name["gradients"] < local.comm_spread < by_name["multi-GPU overhead"]
    assert comm_spread(()) == 0
