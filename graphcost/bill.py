"""What an analysis says about energy and money, with the JSON contract's names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EnergyInfo:
    """Energy of a step over all GPUs, and of a million samples; the interval is the step's alone.

    ``board_power_w``: of one GPU; ``power_share`` of it is drawn in the mean, assumed as ``source`` says.
    ``scope``: whether servers are in it; ``gpu_kwh_per_million_samples`` is without them.
    """

    energy_j: float
    energy_low_j: float
    energy_high_j: float
    kwh_per_million_samples: float | None
    kwh_per_million_samples_low: float | None
    kwh_per_million_samples_high: float | None
    gpu_kwh_per_million_samples: float | None
    mean_power_w: float
    board_power_w: float
    power_share: float
    scope: str
    source: str


@dataclass(frozen=True, slots=True)
class CostInfo:
    """US dollars for a step of all GPUs, and for a million samples; the interval is the step's alone.

    ``usd_per_hour``: of the whole job, for what ``scope`` says, by ``source`` of ``date``.
    """

    cost_usd: float
    cost_low_usd: float
    cost_high_usd: float
    usd_per_million_samples: float | None
    usd_per_million_samples_low: float | None
    usd_per_million_samples_high: float | None
    usd_per_hour: float
    scope: str
    source: str
    date: str | None


@dataclass(frozen=True, slots=True)
class BillInfo:
    """Energy and cost, None where nobody told power or price; ``unknown``: what is missing, and why."""

    energy: EnergyInfo | None
    cost: CostInfo | None
    unknown: tuple[str, ...]
