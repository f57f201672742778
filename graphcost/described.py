"""From model, plan and prediction to the parts of a result; nothing is computed here that is not in them."""

from __future__ import annotations

from dataclasses import asdict

from graphcost.counts import BytesInfo, CoverageInfo, GraphInfo, MemoryInfo, TrainingInfo, UnknownInfo
from graphcost.graph import GraphTotals
from graphcost.ir import BatchSource, Model, Phase
from graphcost.placing import AnalysisOptions, Choice
from graphcost.predict import Message, StepTime
from graphcost.result import InputInfo, MessageInfo, ModelInfo, PlacementInfo, StepInfo
from graphcost.training import StepPlan
from graphcost.verdict import Verdict, reason_of


def samples_of(plan: StepPlan, choice: Choice) -> int | None:
    """Samples of the whole job in a step; None for a model without a batch."""
    return None if plan.batch is None else plan.batch * choice.replicas * plan.recipe.accumulate


def samples_per_s(step: StepTime, plan: StepPlan, choice: Choice) -> float | None:
    """Samples of the whole job per second; None for a model without a batch."""
    samples = samples_of(plan, choice)
    return None if samples is None or step.step_s == 0 else samples / step.step_s


def model_info(model: Model) -> ModelInfo:
    """What was read, with the sizes it was given."""
    notes = list(model.notes)
    if model.batch_source is BatchSource.ASSUMED:
        notes.append(f"batch {model.batch} is assumed; --batch sets it")
    return ModelInfo(
        source=model.source,
        name=model.name,
        format=model.format,
        inputs={name: {"shape": list(spec.shape), "dtype": spec.dtype} for name, spec in model.inputs.items()},
        bindings=dict(model.bindings),
        batch_source=str(model.batch_source),
        notes=tuple(notes),
    )


def graph_info(found: GraphTotals, model: Model) -> GraphInfo:
    """The forward pass, exact."""
    unknown = tuple(UnknownInfo(e.op_type, e.count, e.example) for e in found.coverage.unknown)
    return GraphInfo(
        ops=found.ops,
        macs=found.macs,
        matmul_flops=found.cost.matmul_flops,
        elementwise_flops=found.cost.elementwise_flops,
        read_bytes=found.cost.read_bytes,
        write_bytes=found.cost.write_bytes,
        params=found.params,
        param_bytes=found.param_bytes,
        buffers=found.buffers,
        buffer_bytes=found.buffer_bytes,
        coverage=CoverageInfo(found.coverage.counted, found.coverage.free, unknown, model.folded),
    )


def training_info(plan: StepPlan, memory: MemoryInfo) -> TrainingInfo:
    """A step's counts on one replica."""
    forward, backward = plan.total(Phase.FORWARD), plan.total(Phase.BACKWARD)
    whole = forward + backward + plan.update
    return TrainingInfo(
        optimizer=plan.optimizer.name,
        precision=str(plan.precision),
        master_weights=plan.recipe.master_weights,
        trainer=plan.recipe.trainer,
        forward_flops=forward.flops,
        forward_matmul_flops=forward.matmul_flops,
        backward_flops=backward.flops,
        backward_matmul_flops=backward.matmul_flops,
        update_flops=plan.update.flops,
        gradient_bytes=plan.gradient_bytes,
        sparse_gradient_bytes=plan.rows_bytes,
        read_bytes=whole.read_bytes,
        write_bytes=whole.write_bytes,
        bytes=BytesInfo(**asdict(plan.bytes)),
        memory=memory,
    )


def message_info(message: Message) -> MessageInfo:
    """One kind of message."""
    return MessageInfo(
        message.what, message.link, message.kind, message.bytes, message.time_s, message.exposed_s,
        message.formula, message.source,
    )  # fmt: skip


def placement_info(choice: Choice, plan: StepPlan, options: AnalysisOptions) -> PlacementInfo:
    """Where it runs, and how."""
    place = choice.placement
    return PlacementInfo(
        arch=choice.arch.name,
        gpus=place.gpus,
        servers=place.servers,
        ps=place.ps,
        cluster=place.cluster.id,
        cluster_source=choice.cluster_source,
        device=place.cluster.device.id,
        batch_per_gpu=plan.batch,
        global_batch=samples_of(plan, choice),
        profile=str(choice.profile),
        execution=str(choice.recipe.execution),
        overlap=str(choice.overlap),
        buckets=choice.bucketing.name,
        accumulate=choice.recipe.accumulate,
    )


def step_info(
    step: StepTime, verdict: Verdict, plan: StepPlan, choice: Choice, options: AnalysisOptions, at_32: float | None
) -> StepInfo:
    """The prediction and its verdict."""
    return StepInfo(
        step_s=step.step_s,
        step_low_s=step.step_low_s,
        step_high_s=step.step_high_s,
        interval_evidence=step.gpu_spread.evidence,
        input_s=step.input_s,
        compute_s=step.compute_s,
        memory_s=step.memory_s,
        host_s=step.host_s,
        comm_s=step.comm_s,
        exposed_comm_s=step.exposed_comm_s,
        hidden_comm_s=step.hidden_comm_s,
        forward_s=step.forward.wall_s if step.forward else None,
        backward_s=step.backward.wall_s if step.backward else None,
        update_s=step.update.wall_s if step.update else None,
        input_stages=_input_info(step, options),
        comm_share=step.comm_share,
        comm_share_low=step.comm_share_low,
        comm_share_high=step.comm_share_high,
        max_comm_share=options.max_comm_share,
        comm_share_at_batch_32=at_32,
        bound=step.bound,
        verdict=str(verdict),
        flagged=verdict is Verdict.FLAGGED,
        reason=reason_of(step, plan),
        samples_per_s=samples_per_s(step, plan, choice),
        scaling_efficiency=step.alone_s / step.step_s if step.step_s else 1.0,
    )


def _input_info(step: StepTime, options: AnalysisOptions) -> InputInfo | None:
    """The stages of the input pipeline; None under ``paper``, which knows only the copy."""
    if not step.stages:
        return None
    times = {stage.what: stage.time_s for stage in step.stages}
    return InputInfo(
        read_s=times.get("read"),
        decode_s=times.get("decode"),
        copy_s=times["copy"],
        prefetched=options.pipeline.prefetch,
    )
