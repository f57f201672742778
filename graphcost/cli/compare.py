"""``graphcost compare``: one model under every architecture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from graphcost.cli import completing
from graphcost.cli import options as shared
from graphcost.cli.completing import examples
from graphcost.cli.option_kinds import Quantity
from graphcost.cli.output import say, text_width, working_on, write_result
from graphcost.cli.training_options import input_options, training_options
from graphcost.comparison import Comparison, compare_model
from graphcost.errors import GraphcostError, UsageError
from graphcost.pareto import Pareto, pareto_model, priced_clusters
from graphcost.report.comparison import COMPARE_FORMATS, render_comparisons
from graphcost.report.pareto import PARETO_FORMATS, render_pareto
from graphcost.report.plots import check_plot, comparison_plot, pareto_plot
from graphcost.report.search import SEARCH_FORMATS, render_searches
from graphcost.searching import Search, find_best
from graphcost.sources import expand
from graphcost.units import parse_share


@click.command(
    "compare",
    epilog=examples(
        "graphcost compare zoo:vgg16 --gpus 1,2,4,8,16",
        "graphcost compare model.onnx --pareto --cluster aws-p4d,aws-p5 --gpus 8,16",
    ),
)
@shared.models_argument
@click.option("--gpus", default="8", show_default=True, metavar="N[,N...]", help="GPU counts, e.g. 1,2,4,8,16.")
@click.option(
    "--arch", "archs", multiple=True, help="Only these architectures (repeatable).",
    shell_complete=completing.architectures,
)  # fmt: skip
@shared.placement_options
@shared.cluster_options
@shared.size_options
@shared.global_batch_option
@training_options
@input_options
@shared.price_option
@click.option("--max-comm-share", type=Quantity(parse_share), metavar="SHARE", default="50%", show_default=True)
@click.option("--format", "form", type=click.Choice(list(COMPARE_FORMATS)), default="text", show_default=True)
@click.option("--output", metavar="FILE", help="Write to a file instead of stdout.")
@click.option(
    "--pareto",
    is_flag=True,
    help="Time against money and energy over --cluster A,B,C (none named: all with a price) and --gpus.",
)
@click.option(
    "--best",
    is_flag=True,
    help="The fastest mesh of tensor, pipeline and data parallelism for each of --gpus, within memory.",
)
@shared.plot_option
@shared.shared_flags
def command(
    models: tuple[str, ...],
    gpus: str,
    archs: tuple[str, ...],
    form: str,
    output: str | None,
    pareto: bool,
    best: bool,
    plots: tuple[str, ...],
    **values: Any,
) -> int:
    """Rank the architectures that can hold each MODEL by throughput; the others are named with the reason.

    With --pareto: the placements that no other beats in time, cost and energy at once, and all
    others with one that beats them. With --best: meshes such as tp=4,pp=2,dp=8, each of --gpus on
    its own, with what the runners-up lose by.
    """
    options = shared.analysis_options(values)
    if best:
        _refuse_beside_best(pareto, plots, archs, form)
    if pareto and form not in PARETO_FORMATS:
        raise UsageError(f"--pareto is a table: --format {', '.join(PARETO_FORMATS)}, and a --plot")
    for plot in plots:
        check_plot(plot)
    counts = [_gpu_count(text) for text in gpus.split(",")]
    clusters = _clusters(values["cluster"], pareto)
    names = [name for model in models for name in expand(model)]
    found: list[Any] = []
    code = 0
    for source in names:
        try:
            with working_on(f"comparing {source}", quiet=values["quiet"]):
                done: Sequence[Comparison | Pareto | Search]
                if best:
                    done = [find_best(source, options, count) for count in counts]
                elif pareto:
                    done = [pareto_model(source, options, clusters, counts, archs)]
                else:
                    done = [compare_model(source, options, counts, archs)]
            found += done
            for note in dict.fromkeys(note for one in done for note in one.notes):
                say(note, quiet=values["quiet"])
        except GraphcostError as error:
            if len(names) == 1:
                raise
            say(f"error: {error}")
            code = max(code, error.exit_code)
    if found:
        render: Any = render_searches if best else render_pareto if pareto else render_comparisons
        write_result(render(found, form, width=text_width()), output)
        for plot in plots:
            (pareto_plot if pareto else comparison_plot)(found, plot)
    return code


def _refuse_beside_best(pareto: bool, plots: tuple[str, ...], archs: tuple[str, ...], form: str) -> None:
    """What ``--best`` does not go with; raises ``UsageError``."""
    if pareto:
        raise UsageError("--best and --pareto are two questions; ask one")
    if archs:
        raise UsageError("--best tries every mesh; leave out --arch")
    if plots or form not in SEARCH_FORMATS:
        raise UsageError(f"--best is a table: --format {', '.join(SEARCH_FORMATS)}, and no --plot")


def _clusters(text: str | None, pareto: bool) -> list[str]:
    """The clusters of ``--pareto``; raises ``UsageError`` for several without it."""
    if text is None:
        return list(priced_clusters()) if pareto else []
    named = [text] if Path(text).is_file() else [part.strip() for part in text.split(",") if part.strip()]
    if len(named) != 1 and not pareto:
        raise UsageError(f"--cluster {text}: several clusters go with --pareto")
    if not named:
        raise UsageError(f"--cluster {text!r}: name clusters, e.g. aws-p3.16xlarge,aws-p4d")
    return named


def _gpu_count(text: str) -> int:
    try:
        count = int(text)
    except ValueError:
        raise UsageError(f"--gpus {text!r}: write whole numbers, e.g. 1,2,4,8") from None
    if count < 1:
        raise UsageError(f"--gpus {count}: a job has at least one GPU")
    return count
