"""``graphcost diff``: two results, saved graphs or models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from graphcost.analysis import analyze_with
from graphcost.cli import completing
from graphcost.cli import options as shared
from graphcost.cli.completing import examples
from graphcost.cli.output import say, text_width, working_on, write_result
from graphcost.cli.training_options import input_options, training_options
from graphcost.diffing import Side, diff_models, read_sides, side_of
from graphcost.placing import AnalysisOptions, resolve
from graphcost.report.diff import DIFF_FORMATS, render_diff
from graphcost.sources import expand


@click.command(
    "diff",
    epilog=examples(
        "graphcost diff base.onnx model.onnx --gpus 8",
        "graphcost diff zoo:resnet50 zoo:resnet101 --gpus 8 --format markdown",
    ),
)
@click.argument("base", shell_complete=completing.models)
@click.argument("head", shell_complete=completing.models)
@shared.arch_option
@shared.gpus_option
@shared.placement_options
@shared.cluster_options
@shared.size_options
@training_options
@input_options
@click.option("--format", "form", type=click.Choice(list(DIFF_FORMATS)), default="text", show_default=True)
@click.option("--output", metavar="FILE", help="Write to a file instead of stdout.")
@click.option("--top", type=int, default=20, show_default=True, help="Kinds of changed operators shown.")
@shared.shared_flags
def command(
    base: str, head: str, form: str, output: str | None, top: int, quiet: bool, debug: bool, **values: Any
) -> int:
    """What changed from BASE to HEAD, in total and per operator.

    Each is a result's JSON (of analyze, count or check), a saved graph or a model; models are
    analysed with the options given. Operators are matched by structure, not by name. A
    difference is no finding: the exit code is 0.
    """
    options = shared.analysis_options(values)
    resolve(options)
    sides = [_sides(source, options, quiet=quiet) for source in (base, head)]
    write_result(render_diff(diff_models(*sides), form, top=top, width=text_width()), output)
    return 0


def _sides(source: str, options: AnalysisOptions, *, quiet: bool) -> list[Side]:
    if Path(source).suffix == ".json":
        read = read_sides(Path(source))
        if read is not None:
            return read
    found = []
    for name in expand(source):
        with working_on(f"analysing {name}", quiet=quiet):
            result = analyze_with(name, options, command="diff")
        for note in result.model.notes:
            say(f"{result.model.name}: {note}", quiet=quiet)
        found.append(side_of(result))
    return found
