"""graphcost's own table of jobs, as ``graphcost schedule generate`` writes it."""

from __future__ import annotations

from graphcost.sim.traces.reading import FORMATS, Format, Row, TraceRow

COLUMNS = ("job_id", "arrival_s", "model", "epochs", "workers")


def _job(row: Row) -> TraceRow:
    return TraceRow(
        job_id=row.text("job_id"),
        submit_s=row.number("arrival_s"),
        gpus=row.whole("workers", least=1),
        model=row.text("model"),
        epochs=row.number("epochs", over=True),
    )


FORMATS.add(
    "graphcost", Format("graphcost", frozenset(COLUMNS), "graphcost schedule generate", "the user's own", _job)
)
