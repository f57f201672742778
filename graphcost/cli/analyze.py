"""``graphcost analyze``: the main job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import click

from graphcost.analysis import analyze_with
from graphcost.cli import options as shared
from graphcost.cli.completing import examples
from graphcost.cli.output import checked_outputs, say, text_width, working_on, write_results
from graphcost.cli.training_options import input_options, training_options
from graphcost.comparison import analyze_in_detail
from graphcost.errors import exit_code_of as error_code
from graphcost.errors import message_of
from graphcost.many import LOCAL, each
from graphcost.placing import AnalysisOptions, resolve
from graphcost.report import render
from graphcost.report.plots import analysis_plot, check_plot
from graphcost.result import Analysis
from graphcost.sources import expand
from graphcost.symbolic import symbolic_of, symbolic_to_dict
from graphcost.verdict import Verdict, require_coverage


@dataclass(slots=True)
class Outcome:
    """Results of several models and the largest exit code."""

    results: list[Analysis] = field(default_factory=list)
    code: int = 0

    def raise_to(self, code: int) -> None:
        """Keep the larger code."""
        self.code = max(self.code, code)


@click.command(
    "analyze",
    epilog=examples(
        "graphcost analyze zoo:resnet50 --arch allreduce --gpus 8",
        "graphcost analyze model.onnx --gpus 16 --cluster aws-p3.16xlarge --max-comm-share 40%",
        "graphcost analyze zoo:bert-base --gpus 8 --batch 8 --output report.html --output step.trace.json",
        "graphcost analyze model.onnx zoo:vgg16 --gpus 8 --network 25Gb/s --format json",
    ),
)
@shared.models_argument
@shared.arch_option
@shared.gpus_option
@shared.placement_options
@shared.cluster_options
@shared.size_options
@shared.global_batch_option
@training_options
@input_options
@shared.price_option
@shared.verdict_options
@shared.format_options
@click.option("--top", type=int, default=10, show_default=True, help="Heaviest operators shown.")
@click.option("--per-op", is_flag=True, help="Every operator.")
@click.option(
    "--by", type=click.Choice(["module", "op", "class"]), help="Sum operators by module, operator or class."
)
@shared.plot_option
@shared.symbolic_option
@click.option("--max-batch", is_flag=True, help="Largest batch that fits on the device.")
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Models analysed at once.")
@shared.backend_option
@shared.shared_flags
def command(
    models: tuple[str, ...],
    form: str,
    outputs: tuple[str, ...],
    plots: tuple[str, ...],
    top: int,
    per_op: bool,
    by: str | None,
    **values: Any,
) -> int:
    """Predict one training step of each MODEL on a cluster and judge its communication share.

    Exit 1 when a model is flagged: its communication share, interval included, is over
    --max-comm-share.
    """
    options = shared.analysis_options(values)
    resolve(options)  # a wrong name or placement fails before any file is read
    files = checked_outputs(outputs)
    for plot in plots:
        check_plot(plot)
    values["detailed"] = "html" in (form, *(its_form for its_form, _ in files))
    outcome = analyze_all([name for model in models for name in expand(model)], options, values)
    if outcome.results:
        detail = {"top": top, "per_op": per_op, "by": by, "width": text_width()}
        write_results(lambda one: render(outcome.results, one, **detail), form, files)
        for plot in plots:
            analysis_plot(outcome.results, plot)
    return 0 if outcome.code == 1 and values["exit_zero"] else outcome.code


def analyze_all(sources: Iterable[str], options: AnalysisOptions, values: dict[str, Any]) -> Outcome:
    """Analyse every source, in order; one that fails is reported and the others go on."""
    outcome = Outcome()
    names = list(sources)
    for found in _analysed(names, options, values):
        try:
            if isinstance(found, Exception):
                raise found
            outcome.results.append(found)
            tell(found, quiet=values["quiet"])
            outcome.raise_to(exit_code_of(found, values))
            check_coverage(found, values)
        except Exception as error:
            if len(names) == 1 and not outcome.results:
                raise
            say(f"error: {' '.join(message_of(error).split())}")
            outcome.raise_to(error_code(error))
    return outcome


def _analysed(names: list[str], options: AnalysisOptions, values: dict[str, Any]) -> Iterator[Analysis | Exception]:
    """Results in the order of ``names``, from this process or from ``--workers``."""
    jobs = [(name, options, values["symbolic"], values.get("detailed", False)) for name in names]
    workers, quiet = min(values["workers"], len(names)), values["quiet"]
    if workers > 1 or values["backend"] != LOCAL:
        with working_on(f"analysing {len(names)} models", quiet=quiet):
            yield from each(_one, jobs, workers=workers, backend=values["backend"])
        return
    for job in jobs:
        with working_on(f"analysing {job[0]}", quiet=quiet):
            (found,) = each(_one, [job], backend=values["backend"])
        yield found


def _one(job: tuple[str, AnalysisOptions, bool, bool]) -> Analysis:
    source, options, symbolic, detailed = job
    result = analyze_in_detail(source, options) if detailed else analyze_with(source, options)
    return replace(result, symbolic=symbolic_to_dict(symbolic_of(source, options.load))) if symbolic else result


def exit_code_of(result: Analysis, values: dict[str, Any]) -> int:
    """1 for a flagged model, and for a doubtful one under ``--on-doubt fail``."""
    doubtful = result.step.verdict == Verdict.TOO_CLOSE and values["on_doubt"] == "fail"
    return 1 if result.step.flagged or doubtful else 0


def tell(result: Analysis, *, quiet: bool) -> None:
    """Notes and warnings on stderr."""
    for note in result.model.notes:
        say(f"{result.model.name}: {note}", quiet=quiet)
    for finding in result.findings:
        if finding.level in ("warning", "note"):
            say(f"{finding.level}: {result.model.name}: {finding.message}", quiet=quiet)


def check_coverage(result: Analysis, values: Mapping[str, Any]) -> None:
    """Raise ``CoverageError`` as ``--strict`` and ``--min-coverage`` ask."""
    require_coverage(result, 1.0 if values["strict"] else values["min_coverage"])
