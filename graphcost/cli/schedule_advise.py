"""``graphcost schedule advise``: how many workers and parameter servers suit one job."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from graphcost._version import __version__
from graphcost.cli.completing import examples
from graphcost.cli.option_kinds import Quantity
from graphcost.cli.options import model_argument, shared_flags
from graphcost.cli.output import text_width, working_on, write_result
from graphcost.placing import AnalysisOptions
from graphcost.report.tables import table_text
from graphcost.result import SCHEMA_VERSION
from graphcost.sched import Resources
from graphcost.sim.best_tasks import TaskAdvice, TaskCounts, advise_tasks
from graphcost.sim.jobs import SimCluster, TrainedModel
from graphcost.sim.speeds.engine import EngineSpeeds
from graphcost.units import format_count, format_share, parse_share

_ROWS = 8
"""Rows of the table: the powers of two, and the answers."""


@click.command(
    "advise",
    epilog=examples(
        "graphcost schedule advise zoo:vgg16 --cluster aws-p3.16xlarge",
        "graphcost schedule advise zoo:resnet18 --arch allreduce --fixed-batch --batch 256 --max-workers 8",
    ),
)
@model_argument
@click.option("--cluster", default="dgx-a100", show_default=True, metavar="NAME|FILE", help="Whose servers.")
@click.option("--nodes", type=click.IntRange(1), default=16, show_default=True, help="Servers of that kind.")
@click.option("--arch", type=click.Choice(["ps", "allreduce"]), default="ps", show_default=True)
@click.option(
    "--batch",
    type=click.IntRange(1),
    default=32,
    show_default=True,
    help="Samples a step: of one worker, or of all under --fixed-batch.",
)
@click.option("--fixed-batch", is_flag=True, help="Workers split one batch, as DL2's jobs do.")
@click.option("--max-workers", type=int, default=16, show_default=True)
@click.option("--max-ps", type=int, default=16, show_default=True)
@click.option(
    "--slack",
    type=Quantity(parse_share),
    default=0.1,
    show_default=True,
    metavar="SHARE",
    help="Of the highest speed that fewer tasks may lose.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--output", metavar="FILE", help="Write to a file instead of stdout.")
@shared_flags
def advise_command(
    model: str, cluster: str, nodes: int, arch: str, batch: int, fixed_batch: bool, max_workers: int, max_ps: int,
    slack: float, form: str, output: str | None, quiet: bool, debug: bool,
) -> None:  # fmt: skip
    """The worker and server counts that suit a job, by graphcost's own cost engine on an empty cluster.

    A worker is one GPU; a parameter server has a host's network to itself.
    """
    with working_on(f"trying counts for {model}", quiet=quiet):
        speeds = EngineSpeeds(AnalysisOptions(cluster=cluster))
        server = Resources.of(1, 0) if arch == "ps" else None
        job = TrainedModel(model, float(batch), 1.0, Resources.of(1, 1), server, batch_grows=not fixed_batch)
        held = SimCluster.equal(nodes, cpus=max_workers + max_ps, gpus=speeds.gpus_per_server)
        found = advise_tasks(speeds, job, held, max_workers, max_ps, slack)
    write_result(_json(found, arch, nodes) if form == "json" else _text(found, arch, nodes), output)


def _json(found: TaskAdvice, arch: str, nodes: int) -> str:
    head = {"schema_version": SCHEMA_VERSION, "graphcost_version": __version__, "command": "schedule advise"}
    return json.dumps({**head, "arch": arch, "nodes": nodes, **asdict(found)}, indent=2, allow_nan=False)


def _text(found: TaskAdvice, arch: str, nodes: int) -> str:
    powers = {1 << power for power in range(_ROWS)}
    shown = {found.fastest, found.enough}
    rows = sorted(
        {row for row in found.by_workers if row.workers in powers} | shown, key=lambda row: (row.workers, row.ps)
    )
    heads = ("workers", "servers", "samples/s", "efficiency", "")
    cells = [(*_cells(row), _mark(row, found)) for row in rows]
    return "\n".join(
        [
            f"{found.model}: {arch} on {nodes} servers, speeds {found.speeds}",
            "",
            table_text(heads, cells, right=(0, 1, 2, 3), width=text_width()).rstrip(),
            "",
            f"enough: the fewest tasks within {format_share(found.slack)} of the highest speed.",
        ]
    )


def _cells(row: TaskCounts) -> tuple[str, ...]:
    return f"{row.workers}", f"{row.ps}", format_count(row.samples_per_s), format_share(row.efficiency)


def _mark(row: TaskCounts, found: TaskAdvice) -> str:
    marks = [name for name, one in (("fastest", found.fastest), ("enough", found.enough)) if row == one]
    return ", ".join(marks)
