"""Microsoft's Philly trace, as derived for Pollux and ElasticFlow (Jeon et al., ATC'19).

submit_s, duration_s (run time as recorded on its GPUs), num_gpus, vc. Jobs have no names: the line gives one.
"""

from __future__ import annotations

from graphcost.sim.traces.reading import FORMATS, Format, Row, TraceRow


def _job(row: Row) -> TraceRow:
    return TraceRow(
        job_id=f"philly-{row.line - 1}",
        submit_s=row.number("submit_s"),
        gpus=row.whole("num_gpus", least=1),
        duration_s=row.number("duration_s", over=True),
    )


FORMATS.add(
    "philly",
    Format(
        "philly",
        frozenset({"submit_s", "duration_s", "num_gpus", "vc"}),
        "msr-fiddle/philly-traces (Jeon et al., ATC'19), derived table of pkusys/ElasticFlow @04a0109",
        "CC-BY-4.0 (Microsoft); repository Apache-2.0",
        _job,
    ),
)
