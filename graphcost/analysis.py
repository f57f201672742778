"""The main job as a function: a model, a placement, a verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from graphcost._version import __version__
from graphcost.arch.async_ps import AsyncParameterServer
from graphcost.arch.product import Product
from graphcost.billing import bill_of
from graphcost.counts import MemoryInfo
from graphcost.described import (
    graph_info,
    message_info,
    model_info,
    placement_info,
    samples_of,
    step_info,
    training_info,
)  # fmt: skip
from graphcost.engine.roofs import roofs_of
from graphcost.errors import GraphcostError, UsageError
from graphcost.fitting import CONTEXT_BYTES, fits, largest_batch, memory_on
from graphcost.frontends.options import LoadOptions
from graphcost.global_batch import at_global_batch
from graphcost.graph import build_graph, totals
from graphcost.inference_graph import signs_of_inference
from graphcost.ir import BatchSource, Model
from graphcost.parallel.division import DividedPlan
from graphcost.per_op import op_rows
from graphcost.placing import AnalysisOptions, Choice, resolve
from graphcost.planning import plan_for
from graphcost.predict import Profile, StepTime, predict_async, predict_calibrated, predict_divided, predict_paper
from graphcost.registry import did_you_mean
from graphcost.result import (
    Analysis,
    Details,
    Finding,
)
from graphcost.sources import as_values, load_model
from graphcost.training import StepPlan
from graphcost.verdict import findings_of, judge, staleness_notes

if TYPE_CHECKING:
    from graphcost.graph import OpGraph

REBATCH = 32
"""A file fixed at batch 1 is also judged at this batch."""


def predict(plan: StepPlan, choice: Choice, options: AnalysisOptions) -> StepTime:
    """The step's time under the chosen profile."""
    if choice.profile is Profile.PAPER:
        return predict_paper(
            plan, choice.arch, choice.placement, overlap=choice.overlap, input_sharing=options.input_sharing
        )
    how: dict[str, Any] = {
        "overlap": choice.overlap, "bucketing": choice.bucketing, "pipeline": options.pipeline,
        "straggler_spread": options.straggler_spread,
    }  # fmt: skip
    if isinstance(plan, DividedPlan) and isinstance(choice.arch, Product):
        return predict_divided(plan, choice.arch, choice.placement, **how)
    if isinstance(choice.arch, AsyncParameterServer):
        return predict_async(plan, choice.arch, choice.placement, **how)
    return predict_calibrated(plan, choice.arch, choice.placement, **how)


def analyze_with(
    source: Any,
    options: AnalysisOptions,
    *,
    command: str = "analyze",
    example_inputs: Any = None,
    further: Callable[[Analysis, OpGraph, StepPlan], Analysis] | None = None,
) -> Analysis:
    """Load, plan, predict, judge. ``further`` adds to the result what only graph and plan know."""
    choice = resolve(options)
    options = at_global_batch(options, choice)
    graph = build_graph(load_model(source, options.load, example_inputs))
    plan = plan_for(graph, choice)
    result = analyze_graph(graph, options, choice, command=command, rebatch_source=source, plan=plan)
    if further is not None:
        result = further(result, graph, plan)
    if not options.max_batch:
        return result
    return replace(result, max_batch=largest_batch(source, options, choice, example_inputs))


