"""What ``graphcost advise`` says: frozen values with the JSON's names (``report/advice.schema.json``)."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from graphcost.result import SCHEMA_VERSION, Analysis, ModelInfo, PlacementInfo


@dataclass(frozen=True, slots=True)
class OutcomeInfo:
    """A predicted step: what ``analyze`` prints under the same options."""

    step_s: float
    step_low_s: float
    step_high_s: float
    exposed_comm_s: float
    comm_share: float
    comm_share_low: float
    comm_share_high: float
    verdict: str
    bound: str
    samples_per_s: float | None
    gpus: int
    servers: int
    batch_per_gpu: int | None
    global_batch: int | None
    peak_bytes: int
    fits: bool


@dataclass(frozen=True, slots=True)
class AdviceInfo:
    """A change and what it does. ``options``: the options that make it, beside those given.

    ``effort`` and ``size``: the order of the list; size is the logarithm of a change's ratio, 0 where
    it has none. ``throughput_speedup``: samples per second over the base's. ``objections``: why a
    change is not recommended. ``caution``: what else it changes.
    """

    kinds: tuple[str, ...]
    effort: str
    size: float
    what: str
    options: str
    why: str
    caution: str | None
    recommended: bool
    objections: tuple[str, ...]
    throughput_speedup: float
    outcome: OutcomeInfo


@dataclass(frozen=True, slots=True)
class SideInfo:
    """One side of a border: a value in base units, as text, and what the whole analysis says there."""

    value: float
    text: str
    comm_share: float
    comm_share_low: float
    comm_share_high: float
    verdict: str


@dataclass(frozen=True, slots=True)
class BorderInfo:
    """Two neighbouring values, one under the limit and one over it.

    Rates are told to three digits, so that neighbours differ in the last one; counts by one.
    """

    under: SideInfo
    over: SideInfo


@dataclass(frozen=True, slots=True)
class BreakEvenInfo:
    """Where the verdict turns along one resource, everything else as it is.

    ``clear``: the border of the verdict *clear*, interval included. ``even``: the border of the predicted
    share alone. None: not crossed in this ``direction`` (up, down) up to ``end``. ``turns``: how often the
    verdict turned over the values tried.
    """

    resource: str
    title: str
    now: float | None
    now_text: str
    direction: str
    clear: BorderInfo | None
    even: BorderInfo | None
    end: SideInfo
    turns: int
    note: str | None


@dataclass(frozen=True, slots=True)
class RefusedInfo:
    """A change that could not be tried, and the reason."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True)
class Advising:
    """Everything that ``graphcost advise`` says about one model.

    ``advice``: what takes it under the limit, least effort first; empty for a model that is clear already.
    ``rejected``: changes that lower the share and are not advised, each with its objections.
    """

    graphcost_version: str
    command: str
    model: ModelInfo
    placement: PlacementInfo
    precision: str
    master_weights: bool
    max_comm_share: float
    verdict: str
    flagged: bool
    reason: str
    base: OutcomeInfo
    advice: tuple[AdviceInfo, ...]
    rejected: tuple[AdviceInfo, ...]
    nearest_miss: AdviceInfo | None
    break_evens: tuple[BreakEvenInfo, ...]
    refused: tuple[RefusedInfo, ...]
    notes: tuple[str, ...]
    analysis: Analysis | None = field(default=None, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain data with the JSON's keys."""
        data = {"schema_version": SCHEMA_VERSION, **asdict(replace(self, analysis=None))}
        del data["analysis"]
        plain: dict[str, Any] = json.loads(json.dumps(data, allow_nan=False))
        return plain

    def to_json(self, *, indent: int | None = 2) -> str:
        """``to_dict`` as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)
