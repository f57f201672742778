"""The eight workloads of Pollux's artifact (Qiao et al., OSDI'21): submissions with application and replicas.

Run times are not in the file. The paper draws each job from a class of GPU hours and gives the class an
application: small 0 to 1, medium 1 to 10, large 10 to 100, extra large 100 to 1000 (recalled from its table 1, not
checked). assumed: log-uniform within the class, from 0.1 h for the small one.
"""

from __future__ import annotations

from graphcost.sim.traces.reading import FORMATS, BadCellError, Format, Row, TraceRow

APPLICATIONS = {
    "cifar10": ("zoo:resnet18", (0.1, 1.0)),
    "ncf": ("zoo:neumf-ml20m", (0.1, 1.0)),
    "deepspeech2": ("zoo:deepspeech2", (1.0, 10.0)),
    "bert": ("zoo:bert-base", (1.0, 10.0)),
    "yolov3": ("zoo:yolov3", (10.0, 100.0)),
    "imagenet": ("zoo:resnet50", (100.0, 1000.0)),
}
"""Application -> model of the zoo, range of GPU hours."""


def _job(row: Row) -> TraceRow:
    application = row.text("application")
    if application not in APPLICATIONS:
        raise BadCellError(row.line, "application", f"{application!r} is none of {', '.join(APPLICATIONS)}")
    model, gpu_hours = APPLICATIONS[application]
    return TraceRow(
        job_id=row.text("name"),
        submit_s=row.number("time"),
        gpus=row.whole("num_replicas", least=1),
        gpu_hours=gpu_hours,
        model=model,
    )


FORMATS.add(
    "pollux",
    Format(
        "pollux",
        frozenset({"workload", "name", "time", "application", "num_replicas", "batch_size"}),
        "petuum/adaptdl branch osdi21-artifact @c793c70 (Qiao et al., OSDI'21)",
        "Apache-2.0",
        _job,
        part=lambda row: row.text("workload"),
    ),
)
