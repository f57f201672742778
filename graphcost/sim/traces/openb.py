"""Alibaba's OpenB trace of 2023 (Weng et al., ATC'23): pods with fractions of GPUs.

A pod's GPUs become as many workers, its CPUs divided among them; memory is not scheduled here. Many pods are
services, and most were still running at the end, so that their lifetimes are lower bounds.
"""

from __future__ import annotations

from graphcost.sched import Resources
from graphcost.sim.traces.reading import FORMATS, Format, Row, SkippedRow, TraceRow


def _job(row: Row) -> TraceRow:
    gpus = row.whole("num_gpu")
    if not gpus:
        raise SkippedRow("pods without a GPU")
    if not row.text("scheduled_time"):
        raise SkippedRow("pods never scheduled")
    scheduled_s = row.number("scheduled_time")
    duration_s = row.number("deletion_time", least=scheduled_s) - scheduled_s
    if not duration_s:
        raise SkippedRow("pods that ended at once")
    share = row.whole("gpu_milli", least=1)
    return TraceRow(
        job_id=row.text("name"),
        submit_s=row.number("creation_time"),
        gpus=gpus,
        duration_s=duration_s,
        worker=Resources(row.whole("cpu_milli") // gpus, share),
    )


FORMATS.add(
    "openb",
    Format(
        "openb",
        frozenset({"name", "cpu_milli", "num_gpu", "gpu_milli", "creation_time", "deletion_time", "scheduled_time"}),
        "alibaba/clusterdata cluster-trace-gpu-v2023 (Weng et al., ATC'23)",
        "study and research use (README of its folder); copy in hkust-adsl/kubernetes-scheduler-simulator Apache-2.0",
        _job,
    ),
)
