"""Do the study's conclusions stand on its assumptions: overlap and efficiencies varied.

Source: PAI study, section on the sensitivity of the assumptions (values recalled, low
confidence); the grid here is wider than what is recalled of theirs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from graphcost._version import __version__
from graphcost.engine.paper import PaperTimes, utilisation
from graphcost.engine.timeline import Overlap
from graphcost.errors import UsageError
from graphcost.fleet.characterize import PARTS, hardware_info, parts_of, source_of
from graphcost.fleet.evaluate import Evaluator
from graphcost.fleet.jobs import Column, Jobs, ratio
from graphcost.fleet.kinds import ALLREDUCE_LOCAL, PS, JobKind
from graphcost.fleet.project import move
from graphcost.fleet.rates import Hardware, hardware_of
from graphcost.fleet.result import Assumption, AssumptionStudy
from graphcost.fleet.table import open_jobs
from graphcost.fleet.tally import WeightedMean
from graphcost.hardware import Cluster
from graphcost.predict import Profile

COMPUTE_EFFICIENCIES = (0.25, 0.5, 0.7, 1.0)
"""Of peak FLOP/s and memory bandwidth together."""
COMM_EFFICIENCIES = (0.3, 0.5, 0.7, 1.0)
"""Of network, PCIe and NVLink together."""
CONCLUSION = "communication is the largest part of the step, averaged by cNode"


def step_s(times: PaperTimes, overlap: Overlap) -> Column:
    """The sum of parts, or the largest of input, computation and weights."""
    found: Column = times.ideal_overlap_s if overlap is Overlap.IDEAL else times.step_s
    return found


def at_efficiency(cluster: Cluster, compute: float, comm: float, precision: str = "fp32") -> Cluster:
    """``cluster`` with every resource at these shares of its nominal rate."""
    server, device = cluster.server, cluster.device
    return replace(
        cluster.with_overrides(
            network_bytes_per_s=comm * cluster.network.bytes_per_s,
            nvlink_bytes_per_s=None if server.scale_up is None else comm * server.scale_up.bytes_per_s,
            pcie_bytes_per_s=comm * server.pcie.bytes_per_s,
            mem_bytes_per_s=compute * device.mem_bytes_per_s,
            peak_flops_per_s=compute * device.peak(precision),
        ),
        utilisation=1.0,
    )


@dataclass(slots=True)
class _Case:
    """One assumption and its counts."""

    overlap: Overlap
    compute: float
    comm: float
    hardware: Hardware
    parts: dict[str, WeightedMean] = field(default_factory=lambda: {part: WeightedMean() for part in PARTS})
    ps_comm: WeightedMean = field(default_factory=WeightedMean)
    ps_jobs: int = 0
    over_80: int = 0
    gains: int = 0
    not_faster: int = 0

    def add(self, jobs: Jobs, kind: JobKind, input_sharing: int | None) -> None:
        hardware = self.hardware
        times = Evaluator(jobs, input_sharing=input_sharing).times(kind, hardware)
        whole_s = step_s(times, self.overlap)
        for part, seconds in zip(PARTS, parts_of(times), strict=True):
            self.parts[part].add(ratio(seconds, whole_s, empty=0.0), jobs.cnodes)
        if kind is not PS:
            return
        shares = ratio(times.weight_s, whole_s, empty=0.0)
        self.ps_jobs += len(jobs)
        self.ps_comm.add(shares)
        self.over_80 += int(np.count_nonzero(shares > 0.8))
        moved = move(
            jobs, times, ALLREDUCE_LOCAL, hardware, input_sharing,
            before_s=whole_s, after_s=lambda after: step_s(after, self.overlap),
        )  # fmt: skip
        self.gains += int(np.count_nonzero(moved.fits & (moved.throughput_speedup > 1)))
        self.not_faster += int(np.count_nonzero(~(moved.fits & (moved.speedup > 1))))

    def result(self) -> Assumption:
        means = {part: tally.mean for part, tally in self.parts.items()}
        # The study's three parts: computing and memory access are one.
        three = {"input": means["input"], "computation": means["compute"] + means["memory"],
                 "communication": means["communication"]}  # fmt: skip
        largest = max(three, key=lambda part: three[part])
        ps_jobs = max(1, self.ps_jobs)
        return Assumption(
            overlap=str(self.overlap),
            compute_efficiency=self.compute,
            comm_efficiency=self.comm,
            comm_share_by_cnode=means["communication"],
            largest_part=largest,
            ps_comm_share=self.ps_comm.mean,
            ps_over_80=self.over_80 / ps_jobs,
            gain_share=self.gains / ps_jobs,
            not_faster_per_cnode=self.not_faster / ps_jobs,
            holds=largest == "communication",
        )


def study_assumptions(source: str, hardware: Hardware, *, input_sharing: int | None = None) -> AssumptionStudy:
    """Every combination of overlap, compute and communication efficiency on one reading of the table.

    Raises ``UsageError`` under ``calibrated``, whose efficiencies are not free.
    """
    if hardware.profile is not Profile.PAPER:
        raise UsageError("--sensitivity varies the efficiencies that --profile calibrated takes from data; use paper")
    table = open_jobs(source)
    base = utilisation(hardware.cluster)

    def at(compute: float, comm: float) -> Hardware:
        cluster = at_efficiency(hardware.cluster, compute, comm, hardware.precision)
        return hardware_of(cluster, precision=hardware.precision)

    cases = [
        _Case(overlap, compute, comm, at(compute, comm))
        for overlap, compute, comm in product(
            (Overlap.NONE, Overlap.IDEAL),
            sorted({*COMPUTE_EFFICIENCIES, base}),
            sorted({*COMM_EFFICIENCIES, base}),
        )
    ]
    jobs_seen, cnodes = 0, 0.0
    for _, jobs in table.blocks(hardware.cluster):
        jobs_seen += len(jobs)
        cnodes += float(jobs.cnodes.sum())
        for kind, _, some in jobs.by_kind():
            for case in cases:
                case.add(some, kind, input_sharing)
    return AssumptionStudy(
        graphcost_version=__version__,
        command="fleet sweep --sensitivity",
        table=source_of(table, jobs_seen, cnodes),
        hardware=hardware_info(hardware, input_sharing),
        conclusion=CONCLUSION,
        assumptions=tuple(case.result() for case in cases),
    )
