"""Effective rates: which figure counts, and that data files name what exists."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pytest

from graphcost.device_db import cluster_names, load_cluster, load_device, load_server, server_names
from graphcost.links import LinkKind
from graphcost.network.links import across, inside, many_streams, ring

TABLES = {
    name: tomllib.loads(files("graphcost.network").joinpath(f"{name}.toml").read_text("utf-8"))
    for name in ("links", "servers", "parameter_servers", "overhead", "tuner")
}


def test_every_figure_has_a_source() -> None:
    for name in ("links", "servers", "parameter_servers"):
        for entry in TABLES[name].values():
            assert len(entry["source"]) > 15
    assert TABLES["overhead"]["source"] and "recalled" in TABLES["tuner"]["source"]


def test_kinds_and_servers_exist() -> None:
    extra = {"default", "pcie-host", "infiniband-pcie"}
    assert set(TABLES["links"]) - extra <= set(LinkKind)
    for entry in TABLES["servers"].values():
        assert set(entry["servers"]) <= set(server_names())
        for name in entry["servers"]:
            server = load_server(name)
            for which, link in (("pcie", server.pcie), ("network", server.nic)):
                if which in entry:  # measured on this very link
                    assert (entry[which]["kind"], entry[which]["nominal_bytes_per_s"]) == (
                        link.kind,
                        link.bytes_per_s,
                    )


@pytest.mark.parametrize(
    ("cluster", "gigabytes_per_s", "whence"),
    [
        ("dlperf-v100", 10.0, "DLPerf"),  # 0.8 of 12.5
        ("horovod-p100-25gbe", 2.2, "TCP"),
        ("horovod-p100-25roce", 2.9, "RoCE"),
        ("hkbu-2080ti-10gbe", 1.15, "TCP"),
        ("hkbu-2080ti-100gbe", 2.2, "TCP"),  # a tenth of what its name promises would be 1.25
        ("hkbu-2080ti-ib", 8.0, "HKBU"),
        ("aws-g4dn.12xlarge", 0.38, "Pollux"),
    ],
)
def test_what_networks_give(cluster: str, gigabytes_per_s: float, whence: str) -> None:
    found = across(load_cluster(cluster))
    assert found.bytes_per_s / 1e9 == pytest.approx(gigabytes_per_s, rel=0.02)
    assert whence in found.source


@pytest.mark.parametrize("cluster", cluster_names())
def test_a_faster_network_gives_a_ring_no_less_and_disturbs_no_more(cluster: str) -> None:
    base = load_cluster(cluster)
    for gpus, servers in ((2 * base.server.gpus, 2), (4, 4)):
        before = ring(base.with_overrides(network_bytes_per_s=0.5e9), gpus, servers)
        for gigabytes_per_s in (1.25, 3.125, 12.5, 50, 400):
            after = ring(base.with_overrides(network_bytes_per_s=gigabytes_per_s * 1e9), gpus, servers)
            assert after.bytes_per_s >= before.bytes_per_s
            assert after.interference <= before.interference
            before = after


def test_many_streams_get_more_out_of_tcp() -> None:
    assert many_streams(load_cluster("hkbu-2080ti-10gbe")).bytes_per_s == 1.25e9
    assert many_streams(load_cluster("hkbu-2080ti-100gbe")).bytes_per_s == 2.9e9
    assert many_streams(load_cluster("hkbu-2080ti-ib")) == across(load_cluster("hkbu-2080ti-ib"))


def test_a_measured_figure_gives_way_to_another_link() -> None:
    cluster = load_cluster("aws-g4dn.12xlarge")
    assert across(cluster, 2).bytes_per_s == 0.38e9 and across(cluster, 4).bytes_per_s == 0.62e9
    rdma = cluster.with_overrides(network_kind="roce")
    assert across(rdma).bytes_per_s == pytest.approx(0.93 * 6.25e9)
    slow = cluster.with_overrides(network_bytes_per_s=1e9 / 8)
    assert across(slow).bytes_per_s == pytest.approx(0.92 * 1e9 / 8)


def test_peer_to_peer_decides_what_pcie_gives() -> None:
    """0.45 of 22 GB/s by peer to peer; 0.03 to 0.16 of 24 GB/s through the host."""
    direct = load_cluster("pcie-8x-gen4").with_overrides(device=load_device("rtx3090"))
    staged = load_cluster("geforce-8x-gen4")
    assert inside(direct, 8).bytes_per_s == pytest.approx(9.9e9)
    assert [inside(staged, n).bytes_per_s / 1e9 for n in (2, 4, 7, 8)] == pytest.approx([3.84, 1.44, 0.96, 0.72])


def test_a_ring_is_as_slow_as_its_slowest_part() -> None:
    boxed = load_cluster("hkbu-2080ti-ib")
    assert ring(boxed, 32, 8).name == "pcie"  # 4.5 inside, 8 across
    assert ring(boxed, 8, 8).name == "network"  # one GPU a server
    assert ring(load_cluster("dlperf-v100"), 16, 2).name == "network"
