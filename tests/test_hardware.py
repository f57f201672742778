from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError

import pytest

from graphcost.device_db import cluster_names, load_cluster, load_device
from graphcost.errors import UnknownNameError, UsageError
from graphcost.hardware import FrozenMap, Link, LinkKind, peak_dtype


def test_frozen_map_hashes_compares_and_pickles() -> None:
    one, two = FrozenMap({"a": 1.0, "b": 2.0}), FrozenMap({"b": 2.0, "a": 1.0})
    assert one == two == {"a": 1.0, "b": 2.0}
    assert hash(one) == hash(two)
    assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == one
    assert repr(one) == "FrozenMap({'a': 1.0, 'b': 2.0})"


def test_a_cluster_is_a_value() -> None:
    cluster = load_cluster("dgx-a100")
    assert pickle.loads(pickle.dumps(cluster)) == cluster
    assert hash(copy.deepcopy(cluster)) == hash(cluster)
    with pytest.raises(FrozenInstanceError):
        cluster.server.gpus = 4  # type: ignore[misc]


@pytest.mark.parametrize(
    ("precision", "dtype"),
    [
        ("fp32", "float32"),
        ("amp-fp16", "float16"),
        ("amp-bf16", "bfloat16"),
        ("bf16", "bfloat16"),
        ("int8", "int8"),
    ],
)
def test_precisions_name_dtypes(precision: str, dtype: str) -> None:
    assert peak_dtype(precision) == dtype
    assert load_device("a100").peak(precision) == load_device("a100").peak_flops_per_s[dtype]


def test_peak_of_what_a_device_lacks() -> None:
    v100 = load_device("v100")
    assert v100.peak("tf32") == v100.peak("fp32") == 15.7e12
    with pytest.raises(UsageError, match=r"v100-sxm2-16 has no published bfloat16 peak; .* float32, float16, int8"):
        v100.peak("amp-bf16")
    with pytest.raises(UnknownNameError, match=r"no precision named 'fp23'; did you mean 'fp32'\?"):
        v100.peak("fp23")


def test_vector_peaks() -> None:
    assert load_device("a100").vector_peak() == 19.5e12
    assert load_device("mi210").vector_peak() == 22.6e12  # matrix: 45.3e12
    assert load_device("p100").vector_peak("float16") == 21.2e12
    assert load_device("tpu-v4").vector_peak() is None


def test_network_is_a_whole_servers() -> None:
    cluster = load_cluster("dgx-a100")
    assert cluster.network == Link(LinkKind.INFINIBAND, 8 * 25e9, 5e-6)
    assert cluster.max_gpus is None
    assert load_cluster("pai-testbed").max_gpus == 64 * 8


def test_kinds_of_links() -> None:
    networks = {kind for kind in LinkKind if kind.is_network}
    assert networks == {"infiniband", "roce", "efa", "tcpx", "tcp", "tcp-cloud"}
    assert {kind for kind in LinkKind if kind.bypasses_kernel} == networks - {"tcp", "tcp-cloud"}


def test_overrides_change_what_they_name_and_nothing_else() -> None:
    base = load_cluster("dgx-a100")
    assert base.with_overrides() == base
    changed = base.with_overrides(
        network_bytes_per_s=25e9 / 8, network_kind="tcp", nvlink_bytes_per_s=50e9, pcie_bytes_per_s=10e9,
        mem_bytes_per_s=1e12, peak_flops_per_s=11e12,
    )  # fmt: skip
    assert changed.network == Link(LinkKind.TCP, 3.125e9, 25e-6)
    assert changed.server.nics == 1
    assert changed.server.scale_up == Link(LinkKind.NVSWITCH, 50e9, 3e-6)
    assert changed.server.pcie.bytes_per_s == 10e9
    assert changed.device.mem_bytes_per_s == 1e12
    assert set(changed.device.peak_flops_per_s.values()) == {11e12}
    assert changed.device.fma_per_unit is None
    assert (changed.id, changed.server.gpus, changed.device.mem_bytes) == ("dgx-a100", 8, 80e9)
    assert load_cluster("dgx-a100") == base


