"""Options that every ``graphcost schedule`` command shares: jobs, nodes, speeds, disturbances; and notes on them."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import click

from graphcost.cli.option_kinds import Quantity
from graphcost.cli.output import say
from graphcost.errors import UsageError
from graphcost.sim.scaling import scalings
from graphcost.sim.setup import Setup
from graphcost.units import parse_share


def _share(text: str) -> float:
    """Shares of load may be over 100 %."""
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise UsageError(f"{text!r} is not a load; write it like 90% or 0.9")
    return value


def setup_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Those of ``SetupOptions``."""
    share = Quantity(parse_share)
    options = (
        click.option("--scaling", default="hot", show_default=True, metavar="|".join(scalings()),
                     help="What a change of a job's tasks costs."),
        click.option("--speed-variation", type=share, default=0.0, metavar="SHARE", help="Of a job's slot."),
        click.option("--interference", type=share, default=0.0, metavar="SHARE", help="Loss beside other jobs."),
        click.option("--epoch-error", type=share, default=0.0, metavar="SHARE", help="Of users' estimates."),
        click.option("--measurement-noise", type=share, default=0.05, show_default=True, metavar="SHARE",
                     help="Of the speeds that optimus and pollux measure."),
    )  # fmt: skip
    return workload_options(reduce(lambda inner, option: option(inner), reversed(options), command))


def workload_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Those that a run for real has too: jobs, nodes, and the speeds that are told of them."""
    options = (
        click.option("--workload", default="dl2-release", show_default=True, metavar="NAME|FILE.toml",
                     help="Cluster, models, arrivals and lengths; `schedule list` shows those that ship."),
        click.option("--trace", type=Path, metavar="FILE", help="Recorded jobs; the columns tell the format."),
        click.option("--part", type=int, default=1, show_default=True, help="Of a trace that holds several."),
        click.option("--skip-bad-rows", is_flag=True, help="Leave out rows that cannot be read, and count them."),
        click.option("--count", type=int, metavar="N", help="Jobs of a trace (default: the workload's, or all)."),
        click.option("--nodes", type=int, help="Nodes (default: the workload's)."),
        click.option("--cpus-per-node", type=float, help="CPU cores of a node."),
        click.option("--gpus-per-node", type=float, help="GPUs of a node."),
        click.option("--slot", "slot_s", type=float, metavar="SECONDS", help="Time between decisions."),
        click.option("--speeds", metavar="KIND", help="fits:release, fits:development, analytical, engine:CLUSTER, "
                     "or a table FILE.csv (default: the workload's)."),
        click.option("--speed-source", metavar="TEXT", help="Which experiment of the table."),
        click.option("--arch", metavar="ps|allreduce", help="How jobs train (default: the workload's)."),
        click.option("--max-workers", type=int, help="Cap of a job's workers, and of its servers."),
        click.option("--oversized", type=click.Choice(["refuse", "queue"]), default="refuse", show_default=True,
                     help="Jobs that fit on no node: an error, or they wait for ever and count as unfinished."),
        click.option("--load", type=Quantity(_share), metavar="SHARE", help="Stretch arrivals to this offered load."),
    )  # fmt: skip
    return reduce(lambda inner, option: option(inner), reversed(options), command)


def say_about(setup: Setup, notes: tuple[str, ...], warning: str | None, *, quiet: bool) -> None:
    """On stderr: where a trace is from, what was skipped, notes, a warning."""
    if setup.trace is not None:
        say(f"{setup.trace.format} trace: {setup.trace.source}; licence: {setup.trace.licence}", quiet=quiet)
        for reason, count in setup.trace.skipped.items():
            say(f"{count:,} skipped: {reason}", quiet=quiet)
    for note in notes:
        say(note, quiet=quiet)
    if warning is not None:
        say(f"warning: {warning}", quiet=quiet)
