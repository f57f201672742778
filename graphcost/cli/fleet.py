"""``graphcost fleet``: the PAI study over a table of jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, TypeVar

import click

from graphcost.cli import options as shared
from graphcost.cli.completing import examples
from graphcost.cli.fleet_extract import command as extract_command
from graphcost.cli.output import checked_outputs, say, text_width, working_on, write_result, write_results
from graphcost.errors import UsageError
from graphcost.fleet import (
    CHOICES,
    Hardware,
    JobTable,
    Study,
    characterize,
    form_of,
    generate,
    hardware_of,
    judge_targets,
    load_population,
    open_jobs,
    project,
    study_assumptions,
    sweep,
)
from graphcost.placing import AnalysisOptions, cluster_of, named
from graphcost.predict import Profile
from graphcost.registry import did_you_mean
from graphcost.report.fleet import FLEET_FORMATS, render_fleet, targets_table
from graphcost.report.fleet_figures import Result
from graphcost.report.plots import check_plot, fleet_plot

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_CLUSTER = "pai-paper-base"
_REPORT_SUFFIXES = (".html", ".htm", ".json", ".txt")


class _Group(click.Group):
    """Subcommands with "did you mean"."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            raise click.UsageError(f"no fleet command named {args[0]!r}{did_you_mean(args[0], self.commands)}", ctx)
        return super().resolve_command(ctx, args)


@click.group(
    "fleet",
    cls=_Group,
    epilog=examples(
        "graphcost fleet generate --count 10000 --output jobs.parquet",
        "graphcost fleet characterize jobs.parquet",
        "graphcost fleet project jobs.parquet",
    ),
)
def command() -> None:
    """The Alibaba-PAI workload study over a table of jobs (CSV or Parquet, one row a job).

    Columns, per step and cNode: job_id, arch (single, local, ps, allreduce, allreduce-local,
    allreduce-cluster, pearl), cnodes, batch, input_bytes, flops, mem_bytes,
    dense_weight_bytes, sparse_weight_bytes (traffic of weights and gradients). Optional:
    resource, gpu_hours, dense_model_bytes, sparse_model_bytes (model and optimizer state).
    """


command.add_command(extract_command)


def _hardware_options(function: F) -> F:
    for option in reversed(
        (
            click.argument("file", metavar="FILE"),
            shared.cluster_option(DEFAULT_CLUSTER),
            shared.rate_options,
            click.option("--profile", default="paper", show_default=True, metavar="|".join(Profile)),
            click.option(
                "--precision", default="fp32", show_default=True, help="Whose peak compute-bound operators use."
            ),
            click.option(
                "--input-sharing", type=int, metavar="K",
                help="Most cNodes that contend for one PCIe on input copies (default: all of a server).",
            ),
            click.option(
                "--format", "form", type=click.Choice(list(FLEET_FORMATS)), default="text", show_default=True
            ),
            shared.plot_option,
            shared.shared_flags,
        )
    ):  # fmt: skip
        function = option(function)
    return function


