"""What a device draws over a step: its board power, in part.

Two states: it computes or moves memory (``busy``), or it waits for data, launches or messages
(``waiting``). The shares of board power stand in ``power.toml`` with their source.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class PowerModel:
    """Shares of board power in both states, 0..1, and where they are from."""

    busy_share: float
    waiting_share: float
    source: str

    def mean_share(self, busy_s: float, waiting_s: float) -> float:
        """Mean share of board power over a step of ``busy_s + waiting_s`` seconds; 0 for an empty one."""
        step_s = busy_s + waiting_s
        return (self.busy_share * busy_s + self.waiting_share * waiting_s) / step_s if step_s else 0.0


@cache
def power_model() -> PowerModel:
    """The model of ``power.toml``."""
    return PowerModel(**tomllib.loads((files("graphcost.engine") / "power.toml").read_text("utf-8")))
