"""Seconds of single layers and of optimizer steps on this machine, beside what the rules say they ask for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import quantiles
from typing import Any

from graphcost.calibration.cases import Case
from graphcost.graph import operators
from graphcost.ir import OpCost, Phase
from graphcost.placing import optimizer_of
from graphcost.recipe import OptimizerKernels, Precision, Recipe
from graphcost.sources import load
from graphcost.training import PlannedOp, plan_step


@dataclass(frozen=True, slots=True)
class Sample:
    """One timed operator: its class and phase, what the rules count for it, and the seconds it took."""

    name: str
    op_class: str
    phase: Phase
    cost: OpCost
    seconds: float
    dtype: str = "float32"


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to measure: a timing repeats until ``each_s`` is spent, at least ``rounds`` times."""

    each_s: float = 0.06
    rounds: int = 5


def seconds_of(call: Callable[[], Any], effort: Effort, wait: Callable[[], Any] = lambda: None) -> float:
    """Seconds of ``call``: the lower quartile, since others on the machine only ever add.

    ``wait`` lets an asynchronous device finish.
    """
    for _ in range(2):
        call()
    wait()
    taken: list[float] = []
    end = time.perf_counter() + effort.each_s
    while len(taken) < effort.rounds or time.perf_counter() < end:
        begun = time.perf_counter()
        call()
        wait()
        taken.append(time.perf_counter() - begun)
    return quantiles(taken, n=4)[0]


def measure(
    cases: Iterable[Case], effort: Effort, device: str = "cpu", dtype: str = "float32",
    progress: Callable[[str], None] = lambda text: None,
) -> Iterator[Sample]:  # fmt: skip
    """Forward and backward of every case on ``device``. Needs torch.

    ``dtype``: ``float32``, ``tf32`` (float32 tensors on a GPU's matrix units), ``float16`` or ``bfloat16``.
    """
    import torch

    stored = getattr(torch, "float32" if dtype == "tf32" else dtype)
    wait = torch.cuda.synchronize if device.startswith("cuda") else lambda: None
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = dtype == "tf32"
    for case in cases:
        progress(case.name)
        layer, x = case.build()
        layer, x = layer.to(stored), x.to(stored) if case.floats else x
        costs = _costs(layer, x, floats=case.floats)
        layer, x = layer.to(device), x.to(device)
        x.requires_grad_(case.floats)
        wrt = [*([x] if case.floats else []), *layer.parameters()]
        yield Sample(case.name, *costs[Phase.FORWARD], seconds_of(partial(layer, x), effort, wait), dtype)
        if wrt and Phase.BACKWARD in costs:
            seconds = seconds_of(_backward(layer(x), wrt), effort, wait)
            yield Sample(case.name, *costs[Phase.BACKWARD], seconds, dtype)


def _backward(out: Any, wrt: Sequence[Any]) -> Callable[[], Any]:
    """A backward pass that can run again and again."""
    import torch

    grad = torch.ones_like(out)
    return partial(torch.autograd.grad, out, wrt, grad, retain_graph=True)


def _costs(layer: Any, x: Any, *, floats: bool) -> dict[Phase, tuple[str, Phase, OpCost]]:
    """What the plan asks for the layer itself: phase -> (class of its dearest operator, phase, cost).

    The layer stands behind a trained gain, so that its input needs a gradient as inside a network.
    """
    import torch
    from torch import nn

    class Behind(nn.Module):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.gain = nn.Parameter(torch.ones((), dtype=x.dtype if floats else torch.float32))
            self.layer = layer

        def forward(self, x: Any) -> Any:
            return self.layer(x * self.gain if floats else x)

    graph = load(Behind().train(), (x,))
    half = x.element_size() == 2 if floats else False
    plan = plan_step(graph, Recipe(precision=Precision.BF16 if half else Precision.FP32))
    inside = {node_id for node_id, node, _ in operators(graph) if node.module.split(".")[0] == "layer"}
    found: dict[Phase, tuple[str, Phase, OpCost]] = {}
    for phase, ops in ((Phase.FORWARD, plan.forward), (Phase.BACKWARD, plan.backward)):
        own = [op for op in ops if op.id in inside and op.cost is not None and op.cost.bytes]
        if own:
            total = OpCost()
            for op in own:
                total = total + (op.cost or OpCost())
            found[phase] = (str(max(own, key=_work).op_class), phase, total)
    return found


def _work(op: PlannedOp) -> int:
    return op.cost.bytes + op.cost.flops if op.cost is not None else 0


TENSORS = 16
"""Parameters of one timed optimizer step: its fixed cost is spread as in a real one."""


def measure_updates(effort: Effort, device: str = "cpu") -> Iterator[Sample]:
    """One parameter's share of an optimizer step of torch, tensor by tensor, by the parameter's size."""
    import torch

    wait = torch.cuda.synchronize if device.startswith("cuda") else lambda: None
    builders: dict[str, Callable[..., Any]] = {
        "momentum": partial(torch.optim.SGD, lr=1e-3, momentum=0.9, foreach=False),
        "adam": partial(torch.optim.Adam, lr=1e-3, foreach=False),
    }
    for name, build in builders.items():
        passes = Recipe(optimizer=optimizer_of(name), kernels=OptimizerKernels.FOR_LOOP).update_passes()
        reads, writes = sum(read for _, (read, _) in passes), sum(write for _, (_, write) in passes)
        for numel in (64, 4096, 65_536, 1_048_576):
            params = [torch.nn.Parameter(torch.zeros(numel, device=device)) for _ in range(TENSORS)]
            for param in params:
                param.grad = torch.full_like(param, 1e-3)
            seconds = seconds_of(build(params).step, effort, wait) / TENSORS
            cost = OpCost(0, 0, 4 * reads * numel, 4 * writes * numel)
            yield Sample(f"{name} {numel}", "update", Phase.UPDATE, cost, seconds)