def test_override_of_the_device_comes_before_the_rates() -> None:
    changed = load_cluster("dgx-a100").with_overrides(device=load_device("h100"), mem_bytes_per_s=1e12)
    assert (changed.device.id, changed.device.mem_bytes_per_s) == ("h100-sxm", 1e12)
    assert changed.server.id == "dgx-a100"


def test_override_of_a_mesh_scales_its_wires() -> None:
    scale_up = load_cluster("dgx1-v100").with_overrides(nvlink_bytes_per_s=300e9).server.scale_up
    assert scale_up == Link(LinkKind.NVLINK, 300e9, 3e-6, pair_bytes_per_s=50e9)


def test_override_gives_a_pcie_box_a_switch() -> None:
    scale_up = load_cluster("pcie-8x").with_overrides(nvlink_bytes_per_s=50e9).server.scale_up
    assert scale_up == Link(LinkKind.NVSWITCH, 50e9, 3e-6)


def test_override_mistakes() -> None:
    base = load_cluster("dgx-a100")
    with pytest.raises(UnknownNameError, match=r"no network kind named 'infinband'; did you mean 'infiniband'"):
        base.with_overrides(network_kind="infinband")
    with pytest.raises(UnknownNameError, match=r"no network kind named 'nvlink'"):
        base.with_overrides(network_kind="nvlink")
    with pytest.raises(UsageError, match=r"the rate of infiniband is -1, but it must be more than zero"):
        base.with_overrides(network_bytes_per_s=-1)
    with pytest.raises(UsageError, match=r"the peak is nan"):
        base.with_overrides(peak_flops_per_s=float("nan"))


def test_graph_of_a_dgx1() -> None:
    networkx = pytest.importorskip("networkx")
    graph = load_cluster("dgx1-v100").graph()
    gpus = [f"gpu{index}" for index in range(8)]
    assert sum(data["role"] == "pcie" for _, data in graph.nodes(data=True)) == 4  # two GPUs each
    assert graph.has_edge("gpu5", "pcie2")
    mesh = graph.subgraph(gpus)
    rates = {gpu: sum(data["link"].bytes_per_s for *_, data in mesh.edges(gpu, data=True)) for gpu in gpus}
    assert rates == dict.fromkeys(gpus, 150e9)  # six wires of 25 GB/s
    assert graph.edges["gpu0", "gpu3"]["link"].bytes_per_s == 2 * 25e9
    assert not graph.has_edge("gpu0", "gpu5")
    assert networkx.shortest_path_length(graph, "gpu0", "network") == 3  # pcie0, nic0


def test_graph_of_a_switched_server() -> None:
    graph = load_cluster("dgx-h100").graph()
    assert graph.degree("fabric") == 8
    assert graph.degree("network") == 8
    assert graph.edges["gpu7", "fabric"]["link"].in_network_reduce


def test_graph_of_a_full_mesh() -> None:
    graph = load_cluster("mi300x-8").graph()
    assert sum(first.startswith("gpu") and second.startswith("gpu") for first, second in graph.edges) == 28
    assert graph.edges["gpu0", "gpu7"]["link"].bytes_per_s == 64e9


@pytest.mark.parametrize("name", cluster_names())
def test_every_graph_is_connected_and_whole(name: str) -> None:
    networkx = pytest.importorskip("networkx")
    cluster = load_cluster(name)
    graph = cluster.graph()
    assert networkx.is_connected(graph)
    assert sum(data["role"] == "gpu" for _, data in graph.nodes(data=True)) == cluster.server.gpus
    for gpu in range(cluster.server.gpus):
        assert networkx.has_path(graph, f"gpu{gpu}", "network")