def analyze_graph(
    graph: OpGraph,
    options: AnalysisOptions,
    choice: Choice,
    *,
    command: str = "analyze",
    rebatch_source: Any = None,
    plan: StepPlan | None = None,
) -> Analysis:
    """As ``analyze_with``, for a graph that is loaded already, and planned with the recipe of ``choice``."""
    plan = plan or plan_for(graph, choice)
    step = predict(plan, choice, options)
    found = totals(graph)
    model: Model = graph.graph["model"]
    verdict = judge(step, options.max_comm_share)
    at_32 = _share_at_32(model, choice, options, rebatch_source)
    device = choice.placement.cluster.device
    held = memory_on(plan, choice)
    memory = MemoryInfo(**asdict(held), context_bytes=CONTEXT_BYTES, fits=fits(held, device))
    return Analysis(
        graphcost_version=__version__,
        command=command,
        model=model_info(model),
        graph=graph_info(found, model),
        training=training_info(plan, memory),
        placement=placement_info(choice, plan, options),
        step=step_info(step, verdict, plan, choice, options, at_32),
        communication=tuple(message_info(message) for message in step.messages),
        bill=bill_of(step, choice, options, samples_of(plan, choice)),
        findings=(
            *_division_notes(plan),
            *staleness_notes(choice.placement),
            *findings_of(step, verdict, plan, found, choice.placement, memory, options.max_comm_share),
            *(
                signs_of_inference(model, larger=REBATCH if at_32 is not None else None)
                if choice.recipe.optimizer.name != "none"
                else ()
            ),
        ),
        ops=op_rows(graph, plan, step),
        predicted=step,
        details=Details(
            device.name, device.mem_bytes, device.mem_bytes_per_s, roofs_of(device, plan), plan.gradients
        ),
    )


def analyze(
    source: Any,
    example_inputs: Any = None,
    *,
    arch: str | None = None,
    gpus: int = 1,
    cluster: str | None = None,
    batch: int | None = None,
    dims: Mapping[str, int] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    input_values: Mapping[str, Any] | None = None,
    **options: Any,
) -> Analysis:
    """Predict a training step of ``source`` and judge its communication share.

    ``source`` is anything :func:`graphcost.load` takes. Further ``options`` are those of
    :class:`AnalysisOptions` (rates in bytes/s). Raises the errors of
    :mod:`graphcost.errors`; a flagged model is a result, not an error.

    >>> result = analyze("zoo:mlp", gpus=8, batch=64)
    >>> result.placement.arch, result.graph.params
    ('allreduce', 669706)
    """
    made = options_of(
        arch=arch, gpus=gpus, cluster=cluster, batch=batch, dims=dims, input_shapes=input_shapes,
        input_values=input_values, **options,
    )  # fmt: skip
    return analyze_with(source, made, example_inputs=example_inputs)


def options_of(
    *,
    batch: int | None = None,
    dims: Mapping[str, int] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    input_values: Mapping[str, Any] | None = None,
    **options: Any,
) -> AnalysisOptions:
    """Keywords of :func:`analyze` to ``AnalysisOptions``; raises ``UsageError`` for one that there is not."""
    values = {name: as_values(value) for name, value in (input_values or {}).items()}
    shapes = {name: tuple(shape) for name, shape in (input_shapes or {}).items()}
    try:
        return AnalysisOptions(load=LoadOptions(batch, dict(dims or {}), shapes, values), **options)
    except TypeError as error:
        known = list(AnalysisOptions.__dataclass_fields__)
        unknown = next((name for name in options if name not in known), "")
        raise UsageError(f"analyze() has no option {unknown!r}{did_you_mean(unknown, known)}") from error


_REBATCHED = frozenset({"onnx", "savedmodel", "tensorflow-graph", "keras", "keras-h5"})
"""Formats whose reader can follow another batch where a file fixes it."""


def _share_at_32(model: Model, choice: Choice, options: AnalysisOptions, source: Any) -> float | None:
    """The share at batch 32 of a file fixed at batch 1, where it can be re-batched; else None."""
    if model.batch != 1 or model.batch_source is not BatchSource.FILE or source is None:
        return None
    if model.format not in _REBATCHED:
        return None
    if options.load.batch is not None or choice.placement.gpus == 1:
        return None
    try:
        larger = load_model(source, replace(options.load, batch=REBATCH), base=model)
    except GraphcostError:
        return None
    return predict(plan_for(build_graph(larger), choice), choice, options).comm_share


def _division_notes(plan: StepPlan) -> tuple[Finding, ...]:
    notes = plan.notes if isinstance(plan, DividedPlan) else ()
    return tuple(Finding("division", "note", note, "graph") for note in notes)
