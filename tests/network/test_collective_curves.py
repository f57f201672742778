"""The fitted curves: what the files must hold, and published points."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from helpers import shared_folder

from graphcost.arch import Placement
from graphcost.device_db import device_names, load_cluster, load_device
from graphcost.errors import DataFileError
from graphcost.network import Collective, Piece, systems, way
from graphcost.network.curves import _check, _read
from graphcost.predict import Message
from graphcost.predict.losses import beyond_the_wire

SYSTEMS = sorted(systems())
NVLINK_TARGET, OTHER_TARGET = 0.12, 0.20


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_says_what_it_is_from_and_keeps_its_target(name: str) -> None:
    system = systems()[name]
    assert system.devices and set(system.devices) <= set(device_names())
    target = OTHER_TARGET if system.kind == "pcie" else NVLINK_TARGET
    assert system.held_out_error <= target and system.fit_error <= target
    assert all(curve.source and len(curve.pieces) <= 2 for curve in system.curves)
    groups = [(curve.collective, curve.ranks) for curve in system.curves]
    assert len(groups) == len(set(groups))
    assert {collective for collective, _ in groups} <= set(Collective)


@pytest.mark.parametrize("name", SYSTEMS)
def test_time_grows_with_size_and_shrinks_with_speed(name: str) -> None:
    for curve in systems()[name].curves:
        times = [curve.seconds(2.0**power) for power in range(8, 34)]
        assert times == sorted(times)
        assert curve.seconds(1e8, 2.0) < curve.seconds(1e8)
        assert curve.seconds(0) == 0


# cluster, GPUs, bytes, published microseconds, tolerance. VIA-Research/vTrain (MIT style), nccl-tests;
# its 2, 4 and 8 A100 were not fitted: the shipped curves are from a newer NCCL on other machines.
VTRAIN = [
    ("dgx-a100", 2, 268435456, 1455.8, 0.05),
    ("dgx-a100", 4, 268435456, 1929.0, 0.05),
    ("dgx-a100", 8, 536870912, 4191.5, 0.05),
    ("dgx-a100", 8, 33554432, 358.1, 0.15),
    ("dgx-a100", 6, 268435456, 2115.9, 0.05),
    ("dgx1-v100", 2, 268435456, 11915.0, 0.05),
    ("dgx1-v100", 5, 268435456, 11647.0, 0.05),
    ("dgx1-v100", 8, 268435456, 3527.4, 0.05),
    ("dgx1-v100", 8, 1048576, 79.93, 0.10),
]
# ai-dynamo/aiconfigurator (Apache-2.0), nccl-tests; sizes held out of the fit.
AICONFIGURATOR = [
    ("dgx-h100", 8, 268435456, 1092.67, 0.10),
    ("dgx-h100", 4, 1048576, 18.3, 0.15),
    ("dgx-h200", 8, 268435456, 1055.85, 0.10),
    ("hgx-b200", 8, 268435456, 719.47, 0.10),
    ("hgx-b200", 2, 1048576, 13.61, 0.15),
]


@pytest.mark.parametrize(("cluster", "gpus", "size", "published_us", "tolerance"), VTRAIN + AICONFIGURATOR)
def test_published_all_reduces(cluster: str, gpus: int, size: int, published_us: float, tolerance: float) -> None:
    assert way(load_cluster(cluster), gpus).seconds(size) * 1e6 == pytest.approx(published_us, rel=tolerance)


@pytest.mark.parametrize(
    ("gpus", "size", "published_us"), [(2, 12390400, 2081.45), (4, 26214400, 6842.84), (8, 153440000, 45626.0)]
)
def test_published_rings_over_pcie(gpus: int, size: int, published_us: float) -> None:
    """Baidu DeepBench (Apache-2.0), P100 with peer-to-peer."""
    cluster = load_cluster("gce-k80x8").with_overrides(device=load_device("p100-pcie-16"))
    assert way(cluster, gpus).seconds(size) * 1e6 == pytest.approx(published_us, rel=0.08)


def test_a_curve_moves_with_the_rate_of_its_link_only() -> None:
    cluster = load_cluster("dgx-a100")
    twice = cluster.with_overrides(nvlink_bytes_per_s=600e9)
    small, large = way(cluster, 8), way(twice, 8)
    assert large.seconds(8e9) == pytest.approx(small.seconds(8e9) / 2, rel=0.01)
    assert "measured" in large.best(1e6).formula
    other = cluster.with_overrides(device=load_device("v100-sxm2-16"))
    assert "measured" not in way(other, 8).best(1e6).formula  # V100 behind a switch: nobody's curve


def test_a_quad_of_a_cube_mesh_is_the_group_of_four() -> None:
    """p3.8xlarge is half of a DGX-1: four wires a GPU instead of six, but the same ring of four."""
    quad, whole = way(load_cluster("aws-p3.8xlarge"), 4), way(load_cluster("aws-p3.16xlarge"), 4)
    assert quad.seconds(1e8) == whole.seconds(1e8)
    assert quad.link.bytes_per_s == pytest.approx(86e9, rel=0.05)


def test_a_curve_that_cannot_be_is_refused() -> None:
    curve = systems()["v100-cube-mesh"].curves[0]
    falling = (Piece(1e6, 1e-3, 1e9), Piece(float("inf"), 0.0, 1e12))
    with pytest.raises(ValueError, match="time falls at 1e"):
        _check(replace(curve, pieces=falling))
    with pytest.raises(ValueError, match="without an end"):
        _check(replace(curve, pieces=falling[:1]))
    with pytest.raises(DataFileError, match=r"network/curves/bad\.toml.*benchmarks\.fit collectives"):
        _read("bad.toml", 'system = "bad"')


def test_fitting_again_gives_the_shipped_files(tmp_path_factory: pytest.TempPathFactory) -> None:
    pytest.importorskip("scipy")
    shared = shared_folder()
    if shared is None:
        pytest.skip("no folder of shared files: set GRAPHCOST_SHARED")
    from benchmarks.fit import collectives

    folder = tmp_path_factory.mktemp("curves")
    before, collectives.FOLDER = collectives.FOLDER, folder
    try:
        table = str(shared / "data" / "measured" / "collectives.csv")
        assert collectives.main(["--table", table, "--write"]) == 0
    finally:
        collectives.FOLDER = before
    for path in sorted(folder.iterdir()):
        assert path.read_text("utf-8") == before.joinpath(path.name).read_text("utf-8"), path.name


def test_fitting_finds_the_pieces_that_made_the_times() -> None:
    pytest.importorskip("scipy")
    from benchmarks.fit.collectives import fit_group

    def seconds(size: float) -> float:
        return max(10e-6 + 1.5 * size / 40e9, 25e-6 + 1.5 * size / 50e9) if size < 1e6 else 60e-6 + 1.5 * size / 200e9

    fit = fit_group("all-reduce", 4, {2.0**power: seconds(2.0**power) for power in range(9, 30)}, "made up")
    assert len(fit.pieces) == 2
    assert fit.pieces[-1][2] == pytest.approx(1.5 / 200e9, rel=0.02)
    assert fit.held_out_error < 0.05


MEASURED = """
device = "rtx3090"
source = "this machine"
[server]
source = "measured here"
gpus = 4
nics = 1
confidence = "measured"
interference = 0.4
pcie = { kind = "pcie", bytes_per_s = 5e9, latency_s = 1e-5 }
nic = { kind = "tcp", bytes_per_s = 5e9, latency_s = 1e-5 }
[server.curves."all-reduce.4"]
work = [1e6, 1e8]
seconds = [1e-3, 3e-2]
"""


def test_a_machines_own_curve_goes_before_everything(tmp_path: Path) -> None:
    (tmp_path / "here.toml").write_text(MEASURED)
    cluster = load_cluster(str(tmp_path / "here.toml"))
    own, other = way(cluster, 4), way(cluster, 2)
    assert own.seconds(1e8) == pytest.approx(3e-2)
    assert own.seconds(1e9) == pytest.approx(3e-1)
    assert own.best(1e6).source == "measured here" and "measured" in own.best(1e6).formula
    assert own.link.bytes_per_s == pytest.approx(1.5 * 1e8 / 3e-2)
    assert own.link.interference == 0.4 == other.link.interference
    assert other.best(1e6).formula.startswith("ring")
    # Measured while every worker was busy, so that no further loss is assumed.
    sent = (Message("gradients", "pcie", "all-reduce", 1.0, 1.0, 1.0),)
    assert beyond_the_wire(sent, 1.0, Placement(4, 1, 0, cluster), 0.0) == ()
