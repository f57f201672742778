"""A schedule as a Chrome trace: a thread a job with its runs, and counters of the cluster's use.

Source: Trace Event Format (Google, 2016), complete and counter events; a simulated second is a second.
"""

from __future__ import annotations

import json
from typing import Any

from graphcost.sim.result import Schedule

_US_PER_S = 1e6


def schedule_trace(found: Schedule) -> str:
    """Trace JSON, for Perfetto (https://ui.perfetto.dev) or chrome://tracing."""
    name = f"{found.scheduler}: {len(found.jobs)} jobs, simulated by graphcost"
    events: list[dict[str, Any]] = [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": name}}]
    threads = {job.job_id: thread for thread, job in enumerate(found.jobs, start=1)}
    for job in found.jobs:
        thread = threads[job.job_id]
        title = f"{job.job_id} ({job.model})"
        events.append({"ph": "M", "name": "thread_name", "pid": 1, "tid": thread, "args": {"name": title}})
        events.append(
            {"ph": "M", "name": "thread_sort_index", "pid": 1, "tid": thread, "args": {"sort_index": thread}}
        )
        waited_until = job.start_s if job.start_s is not None else job.finish_s
        if waited_until is not None and waited_until > job.arrival_s:
            events.append(_slice("waits", thread, job.arrival_s, waited_until, {}))
    for run in found.runs:
        what = f"{run.workers} workers" + (f", {run.ps} servers" if run.ps else "")
        args = {"workers": run.workers, "ps": run.ps, "nodes": list(run.nodes)}
        events.append(_slice(what, threads[run.job_id], run.start_s, run.end_s, args))
    for use in found.slots:
        shares = {"GPUs": use.gpu_share, "CPUs": use.cpu_share}
        at = use.start_s * _US_PER_S
        events.append({"ph": "C", "name": "share in use", "pid": 1, "ts": at, "args": shares})
        events.append({"ph": "C", "name": "jobs", "pid": 1, "ts": at, "args": {"running": use.running}})
    return json.dumps({"displayTimeUnit": "ms", "traceEvents": events}, allow_nan=False) + "\n"


def _slice(name: str, thread: int, start_s: float, end_s: float, args: dict[str, Any]) -> dict[str, Any]:
    """Ends are rounded to nanoseconds, not lengths, so that slices of a job never overlap."""
    start_ns, end_ns = round(start_s * 1e9), round(end_s * 1e9)
    return {
        "ph": "X", "name": name, "cat": "job", "pid": 1, "tid": thread, "ts": start_ns / 1e3,
        "dur": (end_ns - start_ns) / 1e3, "args": args,
    }  # fmt: skip
