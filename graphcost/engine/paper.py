"""The analytical framework of the Alibaba-PAI workload study: T = T_d + T_c + T_w.

Every resource runs at one flat share of its nominal rate, parts are added, nothing
overlaps. The functions take scalars or numpy arrays alike, so that a table of jobs is
one call.

Source: Wang et al., Characterizing Deep Learning Training Workloads on Alibaba-PAI,
IISWC 2019 (arXiv 1910.05930), section on the analytical framework; equations
recalled and cross-checked by the arithmetic of its tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from graphcost.hardware import Cluster


class Medium(StrEnum):
    """What carries weights (Table II)."""

    ETHERNET = "network"
    PCIE = "pcie"
    NVLINK = "nvlink"


@dataclass(frozen=True, slots=True)
class PaperFeatures:
    """Features of a job, per step and cNode (Table V); scalars or arrays of one shape.

    ``flops`` are those of compute-bound operators, ``mem_bytes`` the bytes that
    memory-bound operators touch, ``weight_bytes`` the traffic S_w of weights.
    """

    input_bytes: Any
    flops: Any
    mem_bytes: Any
    weight_bytes: Any


@dataclass(frozen=True, slots=True)
class PaperTimes:
    """Seconds of a step by part; same shapes as the features."""

    input_s: Any
    compute_s: Any
    memory_s: Any
    weight_s: Any

    @property
    def step_s(self) -> Any:
        """All parts, one after another."""
        return self.input_s + self.compute_s + self.memory_s + self.weight_s

    @property
    def ideal_overlap_s(self) -> Any:
        """The variant with perfect overlap: the largest of input, computation, weights."""
        return np.maximum(np.maximum(self.input_s, self.compute_s + self.memory_s), self.weight_s)


DEFAULT_UTILISATION = 0.70
"""Share of nominal that every resource reaches in the study (recalled, high confidence)."""


def utilisation(cluster: Cluster) -> float:
    """The cluster file's own figure, else the study's 70 %."""
    return cluster.utilisation if cluster.utilisation is not None else DEFAULT_UTILISATION


def medium_bytes_per_s(cluster: Cluster, medium: Medium) -> float:
    """Nominal rate of a medium, one direction: the GPU's NVLink or PCIe, the server's network."""
    server = cluster.server
    if medium is Medium.ETHERNET:
        return cluster.network.bytes_per_s
    if medium is Medium.PCIE or server.scale_up is None:
        # A server without NVLink moves over PCIe what others move over NVLink.
        return server.pcie.bytes_per_s
    return server.scale_up.bytes_per_s


@dataclass(frozen=True, slots=True)
class PaperRates:
    """What a job gets of each resource, utilisation included; weights cross their media one after another."""

    input_bytes_per_s: float
    flops_per_s: float
    mem_bytes_per_s: float
    weight_bytes_per_s: tuple[float, ...]


def paper_rates(cluster: Cluster, media: Iterable[Medium], precision: str = "fp32") -> PaperRates:
    """Utilisation times the nominal rates of ``cluster``, with weights over ``media``."""
    share = utilisation(cluster)
    return PaperRates(
        input_bytes_per_s=share * cluster.server.pcie.bytes_per_s,
        flops_per_s=share * cluster.device.peak(precision),
        mem_bytes_per_s=share * cluster.device.mem_bytes_per_s,
        weight_bytes_per_s=tuple(share * medium_bytes_per_s(cluster, medium) for medium in media),
    )


def transfer_s(weight_bytes: Any, bytes_per_s: tuple[float, ...]) -> Any:
    """T_w: ``weight_bytes`` over every medium in turn; zeros where there is none."""
    return in_turn([weight_bytes / rate for rate in bytes_per_s]) if bytes_per_s else weight_bytes * 0.0


def in_turn(seconds: Sequence[Any]) -> Any:
    """One medium after another: ``seconds``, of which there is at least one, added in their order."""
    return reduce(add, seconds)


def paper_times(
    features: PaperFeatures,
    cluster: Cluster,
    media: Iterable[Medium],
    *,
    input_sharing: Any = 1,
    precision: str = "fp32",
) -> PaperTimes:
    """Times of a step; ``input_sharing`` cNodes contend for one PCIe when inputs are copied.

    T_d = S_d k / (e B_pcie); T_c = FLOPs / (e peak) + S_mem / (e B_mem);
    T_w = sum over media of S_w / (e B_medium).
    """
    rates = paper_rates(cluster, media, precision)
    return PaperTimes(
        input_s=features.input_bytes * input_sharing / rates.input_bytes_per_s,
        compute_s=features.flops / rates.flops_per_s,
        memory_s=features.mem_bytes / rates.mem_bytes_per_s,
        weight_s=transfer_s(features.weight_bytes, rates.weight_bytes_per_s),
    )
