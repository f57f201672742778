"""Results of the fleet commands: frozen, the names are those of the JSON. Shares lie in 0..1, times are seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class HardwareInfo:
    """What the jobs are taken to run on. ``input_sharing``: most cNodes that contend for one PCIe (null: all)."""

    cluster: str
    device: str
    profile: str
    precision: str
    input_sharing: int | None
    network_bytes_per_s: float
    nvlink_bytes_per_s: float | None
    pcie_bytes_per_s: float
    mem_bytes_per_s: float
    peak_flops_per_s: float
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """The table. ``synthetic``: what a generated table says about itself; ``example``: what one says that a rule
    made from a cluster's trace. Null for any other.
    """

    file: str
    synthetic: str | None
    example: str | None
    jobs: int
    cnodes: float

    @property
    def mark(self) -> str | None:
        """What everything made from the table has to say of it."""
        return self.synthetic or self.example


@dataclass(frozen=True, slots=True)
class PartStats:
    """One part's share of the step: mean, share of the weight over 0.5 and over 0.8, quantiles at ``levels``."""

    mean: float
    over_50: float
    over_80: float
    quantiles: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The step's parts under one weighting."""

    input: PartStats
    compute: PartStats
    memory: PartStats
    communication: PartStats


@dataclass(frozen=True, slots=True)
class SizeCount:
    """Jobs with at most so many cNodes, and the cNodes of those."""

    at_most: int
    jobs: int
    cnodes: float


@dataclass(frozen=True, slots=True)
class TypeStats:
    """Jobs of one workload type. ``by_job`` counts every job once, ``by_cnode`` by its cNodes.

    ``by_gpu_hour``: null without that column. ``bound``: jobs by their largest part.
    ``idle``: jobs whose step takes no time. ``models_*``: of jobs whose table says the model's size.
    """

    type: str
    arch: str
    jobs: int
    job_share: float
    cnodes: float
    cnode_share: float
    gpu_hour_share: float | None
    by_job: Breakdown
    by_cnode: Breakdown
    by_gpu_hour: Breakdown | None
    bound: Mapping[str, int]
    idle: int
    sizes: tuple[SizeCount, ...]
    models_known: int
    models_under_10gb: int


@dataclass(frozen=True, slots=True)
class Target:
    """A published figure against this run. ``use``: ``fitted`` or ``held-out``; ``tag``: what the figure is worth.

    ``relation``: ``about``, ``at least``, ``over`` or ``first``; ``met``: within ``tolerance``, where there is one.
    """

    name: str
    what: str
    use: str
    relation: str
    value: float | str
    got: float | str
    tolerance: float | None
    met: bool
    tag: str
    source: str


@dataclass(frozen=True, slots=True)
class Characterization:
    """``graphcost fleet characterize``. ``levels``: of all quantiles."""

    graphcost_version: str
    command: str
    table: Source
    hardware: HardwareInfo
    levels: tuple[float, ...]
    types: tuple[TypeStats, ...]
    overall: TypeStats
    targets: tuple[Target, ...] = ()


@dataclass(frozen=True, slots=True)
class TargetArch:
    """PS/Worker jobs moved to one architecture. ``fits``: jobs whose replica fits in device memory.

    ``unstated``: jobs whose model size the table does not say; what their step moves is taken
    for it, a lower bound. Means and quantiles are over the jobs that fit; shares over all
    PS/Worker jobs; ``parts_*``: mean shares of the step's parts; ``reasons``: jobs by reason.
    """

    to: str
    jobs: int
    fits: int
    unstated: int
    faster_per_cnode: int
    gains_throughput: int
    gain_share: float
    gain_share_of_fitting: float
    mean_speedup: float
    mean_throughput_speedup: float
    speedup_quantiles: tuple[float, ...]
    throughput_speedup_quantiles: tuple[float, ...]
    comm_share_before: float
    comm_share_after: float
    input_share_after: float
    parts_before: Mapping[str, float]
    parts_after: Mapping[str, float]
    reasons: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Projection:
    """``graphcost fleet project``. ``best``: PS/Worker jobs by the architecture with the highest throughput.

    ``local_losers_helped_by_cluster``: of jobs without more throughput on AllReduce-Local, the share that has more on
    AllReduce-Cluster.
    """

    graphcost_version: str
    command: str
    table: Source
    hardware: HardwareInfo
    levels: tuple[float, ...]
    ps_jobs: int
    other_jobs: int
    targets: tuple[TargetArch, ...]
    best: Mapping[str, int]
    best_mean_throughput_speedup: float
    local_losers_helped_by_cluster: float


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """Mean speed-up over the base cluster at some rates; null where a rate is the cluster's own."""

    network_bytes_per_s: float | None
    pcie_bytes_per_s: float | None
    peak_flops_per_s: float | None
    mem_bytes_per_s: float | None
    varied: tuple[str, ...]
    by_job: Mapping[str, float]
    by_cnode: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """One type's resources, most sensitive first, by the mean speed-up at the largest candidate."""

    type: str
    order: tuple[str, ...]
    speedup_at_largest: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Sweep:
    """``graphcost fleet sweep``. ``ethernet_speedup``: mean over PS/Worker jobs from 25 to 100 Gb/s."""

    graphcost_version: str
    command: str
    table: Source
    hardware: HardwareInfo
    candidates_source: str
    single: tuple[SweepPoint, ...]
    combined: tuple[SweepPoint, ...]
    sensitivity: tuple[Sensitivity, ...]
    ethernet_speedup: float | None
    ethernet_cap: float


@dataclass(frozen=True, slots=True)
class Assumption:
    """One assumption about overlap and efficiencies, and what the study's conclusions become under it."""

    overlap: str
    compute_efficiency: float
    comm_efficiency: float
    comm_share_by_cnode: float
    largest_part: str
    ps_comm_share: float
    ps_over_80: float
    gain_share: float
    not_faster_per_cnode: float
    holds: bool


@dataclass(frozen=True, slots=True)
class AssumptionStudy:
    """``graphcost fleet sweep --sensitivity``. A conclusion holds where communication is the largest part by cNode.

    ``gain_share``: PS/Worker jobs with more throughput on AllReduce-Local.
    """

    graphcost_version: str
    command: str
    table: Source
    hardware: HardwareInfo
    conclusion: str
    assumptions: tuple[Assumption, ...]
