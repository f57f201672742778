"""What an architecture is: how weights move for a step, and where that is possible.

An architecture answers three questions: can this placement hold it (``check``), what
does PAI's framework charge (``paper_traffic``), and which exchanges does a real step
make (``exchanges``). It sees the step's plan and the placement, never the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from graphcost.engine.paper import Medium
from graphcost.engine.timeline import Bucketing
from graphcost.errors import PlacementError
from graphcost.hardware import Cluster
from graphcost.ir import Phase
from graphcost.registry import Registry
from graphcost.training import Gradient, StepPlan


class PsStyle(StrEnum):
    """Implementations of parameter servers, which differ more than the networks they run on."""

    BYTEPS = "byteps"  # summed inside each server, 4 MB partitions over as many CPU servers
    GRPC = "grpc"  # TensorFlow's parameter_server: every GPU by itself, variables whole on one server
    TF_LOCAL = "tf-local"  # TensorFlow with local sums, variables spread over the workers
    MXNET = "mxnet"  # kvstore device: summed on one GPU of each server

    @property
    def says_where(self) -> bool:
        """Whether its variables may lie on CPUs or on GPUs; BytePS sums on CPUs, MXNet's ``device`` on GPUs."""
        return self in (PsStyle.GRPC, PsStyle.TF_LOCAL)

    @property
    def always_colocated(self) -> bool:
        """Whether its variables are on the workers' servers in any case."""
        return self in (PsStyle.TF_LOCAL, PsStyle.MXNET)


class PsOn(StrEnum):
    """What holds the variables of parameter servers."""

    CPU = "cpu"  # the memory of hosts
    GPU = "gpu"  # GPUs of those hosts


@dataclass(frozen=True, slots=True)
class Placement:
    """GPUs of a job on servers of a cluster. ``ps`` parameter servers, 0 where there are none.

    ``ps_style``: whose parameter servers. ``gather_rows``: AllReduce sends tables marked
    sparse as rows that every GPU gathers, as Horovod does with IndexedSlices. ``ps_colocated``:
    parameter servers are processes on the workers' servers and share their network. ``asynchronous``:
    worker servers go on without waiting for each other. ``ps_on``: what holds the variables.
    """

    gpus: int
    servers: int
    ps: int
    cluster: Cluster
    ps_style: PsStyle = PsStyle.BYTEPS
    gather_rows: bool = False
    ps_colocated: bool = False
    asynchronous: bool = False
    ps_on: PsOn = PsOn.CPU

    @property
    def gpus_per_server(self) -> int:
        """GPUs on the fullest server."""
        return -(-self.gpus // self.servers)


@dataclass(frozen=True, slots=True)
class PaperTraffic:
    """S_w of one kind of message, and the media it crosses one after another. ``rows``: of embedding tables."""

    what: str
    weight_bytes: float
    media: tuple[Medium, ...]
    rows: bool = False


Payload = tuple[tuple[float, int], ...]
"""Gradients as sent: bytes, and the position in the backward list after which they are ready."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One kind of message of a real step.

    ``payload``: what one replica sends, ``(bytes, ready_index)`` in order of readiness.
    ``seconds``: time of sending so many bytes of it. ``hides``: whether it can run beside
    the backward pass, gradient by gradient. ``interference``: share of hidden time that
    still costs (SMs, PCIe, late starts).
    ``needed_in``: the payload's positions are those of this phase's operators that wait for it
    (weights gathered ahead of their use); None: of the backward operators that make it.
    ``trips``: sent so many times a step. ``queue``: exchanges of one name take turns.
    ``wire_bytes``: bytes that a GPU sends for all of it, one direction. ``formula`` and
    ``source``: how ``seconds`` counts, and where its constants are from. ``bucketing``:
    how the sender groups gradients, where that is not the training framework's choice.
    ``spread``: exposed time lies between 1/(1 + s) and (1 + s) of the prediction.
    """

    what: str
    link: str
    kind: str
    payload: Payload
    wire_bytes: float
    seconds: Callable[[float], float]
    hides: bool
    interference: float
    formula: str = ""
    source: str = ""
    bucketing: Bucketing | None = None
    spread: float = 0.0
    needed_in: Phase | None = None
    trips: int = 1
    queue: str = ""

    @property
    def size_bytes(self) -> float:
        """All of the payload."""
        return sum(part_bytes for part_bytes, _ in self.payload)


def dense_payload(gradients: Iterable[Gradient]) -> Payload:
    """Gradients sent whole, tables too."""
    return tuple((float(gradient.bytes), gradient.ready_index) for gradient in gradients)


class Architecture(Protocol):
    """An entry of ``ARCHITECTURES``."""

    name: str
    title: str

    def check(self, placement: Placement) -> None:
        """Raise ``PlacementError`` where the placement cannot hold this architecture."""

    def paper_traffic(self, plan: StepPlan, placement: Placement) -> tuple[PaperTraffic, ...]:
        """Weight traffic as PAI's framework charges it."""

    def paper_media(self, placement: Placement) -> tuple[Medium, ...]:
        """The media of Table II."""

    def paper_input_sharing(self, placement: Placement) -> int:
        """cNodes that contend for one PCIe when inputs are copied, by default."""

    def local_plan(self, plan: StepPlan, placement: Placement) -> StepPlan:
        """What one GPU runs and holds of ``plan``."""

    def host_s(self, once: Mapping[Phase, float], plan: StepPlan, placement: Placement) -> Mapping[Phase, float]:
        """Host seconds of each phase of a micro-batch, from those of launching ``plan`` once."""

    def exchanges(self, plan: StepPlan, placement: Placement) -> tuple[Exchange, ...]:
        """What a step sends under the ``calibrated`` profile."""

    def buffer_bytes(self, plan: StepPlan, placement: Placement) -> int:
        """Device memory that the exchanges hold throughout, beside gradients and weights."""


class ProcessPerGpu:
    """Every GPU has a process of its own, which launches what that GPU runs."""

    def host_s(self, once: Mapping[Phase, float], plan: StepPlan, placement: Placement) -> Mapping[Phase, float]:
        """As for one GPU."""
        return once


class Replicated(ProcessPerGpu):
    """Every GPU runs and holds all of it."""

    def local_plan(self, plan: StepPlan, placement: Placement) -> StepPlan:
        """The plan as it is."""
        return plan


class InOneServer(Replicated):
    """Replicas of one server, whose GPUs copy their inputs at the same time."""

    name: str

    def check(self, placement: Placement) -> None:
        """One server only."""
        if placement.servers > 1:
            raise PlacementError(
                f"architecture {self.name!r} runs inside one server, and {placement.gpus} GPUs need "
                f"{placement.servers} of {placement.cluster.id} ({placement.cluster.server.gpus} GPUs each); use at "
                f"most {placement.cluster.server.gpus} GPUs, or --arch allreduce or ps"
            )

    def paper_input_sharing(self, placement: Placement) -> int:
        """All GPUs of the server."""
        return placement.gpus


ARCHITECTURES: Registry[Architecture] = Registry("architecture", "graphcost analyze --help lists them")
