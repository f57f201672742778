"""The study's equations on a piece of a job table, for many kinds and many clusters.

A part of the step depends on one rate: FLOPs on the peak, input on PCIe, and so on. A
part is computed once for each rate that it meets, by the same operations in the same
order as ``graphcost.engine.paper`` has for a single job, so that both give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from graphcost.engine.paper import PaperRates, PaperTimes, in_turn, transfer_s
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
        self._found: dict[Hashable, Column] = {}

    def times(self, kind: JobKind, hardware: Hardware) -> PaperTimes:
        """A step's parts, one entry a job. The arrays are shared with later answers: not to be written to."""
        rates = hardware.of(kind)
        return PaperTimes(
            input_s=self._input_s(kind, hardware, rates.input_bytes_per_s),
            compute_s=self._over("flops", rates.flops_per_s),
            memory_s=self._over("mem_bytes", rates.mem_bytes_per_s),
            weight_s=self._weight_s(rates.weight_bytes_per_s, hardware.keeps_weights(kind)),
        )

    def step_s(self, kind: JobKind, hardware: Hardware) -> Column:
        """The step alone: the sum of ``times``, added in the same order; sums that repeat are kept."""
        rates = hardware.of(kind)
        most_s = self._before_weights_s(kind, hardware, rates)
        step_s: Column = most_s + self._weight_s(rates.weight_bytes_per_s, hardware.keeps_weights(kind))
        return step_s

    def _before_weights_s(self, kind: JobKind, hardware: Hardware, rates: PaperRates) -> Column:
        key = (*_contending(kind, hardware), rates.input_bytes_per_s, rates.flops_per_s)

        def copied_and_computed_s() -> Column:
            return self._input_s(kind, hardware, rates.input_bytes_per_s) + self._over("flops", rates.flops_per_s)

        return self._once(
            (*key, rates.mem_bytes_per_s),
            lambda: self._once(key, copied_and_computed_s) + self._over("mem_bytes", rates.mem_bytes_per_s),
        )

    def _input_s(self, kind: JobKind, hardware: Hardware, bytes_per_s: float) -> Column:
        key = _contending(kind, hardware)

        def contended() -> Column:
            """S_d of all that share a PCIe."""
            sharing = kind.input_sharing(self._cnodes, hardware.cluster, self._most)
            input_bytes: Column = self._jobs.input_bytes * sharing
            return input_bytes

        return self._once(("input", *key, bytes_per_s), lambda: self._once(key, contended) / bytes_per_s)

    def _over(self, column: str, per_s: float) -> Column:
        def seconds() -> Column:
            work: Column = getattr(self._jobs, column)
            return work / per_s

        return self._once((column, per_s), seconds)

    def _weight_s(self, bytes_per_s: tuple[float, ...], keeps: bool) -> Column:
        """``transfer_s`` of what moves; the time over a medium that several kinds cross is kept."""

        def seconds() -> Column:
            over_all: Column = (
                in_turn([self._weight_s((rate,), keeps) for rate in bytes_per_s])
                if len(bytes_per_s) > 1
                else transfer_s(self._once(("moved", keeps), moved), bytes_per_s)
            )
            return over_all

        def moved() -> Column:
            """S_w; a job of one cNode keeps its weights where the architecture says so."""
            weight_bytes = self._jobs.weight_bytes
            return np.where(self._cnodes > 1, weight_bytes, 0.0) if keeps else weight_bytes

        return self._once(("weights", keeps, bytes_per_s), seconds)

    def _once(self, key: Hashable, compute: Callable[[], Column]) -> Column:
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = compute()
        return found


def _contending(kind: JobKind, hardware: Hardware) -> tuple[str, int]:
    """All that the sharing of a PCIe depends on, beside the jobs."""
    return kind.arch, hardware.cluster.server.gpus
