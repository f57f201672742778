"""``graphcost analyze``: the main job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import click

from graphcost.analysis import analyze_with
from graphcost.cli import options as shared
from graphcost.cli.output import say, text_width, working_on, write_result
from graphcost.comparison import analyze_in_detail
from graphcost.errors import CoverageError, GraphcostError
from graphcost.placing import AnalysisOptions, resolve
from graphcost.report import FORMATS, format_of, render
from graphcost.report.plots import analysis_plot, check_plot
from graphcost.result import Analysis
from graphcost.sources import expand
from graphcost.symbolic import symbolic_of, symbolic_to_dict
from graphcost.verdict import Verdict


@dataclass(slots=True)
class Outcome:
    """Results of several models and the largest exit code."""

    results: list[Analysis] = field(default_factory=list)
    code: int = 0

    def raise_to(self, code: int) -> None:
        """Keep the larger code."""
        self.code = max(self.code, code)


@click.command("analyze")
@shared.models_argument
@shared.arch_option
@shared.gpus_option
@shared.placement_options
@shared.cluster_options
@shared.size_options
@shared.training_options
@shared.input_options
@shared.verdict_options
@click.option("--format", "form", type=click.Choice(sorted(FORMATS)), default="text", show_default=True)
@click.option(
    "--output", "outputs", multiple=True, metavar="FILE", help="Write to a file; its suffix chooses the format."
)
@click.option("--top", type=int, default=10, show_default=True, help="Heaviest operators shown.")
@click.option("--per-op", is_flag=True, help="Every operator.")
@click.option(
    "--by", type=click.Choice(["module", "op", "class"]), help="Sum operators by module, operator or class."
)
@shared.plot_option
@shared.symbolic_option
@click.option("--max-batch", is_flag=True, help="Largest batch that fits on the device.")
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Models analysed at once.")
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
    forms = [format_of(output) for output in outputs]  # so does a suffix
    for plot in plots:
        check_plot(plot)
    values["detailed"] = "html" in (form, *forms)
    outcome = analyze_all([name for model in models for name in expand(model)], options, values)
    if outcome.results:
        detail = {"top": top, "per_op": per_op, "by": by, "width": text_width()}
        if not outputs or form != "text":
            write_result(render(outcome.results, form, **detail))
        for output, its_form in zip(outputs, forms, strict=True):
            write_result(render(outcome.results, its_form, **detail), output)
        for plot in plots:
            analysis_plot(outcome.results, plot)
    return 0 if outcome.code == 1 and values["exit_zero"] else outcome.code


def analyze_all(sources: Iterable[str], options: AnalysisOptions, values: dict[str, Any]) -> Outcome:
    """Analyse every source, in order; one that fails is reported and the others go on."""
    outcome = Outcome()
    names = list(sources)
    for found in _analysed(names, options, values):
        try:
            if isinstance(found, GraphcostError):
                raise found
            outcome.results.append(found)
            tell(found, quiet=values["quiet"])
            outcome.raise_to(exit_code_of(found, values))
            check_coverage(found, values)
        except GraphcostError as error:
            if len(names) == 1 and not outcome.results:
                raise
            say(f"error: {error}")
            outcome.raise_to(error.exit_code)
    return outcome


def _analysed(
    names: list[str], options: AnalysisOptions, values: dict[str, Any]
) -> Iterator[Analysis | GraphcostError]:
    """Results in the order of ``names``, from this process or from ``--workers``."""
    jobs = [(name, options, values["symbolic"], values.get("detailed", False)) for name in names]
    workers = min(values["workers"], len(names))
    if workers > 1:
        with (
            working_on(f"analysing {len(names)} models", quiet=values["quiet"]),
            ProcessPoolExecutor(workers) as pool,
        ):
            yield from pool.map(_one, jobs)
        return
    for job in jobs:
        with working_on(f"analysing {job[0]}", quiet=values["quiet"]):
            found = _one(job)
        yield found


def _one(job: tuple[str, AnalysisOptions, bool, bool]) -> Analysis | GraphcostError:
    """One analysis; an error is a result, so that it can cross processes."""
    source, options, symbolic, detailed = job
    try:
        result = analyze_in_detail(source, options) if detailed else analyze_with(source, options)
        return replace(result, symbolic=symbolic_to_dict(symbolic_of(source, options.load))) if symbolic else result
    except GraphcostError as error:
        error.__cause__ = None  # causes hold what does not pickle
        return error


def exit_code_of(result: Analysis, values: dict[str, Any]) -> int:
    """1 for a flagged model, and for a doubtful one under ``--on-doubt fail``."""
    doubtful = result.step.verdict == Verdict.TOO_CLOSE and values["on_doubt"] == "fail"
    return 1 if result.step.flagged or doubtful else 0


def tell(result: Analysis, *, quiet: bool) -> None:
    """Notes and warnings on stderr."""
    for note in result.model.notes:
        say(f"{result.model.name}: {note}", quiet=quiet)
    for finding in result.findings:
        if finding.level == "warning":
            say(f"warning: {result.model.name}: {finding.message}", quiet=quiet)


def check_coverage(result: Analysis, values: dict[str, Any]) -> None:
    """Raise ``CoverageError`` where too many operators have no rule."""
    coverage = result.graph.coverage
    missing = sum(entry.count for entry in coverage.unknown)
    total = coverage.counted + coverage.free + missing
    share = 1.0 if total == 0 else 1 - missing / total
    least = 1.0 if values["strict"] else values["min_coverage"]
    if least is not None and share < least:
        names = ", ".join(f"{entry.op_type} ({entry.count})" for entry in coverage.unknown)
        raise CoverageError(
            f"{result.model.source}: {share:.1%} of operators have a rule, {least:.1%} are required; "
            f"without one: {names}"
        )
