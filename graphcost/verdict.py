"""Is this model communication bound, and why: the verdict, its reason, and the findings."""

from __future__ import annotations

from enum import StrEnum

from graphcost.arch import Placement
from graphcost.arch.async_ps import staleness
from graphcost.counts import MemoryInfo
from graphcost.engine.curves import stand_ins
from graphcost.errors import CoverageError
from graphcost.graph import GraphTotals
from graphcost.predict import StepTime
from graphcost.predict.step_time import BUBBLE, QUEUE
from graphcost.result import Analysis, Finding
from graphcost.training import StepPlan
from graphcost.units import format_bandwidth, format_bytes, format_seconds, format_share


class Verdict(StrEnum):
    """Whether the communication share is over the limit, its interval considered."""

    FLAGGED = "flagged"
    CLEAR = "clear"
    TOO_CLOSE = "too-close"


def judge(step: StepTime, limit: float) -> Verdict:
    """Flagged: the whole interval is strictly over ``limit``; clear: none of it is.

    >>> judge(StepTime(0.0, 1.0, 0.0, 0.0, 3.0, 3.0), 0.5)
    <Verdict.FLAGGED: 'flagged'>
    """
    if step.comm_share_low > limit:
        return Verdict.FLAGGED
    return Verdict.CLEAR if step.comm_share_high <= limit else Verdict.TOO_CLOSE


def reason_of(step: StepTime, plan: StepPlan) -> str:
    """What the step waits for: link and tensors, or the largest other part."""
    waiting = [message for message in step.messages if message.exposed_s > 0]
    if not waiting:
        return f"no exposed communication; the step is bound by {step.bound}"
    worst = max(waiting, key=lambda message: message.exposed_s)
    if worst.what == BUBBLE:
        return f"{BUBBLE}: {format_seconds(worst.exposed_s)} in which a stage waits for the others; {worst.source}"
    if worst.what == QUEUE:
        return f"{QUEUE}: {format_seconds(worst.exposed_s)} more than a worker's own step; {worst.formula}"
    if not worst.bytes:
        return f"{worst.what}: {format_seconds(worst.exposed_s)} that no link explains; every exchange is shorter"
    rate = worst.bytes / worst.time_s if worst.time_s else 0.0
    text = (
        f"{worst.what}: {format_bytes(worst.bytes)} over {worst.link} at {format_bandwidth(rate)}, "
        f"{format_seconds(worst.exposed_s)} of {format_seconds(worst.time_s)} exposed"
    )
    heaviest = sorted(plan.gradients, key=lambda gradient: -gradient.bytes)[:3]
    if heaviest:
        text += "; largest tensors " + ", ".join(f"{g.param} ({format_bytes(g.bytes)})" for g in heaviest)
    return text


def findings_of(
    step: StepTime,
    verdict: Verdict,
    plan: StepPlan,
    found: GraphTotals,
    placement: Placement,
    memory: MemoryInfo,
    limit: float,
) -> tuple[Finding, ...]:
    """Everything to report, most severe first."""
    findings = []
    if verdict is not Verdict.CLEAR:
        interval = ""
        if step.comm_share_low != step.comm_share_high:
            interval = f" ({format_share(step.comm_share_low)} to {format_share(step.comm_share_high)})"
        relation = "is over" if verdict is Verdict.FLAGGED else "is too close to"
        findings.append(
            Finding(
                "communication-share",
                "error" if verdict is Verdict.FLAGGED else "warning",
                f"communication is {format_share(step.comm_share)}{interval} of the step, which "
                f"{relation} the limit of "
                f"{format_share(limit)}: {reason_of(step, plan)}",
                "step",
            )
        )
    device = placement.cluster.device
    if not memory.fits:
        findings.append(
            Finding(
                "does-not-fit",
                "warning",
                f"the step needs {format_bytes(memory.peak_bytes)} beside {format_bytes(memory.context_bytes)} "
                f"of context, and {device.id} has {format_bytes(device.mem_bytes)}",
                "memory",
            )
        )
    findings += [
        Finding(
            "unknown-operator", "warning", f"{e.op_type} has no rule and is not counted ({e.count} times)", e.example
        )
        for e in found.coverage.unknown
    ]
    for (op_class, instead), count in stand_ins(device.curves, (one.op for one in step.ops)).items():
        text = f"{device.id} has no curve for {op_class}: {count} kernels are timed by that of {instead}"
        findings.append(Finding("no-curve", "note", text, op_class))
    return tuple(findings)


def staleness_notes(placement: Placement) -> tuple[Finding, ...]:
    """How old gradients are where workers do not wait for each other."""
    if not placement.asynchronous or not staleness(placement):
        return ()
    text = (
        f"gradients have a staleness of {staleness(placement)} (other workers' updates between pull and push, on "
        "average): each worker goes at its own pace, and what that costs in convergence is not told"
    )
    return (Finding("staleness", "note", text, "step"),)


def require_coverage(result: Analysis, least: float | None) -> None:
    """Raise ``CoverageError`` where a smaller share of operators than ``least`` has a rule; None: any will do."""
    coverage = result.graph.coverage
    missing = sum(entry.count for entry in coverage.unknown)
    total = coverage.counted + coverage.free + missing
    share = 1.0 if total == 0 else 1 - missing / total
    if least is not None and share < least:
        names = ", ".join(f"{entry.op_type} ({entry.count})" for entry in coverage.unknown)
        raise CoverageError(
            f"{result.model.source}: {share:.1%} of operators have a rule, {least:.1%} are required; "
            f"without one: {names}"
        )
