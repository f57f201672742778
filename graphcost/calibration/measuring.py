"""Seconds of single layers and of optimizer steps on this machine, beside what the rules say they ask for.

A layer's kernels are timed apart: its forward pass, and in the backward pass the gradients of its data, weights and
bias, since the plan of a step counts each by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Any

from graphcost.calibration.cases import Case
from graphcost.engine.curves import Kernel, kernel_of
from graphcost.graph import operators
from graphcost.ir import OpCost, Phase
from graphcost.ops import OpClass
from graphcost.placing import optimizer_of
from graphcost.recipe import OptimizerKernels, Precision, Recipe
from graphcost.sources import load
from graphcost.training import PlannedOp, plan_step
from graphcost.training.work import Part

COPIES = 8
"""A timed call runs so many copies of a layer one after another: like a network, unlike a loop over one buffer."""

COPIES_BYTES = 1 << 24
"""Copies end where their kernels would move more than this: a step finds much of what it reads in the last cache."""


CPU_WORK = 1_500_000_000
"""FLOPs and bytes of the largest layer that a CPU is timed on: its rates have settled long before."""

LEAST_S = 1e-7
"""No kernel is quicker than its call: where a difference of two timings is less, it is noise."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One timed kernel: what it is, what the rules count for it, and the seconds it took."""

    name: str
    kernel: Kernel
    cost: OpCost
    seconds: float


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to measure: a timing repeats until ``each_s`` is spent, at least ``rounds`` times.

    Of its timings the quantile ``share`` is taken: the lower quartile, since others on the machine only ever add.
    All of it is done ``passes`` times over, since a machine's speed changes by the minute.
    """

    each_s: float = 0.01
    rounds: int = 3
    passes: int = 3
    share: float = 0.25


def seconds_of(call: Callable[[], Any], effort: Effort, wait: Callable[[], Any] = lambda: None) -> float:
    """Seconds of ``call``; ``wait`` lets an asynchronous device finish."""
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
    return sorted(taken)[int(effort.share * len(taken))]


def merged(passes: Iterable[Sequence[Sample]]) -> list[Sample]:
    """The samples of several passes as one pass: of each timing the median."""
    found: dict[tuple[str, Kernel], list[Sample]] = {}
    for one in passes:
        for sample in one:
            found.setdefault((sample.name, sample.kernel), []).append(sample)
    return [replace(same[0], seconds=median(one.seconds for one in same)) for same in found.values()]


def measure(
    cases: Iterable[Case], effort: Effort, device: str = "cpu", dtype: str = "float32",
    progress: Callable[[str], None] = lambda text: None,
) -> Iterator[Sample]:  # fmt: skip
    """Every kernel of every case on ``device``, once. Needs torch.

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
        forward, backward = planned(layer, x, floats=case.floats)
        if device == "cpu" and max(map(_work, forward)) > CPU_WORK:
            continue
        layer, x = layer.to(device), x.to(device)
        copies = _copies(layer, x, sum(op.cost.bytes for op in (*forward, *backward) if op.cost is not None))
        for _, one in copies:
            one.requires_grad_(case.floats)
        run = partial(_forward, copies)
        yield _sample(case.name, forward, seconds_of(run, effort, wait) / len(copies), dtype)
        if not backward:
            continue
        outs = run()
        grads = [torch.ones_like(out) for out in outs]

        def gradients_s(wrt: Sequence[Any], outs: Sequence[Any] = outs, grads: Sequence[Any] = grads) -> float:
            call = partial(torch.autograd.grad, outs, wrt, grads, retain_graph=True)
            return seconds_of(call, effort, wait)

        for ops, seconds in _parts(backward, copies, gradients_s):
            yield _sample(case.name, ops, seconds / len(copies), dtype)


def _copies(layer: Any, x: Any, used_bytes: int) -> list[tuple[Any, Any]]:
    count = max(1, min(COPIES, COPIES_BYTES // max(1, used_bytes)))
    return [(layer, x), *((deepcopy(layer), x.clone()) for _ in range(count - 1))]


def _forward(copies: Sequence[tuple[Any, Any]]) -> list[Any]:
    """Results of all copies, held until the last: they are read again by a backward pass."""
    return [layer(x) for layer, x in copies]


def _parts(
    backward: Sequence[PlannedOp],
    copies: Sequence[tuple[Any, Any]],
    gradients_s: Callable[[Sequence[Any]], float],
) -> Iterator[tuple[list[PlannedOp], float]]:
    """The planned kernels of a backward pass with the seconds that all copies take.

    ``gradients_s``: seconds of the gradients of some tensors. A layer whose gradients are not planned apart is one
    kernel of all of them. CPU libraries make a convolution's bias gradient beside the weights', asked for or not,
    so that its time is what it adds to theirs.
    """
    split = {part: [op for op in backward if op.work is not None and op.work.part is part] for part in Part}
    data = [x for _, x in copies if x.requires_grad]
    named = [item for layer, _ in copies for item in layer.named_parameters()]
    biases = [tensor for name, tensor in named if name.endswith("bias")]
    weights = [tensor for name, tensor in named if not name.endswith("bias")]
    if not split[Part.WGRAD]:
        yield list(backward), gradients_s([*data, *(tensor for _, tensor in named)])
        return
    yield [*split[Part.DGRAD], *split[Part.FORWARD]], gradients_s(data)  # of a transposed convolution, the plain one
    weights_s = gradients_s(weights)
    yield split[Part.WGRAD], weights_s
    if split[Part.BIAS] and split[Part.BIAS][0].op_class in (OpClass.CONV, OpClass.DEPTHWISE):
        yield split[Part.BIAS], max(LEAST_S * len(copies), gradients_s([*weights, *biases]) - weights_s)
    elif split[Part.BIAS]:
        yield split[Part.BIAS], gradients_s(biases)


def _sample(name: str, ops: Sequence[PlannedOp], seconds: float, dtype: str) -> Sample:
    """A timing of ``ops`` together, under the name of the dearest."""
    total = OpCost()
    for op in ops:
        total = total + (op.cost or OpCost())
    return Sample(name, replace(kernel_of(max(ops, key=_work)), dtype=dtype), total, seconds)


def planned(layer: Any, x: Any, *, floats: bool) -> tuple[list[PlannedOp], list[PlannedOp]]:
    """What the plan of a step holds for the layer itself, forward and backward.

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

    def own(ops: Iterable[PlannedOp]) -> list[PlannedOp]:
        return [op for op in ops if op.id in inside and op.cost is not None and op.cost.bytes]

    return own(plan.forward), own(plan.backward)


def _work(op: PlannedOp) -> int:
    """FLOPs and bytes on one scale: a byte takes a CPU or a GPU the time of some ten FLOPs."""
    return 10 * op.cost.bytes + op.cost.flops if op.cost is not None else 0


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
        optimizer = optimizer_of(name)
        passes = Recipe(optimizer=optimizer, kernels=OptimizerKernels.FOR_LOOP).update_passes()
        reads, writes = sum(read for _, (read, _) in passes), sum(write for _, (_, write) in passes)
        for numel in (64, 4096, 65_536, 262_144, 1_048_576):
            params = [torch.nn.Parameter(torch.zeros(numel, device=device)) for _ in range(TENSORS)]
            for param in params:
                param.grad = torch.full_like(param, 1e-3)
            seconds = seconds_of(build(params).step, effort, wait) / TENSORS
            cost = OpCost(0, 0, 4 * reads * numel, 4 * writes * numel)
            yield Sample(f"{name} {numel}", Kernel("update", optimizer.name, str(Phase.UPDATE)), cost, seconds)
