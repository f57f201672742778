"""``graphcost count``: the forward pass, no cluster."""

from __future__ import annotations

from typing import Any

import click

from graphcost.cli import options as shared
from graphcost.cli.completing import examples
from graphcost.cli.output import say, text_width, working_on, write_result
from graphcost.counting import Count, count_model
from graphcost.errors import CoverageError, GraphcostError
from graphcost.report.count import COUNT_FORMATS, render_counts
from graphcost.sources import expand


@click.command(
    "count",
    epilog=examples(
        "graphcost count model.onnx zoo:resnet50",
        "graphcost count zoo:bert-base --batch 1 --dim seq=512 --format latex",
    ),
)
@shared.models_argument
@shared.size_options
@click.option("--format", "form", type=click.Choice(list(COUNT_FORMATS)), default="text", show_default=True)
@click.option("--output", metavar="FILE", help="Write to a file instead of stdout.")
@click.option("--strict", is_flag=True, help="Operators without a rule are an error (exit 4).")
@shared.shared_flags
def command(
    models: tuple[str, ...], form: str, output: str | None, strict: bool, quiet: bool, debug: bool, **sizes: Any
) -> int:
    """FLOPs, MACs, bytes and parameters of one forward pass of each MODEL."""
    options = shared.load_options(**sizes)
    names = [name for model in models for name in expand(model)]
    counts: list[Count] = []
    code = 0
    for source in names:
        try:
            with working_on(f"counting {source}", quiet=quiet):
                count = count_model(source, options)
            counts.append(count)
            for note in count.notes:
                say(f"{count.name}: {note}", quiet=quiet)
            if count.unknown:
                listed = ", ".join(f"{entry.op_type} ({entry.count})" for entry in count.unknown)
                if strict:
                    raise CoverageError(f"{source}: operators without a rule: {listed}")
                say(f"warning: {count.name}: not counted, no rule: {listed}", quiet=quiet)
        except GraphcostError as error:
            if len(names) == 1 and not counts:
                raise
            say(f"error: {error}")
            code = max(code, error.exit_code)
    if counts:
        write_result(render_counts(counts, form, width=text_width()), output)
    return code
