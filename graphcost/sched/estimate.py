"""A job's speed from noisy measurements: Optimus's step-time form by non-negative least squares.

T(w, p) = a/w + b + c w/p + d w + e p with parameter servers, a/w + b [w > 1] + c (w - 1) + d without
(Pollux's local computation, latency and ring terms, added). Where every worker has its own
batch, the first term is constant and joins the next.
Sources: Peng et al., Optimus (EuroSys'18), synchronous form; Qiao et al., Pollux (OSDI'21).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from graphcost.errors import UsageError
from graphcost.sched.view import JobView, Observation


class SpeedEstimate:
    """Epochs per second of one job as its scheduler believes it; measured points stand for themselves."""

    def __init__(self, job: JobView, observations: tuple[Observation, ...]) -> None:
        self._job = job
        self._measured = {(seen.workers, seen.ps): seen.samples_per_s for seen in observations}
        self._coefficients = fit_step_s(observations, job.batch, job.batch_grows, job.ps is not None)
        self._made: dict[tuple[int, int], float] = {}

    def __call__(self, workers: int, ps: int) -> float:
        """Zero without a worker, or without a server where the job needs one."""
        key = (workers, ps)
        if key not in self._made:
            self._made[key] = self._epochs_per_s(workers, ps)
        return self._made[key]

    def _epochs_per_s(self, workers: int, ps: int) -> float:
        job = self._job
        if workers < 1 or (job.ps is not None and ps < 1):
            return 0.0
        rate = self._measured.get((workers, ps))
        if rate is None:
            step_s = float(np.dot(_terms(workers, ps, job.batch_grows, job.ps is not None), self._coefficients))
            rate = _step_samples(job.batch, job.batch_grows, workers) / step_s if step_s > 0 else 0.0
        return rate * job.efficiency(workers) / job.samples_per_epoch


@lru_cache(maxsize=4096)
def fit_step_s(
    observations: tuple[Observation, ...], batch: float, batch_grows: bool, has_ps: bool
) -> tuple[float, ...]:
    """Coefficients >= 0 that minimise the relative error of the step time; seconds.

    Without any measurement the step is taken as constant. Raises ``UsageError`` where scipy is missing.
    """
    try:
        from scipy.optimize import nnls
    except ImportError:
        raise UsageError("speed estimates need scipy: pip install 'graphcost[schedule]'") from None
    width = len(_terms(1, 1, batch_grows, has_ps))
    if not observations:
        return (*([0.0] * (width - 1)), 1.0) if not has_ps else (0.0, 1.0, *([0.0] * (width - 2)))
    rows, weights = [], []
    for seen in observations:
        step_s = _step_samples(batch, batch_grows, seen.workers) / seen.samples_per_s
        rows.append(np.array(_terms(seen.workers, seen.ps, batch_grows, has_ps)) / step_s)
        weights.append(np.sqrt(seen.count))
    matrix = np.array(rows) * np.array(weights)[:, None]
    found, _ = nnls(matrix, np.array(weights))
    return tuple(float(value) for value in found)


def _terms(workers: int, ps: int, batch_grows: bool, has_ps: bool) -> tuple[float, ...]:
    shrinking = 0.0 if batch_grows else 1.0 / workers
    if has_ps:
        return (shrinking, 1.0, workers / ps, float(workers), float(ps))
    return (shrinking, float(workers > 1), float(workers - 1), 1.0)


def _step_samples(batch: float, batch_grows: bool, workers: int) -> float:
    return batch * workers if batch_grows else batch
