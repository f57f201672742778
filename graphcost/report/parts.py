"""The step's parts and phases as every report names them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

from graphcost.result import Analysis
from graphcost.units import format_bytes, format_joules, format_kwh, format_seconds, format_share, format_usd

VERDICTS = {"flagged": "FLAGGED", "clear": "CLEAR", "too-close": "TOO CLOSE"}
"""As reports shout them."""

_PHASES = {"forward": "forward pass", "backward": "backward pass", "update": "update"}


def precision_text(precision: str, master_weights: bool) -> str:
    """The precision, and whether fp32 copies are updated: ``bf16 over fp32 masters``."""
    return f"{precision} over fp32 masters" if master_weights else precision


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the step; all of them add up to it. ``note``: what runs beside it."""

    name: str
    seconds: float
    share: float
    note: str = ""


def parts_of(r: Analysis) -> tuple[Part, ...]:
    """Compute, memory, host, input, communication."""
    step = r.step
    named = (
        ("compute", step.compute_s, ""),
        ("memory", step.memory_s, ""),
        ("host", step.host_s, ""),
        ("input", step.input_s, _input_note(r)),
        ("communication", step.exposed_comm_s, _hidden_note(r)),
    )
    return tuple(Part(name, s, s / step.step_s if step.step_s else 0.0, note) for name, s, note in named)


def phases_of(r: Analysis) -> tuple[tuple[str, float], ...]:
    """Forward, backward, update; nothing under ``paper``, which has no phases."""
    step = r.step
    if step.forward_s is None or step.backward_s is None or step.update_s is None:
        return ()
    return (("forward", step.forward_s), ("backward", step.backward_s), ("update", step.update_s))


def memory_line(r: Analysis) -> str:
    """The peak, whether it fits, and what it is made of."""
    memory = r.training.memory
    fits = "fits" if memory.fits else "DOES NOT FIT"
    return (
        f"memory {format_bytes(memory.peak_bytes)} ({fits}): weights {format_bytes(memory.weights_bytes)}, "
        f"gradients {format_bytes(memory.gradients_bytes)}, optimizer {format_bytes(memory.optimizer_bytes)}, "
        f"activations {format_bytes(memory.activations_bytes)}, buffers {format_bytes(memory.buffers_bytes)}, "
        f"communication {format_bytes(memory.bucket_bytes)}; the peak is in the {_PHASES[memory.peak_phase]}"
    )


def bill_lines(r: Analysis) -> tuple[str, ...]:
    """Energy and cost of a step, one line each, and what is not known of them."""
    lines = []
    energy, cost = r.bill.energy, r.bill.cost
    if energy is not None:
        per_million = _per_million(
            format_kwh,
            energy.kwh_per_million_samples,
            energy.kwh_per_million_samples_low,
            energy.kwh_per_million_samples_high,
        )
        lines.append(
            f"energy {format_joules(energy.energy_j)} a step{per_million}: {energy.scope}, "
            f"{format_share(energy.power_share)} of board power (assumed shares)"
        )
    if cost is not None:
        per_million = _per_million(
            format_usd,
            cost.usd_per_million_samples,
            cost.usd_per_million_samples_low,
            cost.usd_per_million_samples_high,
        )
        source = f"price of {cost.date}" if cost.date is not None else cost.source
        lines.append(
            f"cost {format_usd(cost.cost_usd)} a step{per_million}: {cost.scope} at "
            f"{format_usd(cost.usd_per_hour)} an hour, {source}{' (recalled)' if 'recalled' in cost.source else ''}"
        )
    return (*lines, *(f"not known: {reason}" for reason in r.bill.unknown))


BILL_COLUMNS = (
    "energy_j", "energy_low_j", "energy_high_j",
    "kwh_per_million_samples", "kwh_per_million_samples_low", "kwh_per_million_samples_high",
    "cost_usd", "cost_low_usd", "cost_high_usd",
    "usd_per_million_samples", "usd_per_million_samples_low", "usd_per_million_samples_high",
)  # fmt: skip
"""Energy and cost in CSV files; an empty cell is not known."""


def bill_row(r: Analysis) -> dict[str, float | None]:
    """The values of ``BILL_COLUMNS``."""
    known = {**(asdict(r.bill.energy) if r.bill.energy else {}), **(asdict(r.bill.cost) if r.bill.cost else {})}
    return {name: known.get(name) for name in BILL_COLUMNS}


def bill_cells(r: Analysis) -> list[str]:
    """kWh and US dollars per million samples; ``?`` where not known."""
    row = bill_row(r)
    kwh, usd = row["kwh_per_million_samples"], row["usd_per_million_samples"]
    return [
        "?" if kwh is None else format_kwh(kwh).removesuffix(" kWh"),
        "?" if usd is None else format_usd(usd).removeprefix("$"),
    ]


def _per_million(words: Callable[[float], str], best: float | None, low: float | None, high: float | None) -> str:
    if best is None or low is None or high is None:
        return ""
    interval = f" ({words(low)} to {words(high)})" if low != high else ""
    return f", {words(best)}{interval} per million samples"


def share_text(share: float, low: float, high: float) -> str:
    """``41.3 % (30.2 % to 52.0 %)``; the share alone where nothing is claimed about its error."""
    return format_share(share) + ("" if low == high else f" ({format_share(low)} to {format_share(high)})")


def plural(count: int, word: str) -> str:
    """``1 GPU``, ``8 GPUs``."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def _hidden_note(r: Analysis) -> str:
    if not r.step.comm_s:
        return ""
    return f"exposed, {format_seconds(r.step.hidden_comm_s)} hidden"


def _input_note(r: Analysis) -> str:
    """The stages of the input pipeline, and those that nobody described."""
    stages = r.step.input_stages
    if stages is None:
        return ""
    known = [("read", stages.read_s), ("decode", stages.decode_s), ("copy", stages.copy_s)]
    text = ", ".join(f"{name} {format_seconds(seconds)}" for name, seconds in known if seconds is not None)
    missing = [name for name, seconds in known if seconds is None]
    return text + (f"; {' and '.join(missing)} not given" if missing else "")
