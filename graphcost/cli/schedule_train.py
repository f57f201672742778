"""``graphcost schedule train``: DL2 learns a policy on a workload or a trace; killed, it goes on where it was."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphcost.cli.completing import examples
from graphcost.cli.options import shared_flags
from graphcost.cli.output import say, text_width, working_on, write_result
from graphcost.cli.schedule_options import say_about, setup_options
from graphcost.errors import UsageError
from graphcost.report.plots.figure import check_plot
from graphcost.report.plots.schedule import learning_plot
from graphcost.report.tables import table_text
from graphcost.sim.learning.options import Record, TrainingOptions
from graphcost.sim.setup import SetupOptions, set_up
from graphcost.units import format_seconds

if TYPE_CHECKING:
    from graphcost.sim.learning.federated import Federation
    from graphcost.sim.learning.trainer import Trainer

_HELP = {
    "seed": "Of first weights, draws and exploration; traces have their own.",
    "teacher": "Scheduler that the warm-up imitates.",
    "network": "shared (the same layers for every job) or dense (DL2's own).",
    "hidden": "Units of a layer (DL2's paper: 256, dense).",
    "window": "Jobs that the policy sees: DL2's J.",
    "placement": "spread (DL2's), packed (Optimus's) or compact (a job never on more nodes than it needs).",
    "warm_up_traces": "Traces that the teacher shows.",
    "warm_up_updates": "Updates by cross-entropy; 0 starts from chance.",
    "warm_up_learning_rate": "At the start; falls in a line.",
    "updates": "Updates by reinforcement; 0 ends after the warm-up.",
    "updates_per_slot": "DL2: one.",
    "critic_updates": "First updates that teach the critic alone.",
    "learning_rate": "Of the policy, by reinforcement.",
    "value_learning_rate": "Of the critic.",
    "batch": "Samples an update.",
    "buffer": "Samples that are replayed.",
    "replay": "prioritised, plain or none.",
    "discount": "Of the next slot's value, under slot credit.",
    "entropy": "Weight of the entropy.",
    "explore": "Chance to override an action in a bad state.",
    "credit": "step (an action's own part), pace (all actions, by learned paces) or slot (DL2's: the slot's reward).",
    "train_traces": "Traces of the training split, again and again.",
    "validation_traces": "Traces that choose the policy; never those of a test.",
    "validate_every": "Updates between validations and checkpoints.",
    "clusters": "Clusters that share the policy and average gradients; batch, buffer and traces are divided.",
}
_FLAGS = {
    "starting_bundle": ("--starting-bundle/--no-starting-bundle", "Every job first gets a worker and a server."),
    "critic": ("--critic/--no-critic", "Value baseline."),
}


def _training_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """An option a field of ``TrainingOptions``, with its default."""
    made = []
    for one in fields(TrainingOptions):
        if one.name in _FLAGS:
            names, text = _FLAGS[one.name]
            made.append(click.option(names, one.name, default=one.default, show_default=True, help=text))
        else:
            made.append(
                click.option(
                    f"--{one.name.replace('_', '-')}", one.name, type=type(one.default), default=one.default,
                    show_default=True, help=_HELP[one.name],
                )
            )  # fmt: skip
    return reduce(lambda inner, option: option(inner), reversed(made), command)


@click.command(
    "train",
    epilog=examples(
        "graphcost schedule train --count 8 --nodes 6 --warm-up-updates 60 --updates 60 --output policy.pt",
    ),
)
@click.option("--output", required=True, type=Path, metavar="FILE.pt", help="The policy, for `compare --policy`.")
@click.option("--resume", is_flag=True, help="Go on from the training state beside --output.")
@click.option("--overwrite", is_flag=True, help="Begin anew although there is a training state.")
@_training_options
@setup_options
@click.option("--log", metavar="FILE.csv", help="The learning curve, a line a validation.")
@click.option("--plot", metavar="FILE", help="The learning curve: png, svg, pdf.")
@click.option("--tensorboard", metavar="FOLDER", help="The learning curve for TensorBoard.")
@shared_flags
def train_command(
    output: Path, resume: bool, overwrite: bool, log: str | None, plot: str | None, tensorboard: str | None,
    quiet: bool, debug: bool, **options: Any,
) -> None:  # fmt: skip
    """Teach DL2 a policy: imitate a teacher, then actor-critic on training traces; keep the best on validation.

    Beside FILE.pt lies FILE.training.pt, renewed at every validation: after a kill `--resume` with the same options
    gives the same curve. Report a policy by `schedule compare --policy FILE.pt`, whose test traces are others.
    """
    names = {one.name for one in fields(TrainingOptions)}
    training = TrainingOptions(**{name: value for name, value in options.items() if name in names})
    wanted = SetupOptions(**{name: value for name, value in options.items() if name not in names})
    state = output.with_suffix(".training.pt")
    _check_files(output, state, plot, resume=resume, overwrite=overwrite)
    from graphcost.sched.dl2 import checkpoint
    from graphcost.sched.dl2.network import torch_module

    torch_module().set_num_threads(1)  # the networks are small, and sums come out in the same order everywhere
    with working_on("setting up", quiet=quiet), _curve_of(tensorboard) as curve:
        from graphcost.sim.learning.federated import trainer_of

        setup = set_up(wanted)
        say_about(setup, (), None, quiet=quiet)
        trainer = trainer_of(setup, training)
        if resume:
            trainer.restore(checkpoint.read(state, checkpoint.TRAINING), str(state))
            say(f"resumed after {len(trainer.records)} validations", quiet=quiet)
        teacher_s = trainer.teacher_jct_s()
        start, done_before = time.monotonic(), trainer.progress_share
        for record in trainer.run():
            checkpoint.write(state, checkpoint.TRAINING, trainer.contents())
            _write_policy(trainer, output)
            if log is not None:
                write_result(learning_log(trainer.records), log)
            curve(record)
            share = trainer.progress_share
            passed_s = time.monotonic() - start
            left_s = passed_s * (1 - share) / (share - done_before) if share > done_before else None
            say(_progress(record, teacher_s, share, left_s), quiet=quiet)
    if plot is not None:
        learning_plot(trainer.records, [(trainer.teacher.name, teacher_s)], plot)
    write_result(_summary(trainer, teacher_s, output))


def _check_files(output: Path, state: Path, plot: str | None, *, resume: bool, overwrite: bool) -> None:
    """What would fail at the end fails at once."""
    if output.suffix != ".pt":
        raise UsageError(f"--output {output}: a policy's suffix is .pt")
    if not output.parent.is_dir():
        raise UsageError(f"--output {output}: no folder {output.parent}")
    if state.exists() and not resume and not overwrite:
        raise UsageError(f"{state}: a training state is there; --resume goes on with it, --overwrite begins anew")
    if plot is not None:
        check_plot(plot)


def _write_policy(trainer: Trainer | Federation, output: Path) -> None:
    from graphcost.sched.dl2 import checkpoint

    best = min(trainer.records, key=lambda record: record.mean_jct_s)
    origin = {
        "options": trainer.contents_options(),
        "phase": best.phase, "updates": best.updates, "validation_mean_jct_s": best.mean_jct_s,
    }  # fmt: skip
    checkpoint.save_policy(output, trainer.best_policy(), origin)


def learning_log(records: Sequence[Record]) -> str:
    """The curve as CSV; no times of day, so that a resumed run writes the same."""
    out = io.StringIO()
    writer = csv.DictWriter(out, [one.name for one in fields(Record)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(record) for record in records)
    return out.getvalue()


@contextmanager
def _curve_of(folder: str | None) -> Iterator[Callable[[Record], None]]:
    """Writes records for TensorBoard; nothing without a folder. Raises ``UsageError`` where it is not installed."""
    if folder is None:
        yield lambda record: None
        return
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise UsageError("--tensorboard needs tensorboard: pip install 'graphcost[tensorboard]'") from None
    with SummaryWriter(folder) as writer:

        def add(record: Record) -> None:
            for name, value in asdict(record).items():
                if isinstance(value, float):
                    writer.add_scalar(f"{record.phase}/{name}", value, record.updates)
            writer.flush()  # a killed run keeps what it has told

        yield add


def _progress(record: Record, teacher_s: float, share: float, left_s: float | None) -> str:
    loss = "" if record.policy_loss is None else f", loss {record.policy_loss:.4g}"
    spread = "" if record.entropy is None else f", entropy {record.entropy:.3g}"
    ahead = "" if left_s is None else f", {format_seconds(left_s)} left"
    mark = ", best so far" if record.best else ""
    return (
        f"{share:4.0%} {record.phase} {record.updates}{loss}{spread}, mean completion {record.mean_jct_s:,.0f} s "
        f"(teacher {teacher_s:,.0f} s){mark}{ahead}"
    )


def _summary(trainer: Trainer | Federation, teacher_s: float, output: Path) -> str:
    best = min(trainer.records, key=lambda record: record.mean_jct_s)
    warmed = [record for record in trainer.records if record.phase == "warm-up"]
    rows = [(f"teacher {trainer.teacher.name}", f"{teacher_s:,.0f} s", "")]
    rows += [("after the warm-up", *_against(record.mean_jct_s, teacher_s)) for record in warmed[-1:]]
    rows.append((f"kept ({best.phase} {best.updates})", *_against(best.mean_jct_s, teacher_s)))
    traces = trainer.options.validation_traces
    return (
        table_text(("policy", "mean completion", "teacher"), rows, right=(1, 2), width=text_width())
        + f"\nThe {traces} validation traces chose the policy, so this is no test of it: "
        + f"`graphcost schedule compare --policy {output}` is."
    )


def _against(mean_s: float, teacher_s: float) -> tuple[str, str]:
    return f"{mean_s:,.0f} s", f"{100 * (mean_s / teacher_s - 1):+.1f} %"
