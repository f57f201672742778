"""``graphcost advise``: what takes a model under its limit, and by how much."""

from __future__ import annotations

from typing import Any

import click

from graphcost.advising import advise_model
from graphcost.cli import options as shared
from graphcost.cli.analyze import check_coverage, exit_code_of, tell
from graphcost.cli.completing import examples
from graphcost.cli.output import text_width, working_on, write_reports
from graphcost.cli.training_options import input_options, training_options
from graphcost.report.advice import ADVICE_FORMATS, render_advice


@click.command(
    "advise",
    epilog=examples(
        "graphcost advise model.onnx --gpus 16 --cluster aws-p3.16xlarge",
        "graphcost advise zoo:bert-base --gpus 32 --network 25Gb/s --max-comm-share 30%",
        "graphcost advise model.onnx --gpus 8 --profile paper --cluster pai-paper-base --format json",
    ),
)
@shared.model_argument
@shared.arch_option
@shared.gpus_option
@shared.placement_options
@shared.cluster_options
@shared.size_options
@training_options
@input_options
@shared.verdict_options
@click.option("--format", "form", type=click.Choice(list(ADVICE_FORMATS)), default="text", show_default=True)
@shared.outputs_option
@shared.shared_flags
def command(model: str, form: str, outputs: tuple[str, ...], **values: Any) -> int:
    """The smallest changes that take MODEL under --max-comm-share, and its break-even values.

    A change is advised where the model is then clear, interval included, fits in memory and
    loses no samples per second. Order: settings, batch, GPUs and servers, architecture,
    hardware. A model that is clear gets the margins of every resource. Exit 1 when the model
    is flagged as it is.
    """
    options = shared.analysis_options(values)
    with working_on(f"trying changes of {model}", quiet=values["quiet"]):
        found = advise_model(shared.single_model(model), options)
    assert found.analysis is not None
    tell(found.analysis, quiet=values["quiet"])
    check_coverage(found.analysis, values)
    write_reports(lambda chosen: render_advice(found, chosen, width=text_width()), form, outputs, ADVICE_FORMATS)
    code = exit_code_of(found.analysis, values)
    return 0 if values["exit_zero"] else code
