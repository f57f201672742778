"""What makes a slot differ from the model: speed variation, interference, wrong estimates, noisy measurements.

Every draw depends on the seed, the job and the slot alone, never on the schedule, so that schedulers
are compared on equal luck.
"""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

import numpy as np

from graphcost.errors import UsageError


@dataclass(frozen=True, slots=True)
class Disturbance:
    """Shares, all uniform: ``speed_variation`` x: a job's slot runs at 1 - x to 1 + x.

    ``interference``: loss of a job whose every task shares its node with other jobs. ``epoch_error``:
    how far users' estimates of epochs are off, either way. ``measurement_noise``: of observed speeds;
    0.05 is the error that DL2's release suggests for Optimus.
    """

    seed: int = 0
    speed_variation: float = 0.0
    interference: float = 0.0
    epoch_error: float = 0.0
    measurement_noise: float = 0.05

    def __post_init__(self) -> None:
        for name in ("speed_variation", "interference", "epoch_error", "measurement_noise"):
            if not 0 <= getattr(self, name) < 1:
                option = name.replace("_", "-")
                raise UsageError(f"--{option} {getattr(self, name):g}: a share from 0 to below 1")

    def speed_factor(self, job_id: str, slot: int) -> float:
        """Of one job in one slot."""
        return self._around_one(self.speed_variation, "speed", job_id, slot)

    def interference_factor(self, shared: float) -> float:
        """With a share ``shared`` of its tasks on nodes that run other jobs as well."""
        return 1.0 - self.interference * shared

    def epochs_factor(self, job_id: str) -> float:
        """Estimated over true epochs, the same for the job's whole life."""
        return self._around_one(self.epoch_error, "epochs", job_id, 0)

    def measured(self, samples_per_s: float, what: str, slot: int) -> float:
        """A measurement of a speed."""
        return samples_per_s * self._around_one(self.measurement_noise, "measured", what, slot)

    def generator(self, what: str) -> np.random.Generator:
        """Random numbers of one purpose."""
        return np.random.default_rng((self.seed, crc32(what.encode())))

    def _around_one(self, width: float, purpose: str, name: str, slot: int) -> float:
        if not width:
            return 1.0
        key = (self.seed, crc32(f"{purpose}:{name}".encode()), slot)
        return 1.0 + width * (2.0 * np.random.default_rng(key).random() - 1.0)
