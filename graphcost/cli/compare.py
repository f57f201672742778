"""``graphcost compare``: one model under every architecture."""

from __future__ import annotations

from typing import Any

import click

from graphcost.cli import options as shared
from graphcost.cli.output import say, text_width, working_on, write_result
from graphcost.comparison import Comparison, compare_model
from graphcost.errors import GraphcostError, UsageError
from graphcost.report.comparison import COMPARE_FORMATS, render_comparisons
from graphcost.report.plots import check_plot, comparison_plot
from graphcost.sources import expand
from graphcost.units import parse_share


@click.command("compare")
@shared.models_argument
@click.option("--gpus", default="8", show_default=True, metavar="N[,N...]", help="GPU counts, e.g. 1,2,4,8,16.")
@click.option("--arch", "archs", multiple=True, help="Only these architectures (repeatable).")
@shared.placement_options
@shared.cluster_options
@shared.size_options
@shared.training_options
@shared.input_options
@click.option(
    "--max-comm-share", type=shared.Quantity(parse_share), metavar="SHARE", default="50%", show_default=True
)
@click.option("--format", "form", type=click.Choice(list(COMPARE_FORMATS)), default="text", show_default=True)
@click.option("--output", metavar="FILE", help="Write to a file instead of stdout.")
@shared.plot_option
@shared.shared_flags
def command(
    models: tuple[str, ...],
    gpus: str,
    archs: tuple[str, ...],
    form: str,
    output: str | None,
    plots: tuple[str, ...],
    **values: Any,
) -> int:
    """Rank the architectures that can hold each MODEL by throughput; the others are named with the reason."""
    options = shared.analysis_options(values)
    for plot in plots:
        check_plot(plot)
    counts = [_gpu_count(text) for text in gpus.split(",")]
    names = [name for model in models for name in expand(model)]
    found: list[Comparison] = []
    code = 0
    for source in names:
        try:
            with working_on(f"comparing {source}", quiet=values["quiet"]):
                comparison = compare_model(source, options, counts, archs)
            found.append(comparison)
            for note in comparison.notes:
                say(note, quiet=values["quiet"])
        except GraphcostError as error:
            if len(names) == 1:
                raise
            say(f"error: {error}")
            code = max(code, error.exit_code)
    if found:
        write_result(render_comparisons(found, form, width=text_width()), output)
        for plot in plots:
            comparison_plot(found, plot)
    return code


def _gpu_count(text: str) -> int:
    try:
        count = int(text)
    except ValueError:
        raise UsageError(f"--gpus {text!r}: write whole numbers, e.g. 1,2,4,8") from None
    if count < 1:
        raise UsageError(f"--gpus {count}: a job has at least one GPU")
    return count
