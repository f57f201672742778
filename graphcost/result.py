"""The result of one analysis: frozen values with the JSON contract's names.

``Analysis.to_dict()`` is the JSON of ``graphcost analyze --format json``; the schema
ships as ``graphcost/report/analysis.schema.json``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from graphcost.bill import BillInfo
from graphcost.counts import GraphInfo, TrainingInfo
from graphcost.engine.roofs import Roof
from graphcost.predict import Slice, StepTime, slices_of
from graphcost.training import Gradient, Moment

if TYPE_CHECKING:
    import pandas as pd

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What was read, and with which sizes."""

    source: str
    name: str
    format: str
    inputs: Mapping[str, Mapping[str, Any]]
    bindings: Mapping[str, int]
    batch_source: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InputInfo:
    """Seconds of each stage of the input pipeline for one step; None: nothing was said about it."""

    read_s: float | None
    decode_s: float | None
    copy_s: float
    prefetched: bool


@dataclass(frozen=True, slots=True)
class PlacementInfo:
    """Where it runs. ``cluster_source``: option, or the default that nobody chose."""

    arch: str
    gpus: int
    servers: int
    ps: int
    cluster: str
    cluster_source: str
    device: str
    batch_per_gpu: int | None
    global_batch: int | None
    profile: str
    execution: str
    overlap: str
    buckets: str
    accumulate: int


@dataclass(frozen=True, slots=True)
class StepInfo:
    """The predicted step; ``input_s + compute_s + memory_s + host_s + exposed_comm_s = step_s``.

    ``forward_s + backward_s + update_s = compute_s + memory_s + host_s``; None under ``paper``.
    ``step_low_s`` to ``step_high_s`` is an 80 % interval, on the grounds that ``interval_evidence`` names.
    """

    step_s: float
    step_low_s: float
    step_high_s: float
    interval_evidence: str
    input_s: float
    compute_s: float
    memory_s: float
    host_s: float
    comm_s: float
    exposed_comm_s: float
    hidden_comm_s: float
    forward_s: float | None
    backward_s: float | None
    update_s: float | None
    input_stages: InputInfo | None
    comm_share: float
    comm_share_low: float
    comm_share_high: float
    max_comm_share: float
    comm_share_at_batch_32: float | None
    bound: str
    verdict: str
    flagged: bool
    reason: str
    samples_per_s: float | None
    scaling_efficiency: float


@dataclass(frozen=True, slots=True)
class MessageInfo:
    """Communication of one kind over one link.

    ``formula``: how ``time_s`` was counted; ``source``: where its constants are from.
    """

    what: str
    link: str
    kind: str
    bytes: float
    time_s: float
    exposed_s: float
    formula: str
    source: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Something a reader must know: rule, level (error, warning, note), message, where."""

    rule: str
    level: str
    message: str
    where: str


@dataclass(frozen=True, slots=True)
class OpInfo:
    """One operator over the whole step: forward costs, and times of both passes."""

    id: str
    name: str
    op_type: str
    op_class: str
    module: str
    origin: str
    repeat: int
    counted: bool
    matmul_flops: int
    elementwise_flops: int
    read_bytes: int
    write_bytes: int
    backward_flops: int
    backward_bytes: int
    params: int
    forward_s: float | None
    backward_s: float | None
    time_s: float | None
    bound: str
    efficiency: float | None
    efficiency_source: str


@dataclass(frozen=True, slots=True)
class Details:
    """What pictures draw beside the figures. ``memory`` and ``architectures`` are None where nobody asked for them.

    ``gradients``: what is sent, by parameter. ``memory``: the step moment by moment.
    ``architectures``: the same model under every architecture, fastest first;
    ``refused``: those that the placement cannot hold, with the reason.
    """

    device: str
    mem_bytes: float
    mem_bytes_per_s: float
    roofs: tuple[Roof, ...]
    gradients: tuple[Gradient, ...]
    memory: tuple[Moment, ...] | None = None
    architectures: tuple[Analysis, ...] | None = None
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Analysis:
    """Everything that ``graphcost analyze`` says about one model."""

    graphcost_version: str
    command: str
    model: ModelInfo
    graph: GraphInfo
    training: TrainingInfo
    placement: PlacementInfo
    step: StepInfo
    communication: tuple[MessageInfo, ...]
    bill: BillInfo
    findings: tuple[Finding, ...]
    ops: tuple[OpInfo, ...]
    symbolic: Mapping[str, Any] | None = None
    max_batch: int | None = None
    predicted: StepTime | None = field(default=None, repr=False)
    details: Details | None = field(default=None, repr=False)

    @property
    def timeline(self) -> tuple[Slice, ...]:
        """The step as slices on lanes, made when asked for; empty under ``paper``."""
        return slices_of(self.predicted) if self.predicted is not None else ()

    def to_dict(self, *, per_op: bool = False) -> dict[str, Any]:
        """Plain data with the JSON contract's keys; ``ops`` with ``per_op``, nothing that was not asked for."""
        data: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            **asdict(replace(self, ops=self.ops if per_op else (), predicted=None, details=None)),
        }
        del data["predicted"], data["details"]
        if not per_op:
            del data["ops"]
        if self.max_batch is None:
            del data["max_batch"]
        if self.symbolic is None:
            del data["symbolic"]
        return plain(data)  # type: ignore[no-any-return]

    def to_json(self, *, per_op: bool = False, indent: int | None = 2) -> str:
        """``to_dict`` as JSON text."""
        return json.dumps(self.to_dict(per_op=per_op), indent=indent, allow_nan=False)

    def to_dataframe(self) -> pd.DataFrame:
        """One row per operator. Needs pandas (extra ``graphcost[dataframe]``)."""
        import pandas as pd

        return pd.DataFrame([asdict(op) for op in self.ops])

    def report(self, form: str = "text") -> str:
        """The report in one of ``graphcost.report.FORMATS``."""
        from graphcost.report import render  # reports sit above results; only this method asks for one

        return render([self], form)

    def _repr_html_(self) -> str:
        from graphcost.report import fragment

        return fragment(self)


def plain(value: Any) -> Any:
    """Dataclasses as mappings and tuples as lists, for a stable JSON round trip."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value