_output_option = click.option(
    "--output", "outputs", multiple=True, metavar="FILE",
    help="Repeatable. .parquet or .csv: every job with its seconds, the result still goes to stdout; .html, .json, "
    ".txt: the result.",
)  # fmt: skip
_report_option = click.option(
    "--output", "outputs", multiple=True, metavar="FILE", help="Repeatable. The result as .html, .json or .txt."
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Files:
    """Where results go. ``jobs``: per-job output; ``reports``: (format, file)."""

    jobs: str | None
    reports: list[tuple[str, str]]
    plots: tuple[str, ...]

    def write(self, found: Result, form: str) -> None:
        """The result on stdout, unless a report is all that was asked for, and in every file."""
        write_results(lambda one: render_fleet(found, one, width=text_width()), form, self.reports)
        for plot in self.plots:
            fleet_plot(found, plot)


def _files(outputs: tuple[str, ...], plots: tuple[str, ...], *, per_job: bool) -> _Files:
    """Files by their suffixes; a wrong one fails before the table is read."""
    for plot in plots:
        check_plot(plot)
    reports = [file for file in outputs if PurePath(file).suffix.lower() in _REPORT_SUFFIXES]
    jobs = [file for file in outputs if file not in reports]
    if jobs and not per_job:
        raise UsageError(f"--output {jobs[0]}: this command writes no jobs; results are .html, .json or .txt")
    if len(jobs) > 1:
        raise UsageError(f"--output {jobs[1]}: jobs are written to {jobs[0]} already; name one file for them")
    if jobs:
        form_of(jobs[0])
    return _Files(jobs[0] if jobs else None, checked_outputs(reports, FLEET_FORMATS), plots)


def _hardware(values: dict[str, Any]) -> Hardware:
    """The cluster and profile that the options name."""
    sharing = values["input_sharing"]
    if sharing is not None and sharing < 1:
        raise UsageError(f"--input-sharing {sharing}: at least one cNode copies its input")
    chosen = AnalysisOptions(
        cluster=values["cluster"] or DEFAULT_CLUSTER,
        device=values["device"],
        network_bytes_per_s=values["network"],
        nvlink_bytes_per_s=values["nvlink"],
        pcie_bytes_per_s=values["pcie"],
        mem_bytes_per_s=values["mem_bandwidth"],
        peak_flops_per_s=values["peak"],
        network_kind=values["network_kind"],
    )
    return hardware_of(cluster_of(chosen), named(Profile, values["profile"], "profile"), values["precision"])


def _opened(file: str, quiet: bool) -> JobTable:
    table = open_jobs(file)
    for note in table.notes():
        say(note, quiet=quiet)
    return table


@command.command(
    "characterize",
    epilog=examples(
        "graphcost fleet characterize jobs.parquet",
        "graphcost fleet characterize jobs.parquet --network 100Gb/s --format json",
    ),
)
@_hardware_options
@_output_option
def characterize_command(
    file: str, form: str, outputs: tuple[str, ...], plots: tuple[str, ...], **values: Any
) -> None:
    """Where the time of the jobs in FILE goes, by type, by job and by cNode."""
    hardware = _hardware(values)
    files = _files(outputs, plots, per_job=True)
    table = _opened(file, values["quiet"])
    with working_on(f"reading {file}", quiet=values["quiet"]):
        found = characterize(file, hardware, input_sharing=values["input_sharing"], output=files.jobs)
    if table.synthetic:
        found = replace(found, targets=judge_targets(load_population(), Study(found)))
    files.write(found, form)


@command.command(
    "project",
    epilog=examples(
        "graphcost fleet project jobs.parquet --to best --output per_job.parquet",
    ),
)
@_hardware_options
@click.option(
    "--to", default="best", show_default=True, metavar="|".join(CHOICES), help="What --output shows for each job."
)
@_output_option
def project_command(
    file: str, form: str, to: str, outputs: tuple[str, ...], plots: tuple[str, ...], **values: Any
) -> None:
    """Move the PS/Worker jobs of FILE to AllReduce and PEARL: who gains, who loses, and why."""
    hardware = _hardware(values)
    files = _files(outputs, plots, per_job=True)
    _opened(file, values["quiet"])
    with working_on(f"reading {file}", quiet=values["quiet"]):
        found = project(file, hardware, to=to, input_sharing=values["input_sharing"], output=files.jobs)
    files.write(found, form)


@command.command(
    "sweep",
    epilog=examples(
        "graphcost fleet sweep jobs.parquet",
        "graphcost fleet sweep jobs.parquet --sensitivity",
    ),
)
@_hardware_options
@_report_option
@click.option("--sensitivity", is_flag=True, help="Vary overlap and efficiencies instead: do the conclusions hold?")
def sweep_command(
    file: str, form: str, sensitivity: bool, outputs: tuple[str, ...], plots: tuple[str, ...], **values: Any
) -> None:
    """What faster hardware gives each type of job in FILE: one resource at a time, and combined."""
    hardware = _hardware(values)
    files = _files(outputs, plots, per_job=False)
    _opened(file, values["quiet"])
    job = study_assumptions if sensitivity else sweep
    with working_on(f"reading {file}", quiet=values["quiet"]):
        found = job(file, hardware, input_sharing=values["input_sharing"])
    files.write(found, form)


@command.command(
    "generate",
    epilog=examples(
        "graphcost fleet generate --count 10000 --seed 1 --output jobs.parquet",
    ),
)
@click.option("--seed", type=int, default=0, show_default=True, help="Decides every row.")
@click.option("--count", type=int, required=True, metavar="N", help="Jobs to draw.")
@click.option("--output", required=True, metavar="FILE", help=".parquet or .csv.")
@click.option("--targets", is_flag=True, help="Run the study on the file and print published figures against it.")
@shared.shared_flags
def generate_command(seed: int, count: int, output: str, targets: bool, quiet: bool, debug: bool) -> None:
    """Write a SYNTHETIC population of jobs: drawn from declared distributions, not measured."""
    with working_on(f"drawing {count:,} jobs", quiet=quiet):
        mark = generate(output, seed=seed, count=count)
    say(f"{output}: {count:,} jobs; {mark}", quiet=quiet)
    if targets:
        people = load_population()
        hardware = hardware_of(people.cluster)
        with working_on(f"reading {output}", quiet=quiet):
            study = Study(characterize(output, hardware), project(output, hardware), sweep(output, hardware))
        write_result(f"{mark}\n\n{targets_table(judge_targets(people, study), width=text_width())}")
