"""Energy and money of a step: board power over its parts, and the hourly price of what is rented."""

from __future__ import annotations

from dataclasses import dataclass

from graphcost.arch import Placement
from graphcost.bill import BillInfo, CostInfo, EnergyInfo
from graphcost.engine.power import power_model
from graphcost.placing import AnalysisOptions, Choice
from graphcost.predict import StepTime
from graphcost.units import JOULES_PER_KWH, MILLION, S_PER_HOUR


def bill_of(step: StepTime, choice: Choice, options: AnalysisOptions, samples: int | None) -> BillInfo:
    """What a step of ``samples`` samples takes; None for what no file tells, with the reason.

    Both intervals are the step's: power and price are taken as they are.
    """
    place = choice.placement
    energy = _energy(step, place, samples)
    cost = _cost(step, place, options.price_per_gpu_hour_usd, samples)
    unknown = []
    if energy is None:
        unknown.append(f"energy: {place.cluster.device.id} has no board power (tdp_w)")
    if cost is None:
        other = f" with {options.device}" if options.device is not None else ""
        unknown.append(f"cost: {place.cluster.id}{other} has no price; --price-per-gpu-hour gives one")
    if place.ps:
        unknown.append("hosts of parameter servers are neither in energy nor in cost")
    return BillInfo(energy, cost, tuple(unknown))


@dataclass(frozen=True, slots=True)
class _Rate:
    """An amount per second, spread over the step's interval, and over a million samples."""

    per_s: float
    step: StepTime
    samples: int | None

    def of_step(self) -> tuple[float, float, float]:
        return (self.per_s * self.step.step_s, self.per_s * self.step.step_low_s, self.per_s * self.step.step_high_s)

    def of_million(self) -> tuple[float | None, float | None, float | None]:
        if not self.samples:
            return (None, None, None)
        best, low, high = (one / self.samples * MILLION for one in self.of_step())
        return (best, low, high)


def _energy(step: StepTime, place: Placement, samples: int | None) -> EnergyInfo | None:
    """A server's own draw follows its GPUs' (assumed), and belongs to the job by its share of them."""
    device, server = place.cluster.device, place.cluster.server
    if device.tdp_w is None:
        return None
    model = power_model()
    busy_s = step.compute_s + step.memory_s
    share = model.mean_share(busy_s, step.step_s - busy_s)
    gpus_w = share * device.tdp_w * place.gpus
    mean_w = gpus_w + share * (server.overhead_w or 0.0) / server.gpus * place.gpus
    return EnergyInfo(
        *_Rate(mean_w, step, samples).of_step(),
        *_Rate(mean_w / JOULES_PER_KWH, step, samples).of_million(),
        gpu_kwh_per_million_samples=_Rate(gpus_w / JOULES_PER_KWH, step, samples).of_million()[0],
        mean_power_w=mean_w,
        board_power_w=device.tdp_w,
        power_share=share,
        scope="GPUs alone" if server.overhead_w is None else "GPUs and servers",
        source=model.source,
    )


def _cost(step: StepTime, place: Placement, per_gpu_hour_usd: float | None, samples: int | None) -> CostInfo | None:
    """Servers are rented whole; a price per GPU is paid for the job's GPUs alone."""
    listed = place.cluster.price
    date: str | None = None
    if per_gpu_hour_usd is not None:
        per_hour, source = per_gpu_hour_usd * place.gpus, "--price-per-gpu-hour"
        scope = f"{place.gpus} GPU{'' if place.gpus == 1 else 's'}"
    elif listed is not None:
        per_hour, source, date = listed.usd_per_hour * place.servers, listed.source, listed.date
        scope = f"{place.servers} whole server{'' if place.servers == 1 else 's'}"
    else:
        return None
    rate = _Rate(per_hour / S_PER_HOUR, step, samples)
    return CostInfo(*rate.of_step(), *rate.of_million(), usd_per_hour=per_hour, scope=scope, source=source, date=date)
