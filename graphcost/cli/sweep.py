"""``graphcost sweep``: how a step follows each resource."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from graphcost.cli import options as shared
from graphcost.cli.analyze import tell
from graphcost.cli.completing import examples
from graphcost.cli.output import text_width, working_on, write_reports
from graphcost.cli.training_options import input_options, training_options
from graphcost.errors import UsageError
from graphcost.report.plots import check_plot, lines_of, sweep_plot
from graphcost.report.sweep import SWEEP_FORMATS, render_sweep
from graphcost.resources import RESOURCES, values_of
from graphcost.sweeping import sweep_model


@click.command(
    "sweep",
    epilog=examples(
        "graphcost sweep model.onnx --gpus 16 --vary network=10,25,100Gb/s",
        "graphcost sweep zoo:resnet50 --gpus 8 --vary peak=100..1000TFLOP/s:7 --vary mem-bandwidth=1,2,4TB/s",
        "graphcost sweep zoo:bert-base --gpus 16 --vary network=10..100Gb/s --vary batch=8,16,32 --grid",
        "graphcost sweep model.onnx --arch ps --gpus 8 --vary network=10,25,100Gb/s --output sweep.csv",
    ),
)
@shared.model_argument
@click.option(
    "--vary", "varied", multiple=True, required=True, metavar="RESOURCE=VALUES",
    help=f"Repeatable. Resources: {', '.join(RESOURCES)}. Values: 10,25,100Gb/s or 10..100Gb/s:7 (7 values of equal "
    "ratio; 5 without a number); the last unit goes for all.",
)  # fmt: skip
@click.option("--grid", is_flag=True, help="Every combination, instead of one resource at a time.")
@shared.arch_option
@shared.gpus_option
@shared.placement_options
@shared.cluster_options
@shared.size_options
@training_options
@input_options
@shared.limit_option
@click.option("--format", "form", type=click.Choice(list(SWEEP_FORMATS)), default="text", show_default=True)
@shared.outputs_option
@shared.plot_option
@shared.shared_flags
def command(
    model: str,
    varied: tuple[str, ...],
    grid: bool,
    form: str,
    outputs: tuple[str, ...],
    plots: tuple[str, ...],
    **values: Any,
) -> int:
    """Predict MODEL over values of each resource, everything else as given.

    A row is one value: step, communication share, verdict, and the speed-up in samples per
    second. Elasticities say which resource the step depends on.
    """
    options = shared.analysis_options(values)
    for plot in plots:
        check_plot(plot)
    with working_on(f"sweeping {model}", quiet=values["quiet"]):
        found = sweep_model(shared.single_model(model), options, varied_values(varied), grid=grid)
    tell(found.analysis, quiet=values["quiet"])
    write_reports(lambda chosen: render_sweep(found, chosen, width=text_width()), form, outputs, SWEEP_FORMATS)
    for plot in plots:
        sweep_plot(lines_of(found), plot)
    return 0


def varied_values(items: Iterable[str]) -> dict[str, tuple[float, ...]]:
    """``--vary`` texts as values by resource; several for one resource are joined."""
    found: dict[str, tuple[float, ...]] = {}
    for item in items:
        name, separator, text = item.partition("=")
        if not separator or not name.strip() or not text.strip():
            raise UsageError(f"--vary {item!r}: write it as RESOURCE=VALUES, e.g. network=10,25,100Gb/s")
        resource = RESOURCES.find(name.strip())
        found[resource.name] = tuple(dict.fromkeys((*found.get(resource.name, ()), *values_of(resource, text))))
    return found
