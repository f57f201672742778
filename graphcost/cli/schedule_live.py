"""``graphcost schedule live``: a scheduler's decisions drive real elastic jobs on a Ray cluster."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from graphcost.cli import completing
from graphcost.cli.completing import examples
from graphcost.cli.options import shared_flags
from graphcost.cli.output import say, text_width, write_result
from graphcost.cli.schedule_options import say_about, workload_options
from graphcost.cli.schedule_policies import learned_schedulers, new_models
from graphcost.errors import UsageError, WorkerLostError
from graphcost.live.engine import on_ray
from graphcost.live.jobs import LiveOptions
from graphcost.live.running import LiveRun, live_jobs, most_workers
from graphcost.report.schedule import Drawn
from graphcost.report.schedule_live import live_json, live_text, losses_log
from graphcost.sched import SCHEDULERS, Knowledge
from graphcost.sim.setup import SetupOptions, set_up

_SMALL = {"nodes": 2, "count": 4}
"""Instead of the workload's, which no single machine holds."""

_USUAL = LiveOptions()

MOST_PROCESSES = 64
"""assumed: worker processes of one machine beyond which a run measures the operating system."""


@click.command(
    "live",
    epilog=examples(
        "graphcost schedule live --scheduler drf --count 2 --steps 60 --real-slot 2",
    ),
)
@click.option("--scheduler", metavar="NAME", help="`schedule list` shows them.", shell_complete=completing.schedulers)
@click.option("--policy", type=Path, metavar="FILE", help="A policy of `schedule train`, instead of --scheduler.")
@click.option("--sampled", is_flag=True, help="The policy draws its actions, instead of taking the likeliest.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of jobs, weights and samples.")
@click.option(
    "--steps",
    type=int,
    default=_USUAL.steps,
    show_default=True,
    help="Of the longest job; the others in proportion to their epochs.",
)
@click.option(
    "--batch",
    type=int,
    default=_USUAL.batch,
    show_default=True,
    help="Samples of a step, split among a job's workers.",
)
@click.option(
    "--checkpoint-every",
    type=int,
    default=_USUAL.checkpoint_every,
    show_default=True,
    metavar="STEPS",
    help="The most that a lost worker makes its job do again.",
)
@click.option(
    "--real-slot",
    "real_slot_s",
    type=float,
    default=_USUAL.real_slot_s,
    show_default=True,
    metavar="SECONDS",
    help="Between decisions, by the clock; --slot stays what arrivals count in.",
)
@click.option("--slots", type=int, default=_USUAL.slots, show_default=True, help="The last one ends the run.")
@click.option(
    "--patience",
    "patience_s",
    type=float,
    default=_USUAL.patience_s,
    show_default=True,
    metavar="SECONDS",
    help="A job's workers that say nothing for so long are replaced.",
)
@workload_options
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--output", metavar="FILE", help="Write to a file instead of stdout.")
@click.option("--log", metavar="FILE.csv", help="The loss of every step.")
@shared_flags
def live_command(
    scheduler: str | None, policy: Path | None, sampled: bool, seed: int, steps: int, batch: int,
    checkpoint_every: int, real_slot_s: float, slots: int, patience_s: float, form: str, output: str | None,
    log: str | None, quiet: bool, debug: bool, **options: Any,
) -> int:  # fmt: skip
    """Run one trace for real: elastic torch jobs on Ray (extras ray, torch), resized in every slot.

    Jobs are small perceptrons trained by DistributedDataParallel, a Ray actor a worker, on the running Ray cluster or
    on one of this machine. A change of workers, or a killed worker, goes on from a checkpoint in memory; the loss of
    a step does not depend on how many workers made it. The workload gives arrivals, lengths, demands and caps (2
    nodes and 4 jobs unless told otherwise); parameter servers are held and recorded, not run.

    A job whose workers die again and again is given up: exit 70.
    """
    told = LiveOptions(steps, batch, checkpoint_every, real_slot_s, slots, patience_s)
    for option, file in (("--output", output), ("--log", log)):
        if file is not None and not Path(file).parent.is_dir():
            raise UsageError(f"{option} {file}: no folder {Path(file).parent}")
    if (scheduler is None) == (policy is None):
        raise UsageError("schedule live wants --scheduler NAME or --policy FILE, one of the two")
    chosen = SCHEDULERS.find(scheduler) if scheduler is not None else None
    policies = [] if policy is None else [policy]
    chosen = chosen or learned_schedulers(policies, sampled=sampled)[0]
    setup = set_up(SetupOptions(**{**options, **{name: options[name] or few for name, few in _SMALL.items()}}))
    jobs, load, notes = setup.draw(seed, None)
    say_about(setup, notes, None, quiet=quiet)
    for note in new_models(policies, setup):
        say(f"warning: {note}", quiet=quiet)
    if chosen.knows is Knowledge.EXACT:
        say(f"{chosen.name} decides by the speeds of {setup.speeds.name}, not by those of this run", quiet=quiet)
    live = live_jobs(jobs, seed, told)
    most = most_workers(jobs, setup.cluster)
    if most > MOST_PROCESSES:
        raise UsageError(
            f"{len(setup.cluster.nodes)} nodes hold up to {most} workers, each a process; at most {MOST_PROCESSES}: "
            "give fewer --nodes or a lower --max-workers"
        )
    say(f"starting Ray, up to {most} workers", quiet=quiet)
    with on_ray(list(live.values()), most, told, time.monotonic, lambda text: say(text, quiet=quiet)) as engine:
        found = LiveRun(jobs, live, setup, chosen, engine, told, seed, time.monotonic).schedule()
    drawn = Drawn(setup, seed, load, notes)
    if log is not None:
        write_result(losses_log(found), log)
    write_result(live_json(found, drawn, told) if form == "json" else live_text(found, drawn, text_width()), output)
    failed = [job.job_id for job in found.jobs if job.failed is not None]
    if failed:
        raise WorkerLostError(f"{', '.join(failed)}: given up, since its workers died again and again (see above)")
    return 0
