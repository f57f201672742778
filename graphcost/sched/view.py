"""What a scheduler sees and what it answers. Nothing is hidden: no clock, no files, no graph; the seed is passed in.

CPUs and GPUs are counted in thousandths, as Kubernetes does, so that sums of fractions are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

MILLI = 1000


@dataclass(frozen=True, slots=True)
class Resources:
    """CPU cores and GPUs, in thousandths."""

    cpu_milli: int
    gpu_milli: int

    @classmethod
    def of(cls, cpus: float, gpus: float) -> Resources:
        """From whole cores and GPUs.

        >>> Resources.of(2, 0.5)
        Resources(cpu_milli=2000, gpu_milli=500)
        """
        return cls(round(cpus * MILLI), round(gpus * MILLI))

    @classmethod
    def total(cls, parts: Iterable[Resources]) -> Resources:
        """The sum of ``parts``."""
        listed = list(parts)
        return cls(sum(part.cpu_milli for part in listed), sum(part.gpu_milli for part in listed))

    def __add__(self, other: Resources) -> Resources:
        return Resources(self.cpu_milli + other.cpu_milli, self.gpu_milli + other.gpu_milli)

    def __mul__(self, count: int) -> Resources:
        return Resources(self.cpu_milli * count, self.gpu_milli * count)

    def fits_in(self, other: Resources) -> bool:
        """Whether both resources are there."""
        return self.cpu_milli <= other.cpu_milli and self.gpu_milli <= other.gpu_milli

    def dominant_share(self, capacity: Resources) -> float:
        """The largest share of any resource of ``capacity`` (Ghodsi et al., NSDI'11)."""
        parts = ((self.cpu_milli, capacity.cpu_milli), (self.gpu_milli, capacity.gpu_milli))
        return max((used / there for used, there in parts if there), default=0.0)

    def __str__(self) -> str:
        return f"{self.cpu_milli / MILLI:g} CPUs and {self.gpu_milli / MILLI:g} GPUs"


NOTHING = Resources(0, 0)


class Speed(Protocol):
    """Exact speed of one job: epochs per second with so many workers and parameter servers."""

    def __call__(self, workers: int, ps: int, /) -> float:
        """Epochs per second."""
        ...


class Tasked(Protocol):
    """A model as trained: what one worker takes, and one parameter server (None: it trains by AllReduce)."""

    @property
    def worker(self) -> Resources:
        """Of one worker."""
        ...

    @property
    def ps(self) -> Resources | None:
        """Of one server."""
        ...


@dataclass(frozen=True, slots=True)
class Observation:
    """Jobs of one model were seen ``count`` times with these tasks at ``samples_per_s`` on average."""

    workers: int
    ps: int
    samples_per_s: float
    count: int = 1


@dataclass(frozen=True, slots=True)
class JobView:
    """One unfinished job.

    ``order``: rank by arrival. ``remaining_epochs`` is the user's estimate where the simulation
    disturbs it. ``ps``: demand of one parameter server; None: the job trains by AllReduce.
    ``requested_*``: what the user asked for; ``max_*``: what the job may get; ``current_*``: what
    it held in the last slot. ``batch``: samples of a step, of one worker where ``batch_grows``.
    ``noise_scale``: gradient noise scale in samples; None: progress does not depend on the batch.
    ``speed`` is there only for schedulers that declare ``Knowledge.EXACT``.
    """

    job_id: str
    order: int
    model: str
    waited_slots: float
    epochs: float
    remaining_epochs: float
    samples_per_epoch: float
    batch: float
    worker: Resources
    ps: Resources | None
    max_workers: int
    max_ps: int
    requested_workers: int
    requested_ps: int
    current_workers: int = 0
    current_ps: int = 0
    batch_grows: bool = False
    noise_scale: float | None = None
    speed: Speed | None = field(default=None, repr=False)

    @property
    def bundle_ps(self) -> int:
        """Parameter servers in the smallest set of tasks that makes progress."""
        return 0 if self.ps is None else 1

    def demand(self, workers: int, ps: int) -> Resources:
        """What so many tasks take."""
        taken = self.worker * workers
        return taken if self.ps is None else taken + self.ps * ps

    def efficiency(self, workers: int) -> float:
        """Progress of a sample against one at the batch of a single worker: (noise + M0) / (noise + M).

        Source: Pollux (Qiao et al., OSDI'21), statistical efficiency.
        """
        if self.noise_scale is None or not self.batch_grows:
            return 1.0
        return (self.noise_scale + self.batch) / (self.noise_scale + self.batch * workers)


@dataclass(frozen=True, slots=True)
class SlotView:
    """The cluster at the start of a slot: empty nodes, unfinished jobs by arrival, what was measured so far.

    ``observations``: model -> measured speeds; only for schedulers that declare
    ``Knowledge.SAMPLES``. ``capacity`` is the sum of ``nodes``.
    """

    slot: int
    slot_s: float
    nodes: tuple[Resources, ...]
    capacity: Resources
    jobs: tuple[JobView, ...]
    observations: Mapping[str, tuple[Observation, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tasks:
    """Tasks of one job on one node."""

    node: int
    workers: int
    ps: int


@dataclass(frozen=True, slots=True)
class Grant:
    """What one job gets for the slot, and where."""

    job_id: str
    tasks: tuple[Tasks, ...]

    @property
    def workers(self) -> int:
        """All workers."""
        return sum(group.workers for group in self.tasks)

    @property
    def ps(self) -> int:
        """All parameter servers."""
        return sum(group.ps for group in self.tasks)


@dataclass(frozen=True, slots=True)
class Increment:
    """One step of a scheduler's filling: what it added to which job. Labels for a learner."""

    job_id: str
    workers: int
    ps: int


@dataclass(frozen=True, slots=True)
class Decision:
    """A scheduler's answer: the grants, and the increments that led to them in their order."""

    grants: tuple[Grant, ...]
    increments: Sequence[Increment] = ()
