"""The PAI framework against the times that its published features give.

Features and times: Table V of the study and the arithmetic of its equations with Table I's
constants (recalled, high confidence). Times are milliseconds, shares percent; every cell
must agree within one unit of its last printed digit.
"""

from __future__ import annotations

import numpy as np
import pytest

from graphcost.arch import ARCHITECTURES, Placement
from graphcost.device_db import load_cluster
from graphcost.engine.paper import Medium, PaperFeatures, medium_bytes_per_s, paper_times

# model, arch, GPUs, (input bytes, FLOPs, memory bytes, weight traffic),
#   printed T_d, T_flop, T_mem, T_w, T_total (ms), printed shares d, flop, mem, w (%)
ROWS = [
    ("ResNet50", "allreduce", 8, (38e6, 1.56e12, 31.9e9, 357e6),
     ("5.43", "202.6", "45.6", "10.2", "263.8"), ("2.1", "76.8", "17.3", "3.9")),
    ("NMT", "allreduce", 8, (22e3, 2.5e12, 101.6e9, 1.33e9),
     ("0.00", "324.7", "145.1", "38.0", "507.8"), ("0", "63.9", "28.6", "7.5")),
    ("BERT", "allreduce", 8, (46e3, 2.1e12, 107.3e9, 1.5e9),
     ("0.01", "272.7", "153.3", "42.9", "468.9"), ("0", "58.2", "32.7", "9.1")),
    ("Speech", "single", 1, (804e6, 7.9e12, 20.4e9, 728e6),
     ("114.9", "1026", "29.1", "0", "1170"), ("9.8", "87.7", "2.5", "0")),
    ("Multi-Interests", "ps", 8, (261e6, 105.8e9, 100.4e9, 122e6),
     ("37.3", "13.7", "143.4", "73.2", "267.7"), ("13.9", "5.1", "53.6", "27.3")),
    ("GCN", "pearl", 8, (1.2e6, 330.7e9, 25.79e9, 3e9),
     ("0.17", "43.0", "36.8", "85.7", "165.7"), ("0.1", "25.9", "22.2", "51.7")),
    ("GCN what-if", "ps", 8, (1.2e6, 330.7e9, 25.79e9, 3e9),
     ("0.17", "43.0", "36.8", "1800", "1880"), ("0", "2.3", "2.0", "95.7")),
]  # fmt: skip


def agrees(value: float, printed: str) -> bool:
    """Within one unit of the last printed digit."""
    unit = 10.0 ** -len(printed.partition(".")[2])
    return abs(value - float(printed)) <= unit


def placement(arch: str, gpus: int) -> Placement:
    return Placement(gpus, gpus if arch == "ps" else 1, gpus if arch == "ps" else 0, load_cluster("pai-paper-base"))


@pytest.mark.parametrize(
    ("model", "arch", "gpus", "features", "times_ms", "shares"), ROWS, ids=[row[0] for row in ROWS]
)
def test_case_studies(
    model: str, arch: str, gpus: int, features: tuple[float, ...], times_ms: tuple[str, ...], shares: tuple[str, ...]
) -> None:
    place = placement(arch, gpus)
    times = paper_times(
        PaperFeatures(*features), place.cluster, ARCHITECTURES[arch].paper_media(place), input_sharing=1
    )
    got_s = (times.input_s, times.compute_s, times.memory_s, times.weight_s, times.step_s)
    for value_s, printed in zip(got_s, times_ms, strict=True):
        assert agrees(value_s * 1e3, printed), (model, value_s * 1e3, printed)
    for value_s, printed in zip(got_s[:4], shares, strict=True):
        assert agrees(100 * value_s / times.step_s, printed), (model, 100 * value_s / times.step_s, printed)


def weight_seconds(arch: str, gpus: int, servers: int) -> float:
    cluster = load_cluster("pai-paper-base")
    place = Placement(gpus, servers, servers if arch == "ps" else 0, cluster)
    features = PaperFeatures(0.0, 0.0, 0.0, 1e9)
    return float(paper_times(features, cluster, ARCHITECTURES[arch].paper_media(place)).weight_s)


def test_projection_bounds_of_weight_time() -> None:
    """(1/3.125 + 1/10) / (1/50) = 21.0 and 0.42 / 0.34 = 1.235, from the cluster file."""
    ps = weight_seconds("ps", 8, 8)
    assert ps / weight_seconds("allreduce", 8, 1) == pytest.approx(21.0, abs=0.05)
    assert ps / weight_seconds("allreduce", 16, 2) == pytest.approx(1.235, abs=0.0005)


def test_media_of_table_two() -> None:
    rates = {medium: medium_bytes_per_s(load_cluster("pai-paper-base"), medium) for medium in Medium}
    assert rates == {Medium.ETHERNET: 25e9 / 8, Medium.PCIE: 10e9, Medium.NVLINK: 50e9}
    media = {
        name: ARCHITECTURES[name].paper_media(placement(name, 8)) for name in ("local", "ps", "allreduce", "pearl")
    }
    assert media == {
        "local": (Medium.PCIE,),
        "ps": (Medium.ETHERNET, Medium.PCIE),
        "allreduce": (Medium.NVLINK,),
        "pearl": (Medium.NVLINK,),
    }
    two_servers = Placement(16, 2, 0, load_cluster("pai-paper-base"))
    assert ARCHITECTURES["allreduce"].paper_media(two_servers) == (Medium.ETHERNET, Medium.NVLINK)


def test_a_table_of_jobs_is_one_call() -> None:
    cluster = load_cluster("pai-paper-base")
    columns = [np.array(column) for column in zip(*(row[3] for row in ROWS), strict=True)]
    many = paper_times(PaperFeatures(*columns), cluster, (Medium.NVLINK,))
    for index, row in enumerate(ROWS):
        one = paper_times(PaperFeatures(*row[3]), cluster, (Medium.NVLINK,))
        assert many.step_s[index] == pytest.approx(one.step_s)
        assert many.ideal_overlap_s[index] == pytest.approx(one.ideal_overlap_s)
