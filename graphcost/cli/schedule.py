"""``graphcost schedule``: a simulated cluster under one scheduler, or several on the same traces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from graphcost.cli import completing
from graphcost.cli.completing import examples
from graphcost.cli.options import shared_flags
from graphcost.cli.output import say, text_width, working_on, write_result
from graphcost.cli.schedule_advise import advise_command
from graphcost.cli.schedule_live import live_command
from graphcost.cli.schedule_options import say_about, setup_options
from graphcost.cli.schedule_policies import learned_schedulers, new_models
from graphcost.cli.schedule_train import train_command
from graphcost.errors import UsageError
from graphcost.report.plots.figure import check_plot
from graphcost.report.plots.schedule import completion_plot
from graphcost.report.schedule import (
    Drawn,
    comparison_html,
    comparison_json,
    comparison_text,
    events_log,
    load_warning,
    simulation_json,
    simulation_text,
    slots_log,
)
from graphcost.report.schedule_trace import schedule_trace
from graphcost.report.tables import table_text
from graphcost.sched import SCHEDULERS
from graphcost.sim.comparing import compare_schedulers
from graphcost.sim.setup import SetupOptions, set_up
from graphcost.sim.simulation import simulate
from graphcost.sim.traces.own import COLUMNS
from graphcost.sim.workloads import SEEDS, Split, load_workload, seeds_of, workload_names


@click.group(
    "schedule",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "graphcost schedule list",
        "graphcost schedule simulate --scheduler drf --count 40 --nodes 8",
    ),
)
def command() -> None:
    """Cluster schedulers, simulated or on real jobs."""


@command.command(
    "simulate",
    epilog=examples(
        "graphcost schedule simulate --scheduler drf --count 40 --nodes 8",
        "graphcost schedule simulate --scheduler srtf --count 40 --nodes 8 --timeline schedule.json",
    ),
)
@click.option(
    "--scheduler", required=True, metavar="NAME", help="`schedule list` shows them.",
    shell_complete=completing.schedulers,
)  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the drawn jobs and all noise.")
@setup_options
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--output", metavar="FILE", help="Write to a file instead of stdout.")
@click.option("--events", metavar="FILE.csv|.json", help="Arrivals, starts, changes, ends.")
@click.option("--slots", "slot_log", metavar="FILE.csv|.json", help="Utilisation of every slot.")
@click.option("--timeline", metavar="FILE.json", help="Chrome trace of the schedule, for Perfetto.")
@shared_flags
def simulate_command(
    scheduler: str, seed: int, form: str, output: str | None, events: str | None, slot_log: str | None,
    timeline: str | None, quiet: bool, debug: bool, **options: Any,
) -> None:  # fmt: skip
    """Run one trace under one scheduler."""
    chosen = SCHEDULERS.find(scheduler)
    for option, path in (("--events", events), ("--slots", slot_log)):
        if path is not None and not path.endswith((".csv", ".json")):
            raise UsageError(f"{option} {path}: the suffix is .csv or .json")
    with working_on("simulating", quiet=quiet):
        setup = set_up(SetupOptions(**options))
        jobs, load, notes = setup.draw(seed, None)
        say_about(setup, notes, load_warning(load), quiet=quiet)
        found = simulate(jobs, setup.cluster, chosen, setup.speeds, setup.settings(seed), seed=seed)
    drawn = Drawn(setup, seed, load, notes)
    if events is not None:
        write_result(events_log(found.events, as_json=events.endswith(".json")), events)
    if slot_log is not None:
        write_result(slots_log(found.slots, as_json=slot_log.endswith(".json")), slot_log)
    if timeline is not None:
        write_result(schedule_trace(found), timeline)
    text = simulation_json(found, drawn) if form == "json" else simulation_text(found, drawn, text_width())
    write_result(text, output)


@command.command(
    "compare",
    epilog=examples(
        "graphcost schedule compare --schedulers drf,srtf,fifo --traces 2 --count 30 --nodes 8",
    ),
)
@click.option("--traces", type=click.IntRange(1), default=10, show_default=True, help="Traces of the split.")
@click.option("--schedulers", metavar="A,B,C", help="Default: all.", shell_complete=completing.schedulers)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    type=Path,
    metavar="FILE",
    help="A policy of `schedule train`, beside them (repeatable).",
)
@click.option("--sampled", is_flag=True, help="Policies draw their actions, instead of taking the likeliest.")
@click.option("--split", type=click.Choice([str(one) for one in Split]), default="test", show_default=True,
              help="Seeds of the three never meet; a recorded trace is cut likewise.")  # fmt: skip
@click.option("--start", type=click.IntRange(0), default=0, help="First trace of the split.")
@setup_options
@click.option("--format", "form", type=click.Choice(["text", "json", "html"]), default="text", show_default=True)
@click.option("--output", metavar="FILE", help="Write to a file instead of stdout.")
@click.option("--plot", metavar="FILE", help="Completion times as cumulative shares: png, svg, pdf.")
@shared_flags
def compare_command(
    traces: int, schedulers: str | None, policies: tuple[Path, ...], sampled: bool, split: str, start: int, form: str,
    output: str | None, plot: str | None, quiet: bool, debug: bool, **options: Any,
) -> None:  # fmt: skip
    """Several schedulers on the same held-out traces, with intervals and paired differences."""
    names = list(SCHEDULERS) if schedulers is None else [name.strip() for name in schedulers.split(",")]
    chosen = [SCHEDULERS.find(name) for name in names]
    learned = learned_schedulers(policies, sampled=sampled)
    part = Split(split)
    if plot is not None:
        check_plot(plot)
    with working_on("simulating", quiet=quiet):
        setup = set_up(SetupOptions(**options))
        seeds = seeds_of(part, traces, start)
        drawn = [setup.draw(seed, part) for seed in seeds]
        loads = [load for _, load, _ in drawn]
        heaviest = max(loads, key=lambda load: load.share)
        notes = drawn[0][2]
        say_about(setup, notes, load_warning(heaviest), quiet=quiet)
        for note in new_models(policies, setup):
            say(f"warning: {note}", quiet=quiet)
        found = compare_schedulers(
            [*chosen, *learned],
            [(seed, jobs) for seed, (jobs, _, _) in zip(seeds, drawn, strict=True)],
            setup.cluster,
            setup.speeds,
            setup.settings,
        )
    what = Drawn(setup, None, heaviest if len(loads) == 1 else None, notes)
    if plot is not None:
        completion_plot(found, plot)
    if form == "json":
        text = comparison_json(found, what, part)
    elif form == "html":
        text = comparison_html(found, what, part)
    else:
        text = comparison_text(found, what, part, text_width(), learned=[one.name for one in learned])
    write_result(text, output)


@command.command(
    "generate",
    epilog=examples(
        "graphcost schedule generate --count 50 --seed 3 --output trace.csv",
    ),
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@setup_options
@click.option("--output", metavar="FILE.csv", help="Write to a file instead of stdout.")
@shared_flags
def generate_command(seed: int, output: str | None, quiet: bool, debug: bool, **options: Any) -> None:
    """Draw jobs and write them as a table that --trace reads."""
    setup = set_up(SetupOptions(**options))
    jobs, load, notes = setup.draw(seed, None)
    say_about(setup, notes, load_warning(load), quiet=quiet)
    lines = [",".join(COLUMNS)]
    lines += [
        f"{job.job_id},{job.arrival_s!r},{job.model.name},{job.epochs!r},{job.requested_workers}" for job in jobs
    ]
    write_result("\n".join(lines), output)


@command.command(
    "list",
    epilog=examples(
        "graphcost schedule list",
    ),
)
@shared_flags
def list_command(quiet: bool, debug: bool) -> None:
    """Schedulers, workloads, and the seeds of each split."""
    width = max(text_width(), 130)  # narrower it would lose words
    rows = [(one.name, one.knows, one.summary) for one in SCHEDULERS.values()]
    parts = [table_text(("scheduler", "knows speeds", "does"), rows, width=width)]
    workloads = [load_workload(name) for name in workload_names()]
    shown = [(one.name, one.speeds, one.title) for one in workloads]
    parts.append(table_text(("workload", "speeds", "is"), shown, width=width))
    ranges = [(str(split), f"{seeds.start:,} to {seeds.stop - 1:,}") for split, seeds in SEEDS.items()]
    parts.append(table_text(("split", "seeds"), ranges, width=width))
    write_result("\n".join(parts))


command.add_command(train_command)
command.add_command(advise_command)
command.add_command(live_command)
