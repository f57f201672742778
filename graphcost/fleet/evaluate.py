"""The study's equations on a piece of a job table, for many kinds and many clusters.

A part of the step depends on one rate: FLOPs on the peak, input on PCIe, and so on. A
part is computed once for each rate that it meets, by the same operations in the same
order as ``graphcost.engine.paper`` has for a single job, so that both give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from graphcost.engine.paper import PaperTimes, transfer_s
from graphcost.fleet.jobs import Column, Jobs
from graphcost.fleet.kinds import JobKind
from graphcost.fleet.rates import Hardware


class Evaluator:
    """Seconds of ``jobs`` as any kind on any hardware.

    ``cnodes``: how many each job would have, where that is not the table's own number.
    ``input_sharing``: most cNodes that contend for one PCIe; None for all of a server.
    """

    def __init__(self, jobs: Jobs, *, input_sharing: int | None = None, cnodes: Column | None = None) -> None:
        self._jobs = jobs
        self._most = input_sharing
        self._cnodes = jobs.cnodes if cnodes is None else cnodes
        self._found: dict[Hashable, Any] = {}

    def times(self, kind: JobKind, hardware: Hardware) -> PaperTimes:
        """A step's parts, one entry a job. The arrays are shared with later answers: not to be written to."""
        jobs, rates = self._jobs, hardware.of(kind)
        return PaperTimes(
            input_s=self._once(
                ("input", kind.id, rates.input_bytes_per_s),
                lambda: jobs.input_bytes * self._sharing(kind, hardware) / rates.input_bytes_per_s,
            ),
            compute_s=self._once(("flops", rates.flops_per_s), lambda: jobs.flops / rates.flops_per_s),
            memory_s=self._once(("memory", rates.mem_bytes_per_s), lambda: jobs.mem_bytes / rates.mem_bytes_per_s),
            weight_s=self._once(
                ("weights", rates.weight_bytes_per_s, hardware.keeps_weights(kind)),
                lambda: transfer_s(self._moved(kind, hardware), rates.weight_bytes_per_s),
            ),
        )

    def step_s(self, kind: JobKind, hardware: Hardware) -> Column:
        """The step alone: the sum of ``times``, added in the same order; sums that repeat are kept."""
        rates, parts = hardware.of(kind), self.times(kind, hardware)
        key = (kind.id, rates.input_bytes_per_s, rates.flops_per_s)
        first_two = self._once(key, lambda: parts.input_s + parts.compute_s)
        first_three = self._once((*key, rates.mem_bytes_per_s), lambda: first_two + parts.memory_s)
        step: Column = first_three + parts.weight_s
        return step

    def _sharing(self, kind: JobKind, hardware: Hardware) -> Any:
        cluster = hardware.cluster
        return self._once(
            ("sharing", kind.id, cluster.server.gpus), lambda: kind.input_sharing(self._cnodes, cluster, self._most)
        )

    def _moved(self, kind: JobKind, hardware: Hardware) -> Column:
        """S_w; a job of one cNode keeps its weights where the architecture says so."""
        if not hardware.keeps_weights(kind):
            return self._jobs.weight_bytes
        return np.where(self._cnodes > 1, self._jobs.weight_bytes, 0.0)

    def _once(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        if key not in self._found:
            self._found[key] = compute()
        return self._found[key]
