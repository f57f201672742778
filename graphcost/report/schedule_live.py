"""``graphcost schedule live`` as text and JSON, and the loss of every step."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict

from graphcost.live.jobs import LiveOptions
from graphcost.live.result import LiveOutcome, LiveSchedule
from graphcost.report.schedule import Drawn, head_of, setting_of, what_of
from graphcost.report.tables import DEFAULT_WIDTH, table_text
from graphcost.units import format_seconds


def live_json(found: LiveSchedule, drawn: Drawn, options: LiveOptions) -> str:
    """Jobs with first and last loss, slots with what was held."""
    head = head_of("schedule live", drawn)
    for simulated in ("scaling", "disturbance"):
        del head[simulated]
    data = {
        **head,
        "scheduler": found.scheduler,
        "seed": drawn.seed,
        "options": asdict(options),
        "finished": found.finished,
        "jobs": [_job(job) for job in found.jobs],
        "slots": [asdict(slot) for slot in found.slots],
    }
    return json.dumps(data, indent=2, allow_nan=False)


def _job(job: LiveOutcome) -> dict[str, object]:
    told: dict[str, object] = asdict(job)
    del told["losses"]
    first, last = (job.losses[0], job.losses[-1]) if job.losses else (None, None)
    return {**told, "first_loss": first, "last_loss": last}


def live_text(found: LiveSchedule, drawn: Drawn, width: int = DEFAULT_WIDTH) -> str:
    """A line a job, and what could not be done."""
    heads = ("job", "model", "steps", "done", "workers", "resizes", "restarts", "loss", "in steps", "time")
    rows = [_cells(job) for job in found.jobs]
    changes = sum(job.resizes for job in found.jobs)
    restarts = sum(job.restarts for job in found.jobs)
    end_s = found.slots[-1].end_s if found.slots else 0.0
    failed = [f"{job.job_id}: given up, {job.failed}" for job in found.jobs if job.failed is not None]
    open_jobs = sum(job.finish_s is None and job.failed is None for job in found.jobs)
    rest = [f"{open_jobs} jobs did not finish within {len(found.slots)} slots"] if open_jobs else []
    return "\n".join(
        [
            f"{found.scheduler}, run for real: {what_of(drawn)}, seed {drawn.seed}, {len(found.jobs)} jobs",
            *setting_of(drawn, simulated=False),
            "",
            table_text(heads, rows, right=(2, 3, 4, 5, 6), width=width).rstrip(),
            *failed,
            *rest,
            "",
            f"{len(found.slots)} slots of about {format_seconds(found.real_slot_s)}, {format_seconds(end_s)} in all; "
            f"{changes} resizes, {restarts} restarts.",
            "workers: the most at once; time: from start to end. Parameter servers are held, not run.",
        ]
    )


def _cells(job: LiveOutcome) -> tuple[str, ...]:
    ends = job.start_s is not None and job.finish_s is not None
    return (
        job.job_id,
        job.model,
        f"{job.steps:,}",
        f"{job.steps_done:,}",
        f"{job.most_workers}",
        f"{job.resizes}",
        f"{job.restarts}",
        f"{job.losses[0]:.2g} to {job.losses[-1]:.2g}" if job.losses else "-",
        format_seconds(job.run_s),
        format_seconds((job.finish_s or 0.0) - (job.start_s or 0.0)) if ends else "-",
    )


def losses_log(found: LiveSchedule) -> str:
    """CSV: a line a step that counted."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("job_id", "step", "loss"))
    writer.writerows(
        (job.job_id, step, repr(loss)) for job in found.jobs for step, loss in enumerate(job.losses, start=1)
    )
    return out.getvalue()
