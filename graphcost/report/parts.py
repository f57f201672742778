"""The step's parts and phases as every report names them."""

from __future__ import annotations

from dataclasses import dataclass

from graphcost.result import Analysis
from graphcost.units import format_bytes, format_seconds, format_share

VERDICTS = {"flagged": "FLAGGED", "clear": "CLEAR", "too-close": "TOO CLOSE"}
"""As reports shout them."""

_PHASES = {"forward": "forward pass", "backward": "backward pass", "update": "update"}


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
