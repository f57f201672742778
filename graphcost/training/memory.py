"""Bytes held on one device over a training step, by category, from the life of every tensor.

Forward: a tensor lives until its last reader, or until the backward pass has used it.
Backward: gradients of activations live from their first part to their producer's turn;
gradients of parameters stay until the update.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isqrt

from graphcost.ir import Param, ParamKind
from graphcost.recipe import OptimizerKernels, Recipe
from graphcost.training.fusion import Fusion
from graphcost.training.saved import TapeOp, checkpoints, kept_results, saved_by_tape
from graphcost.training.views import Laid


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes held on one device, each category at its own largest; ``peak_bytes`` at one moment.

    ``activations_bytes``: kept for the backward pass. ``temporary_bytes``: everything else
    that is alive at the peak (gradients of activations, results on their way).
    ``bucket_bytes``: copies of gradients that communication works on. The categories need
    not be at their largest together, so they may exceed the peak, which falls into
    ``peak_phase``. ``peak_without_gradients_bytes``: the peak if gradients of parameters
    took no room. Workspaces of libraries, fragmentation and the context are in none.
    """

    weights_bytes: int
    gradients_bytes: int
    optimizer_bytes: int
    activations_bytes: int
    buffers_bytes: int
    temporary_bytes: int
    peak_bytes: int
    peak_phase: str
    bucket_bytes: int = 0
    peak_without_gradients_bytes: int = 0

    def with_buckets(self, bucket_bytes: int) -> Memory:
        """The same step with ``bucket_bytes`` of communication buffers, which stay allocated."""
        return replace(
            self,
            bucket_bytes=bucket_bytes,
            peak_bytes=self.peak_bytes + bucket_bytes,
            peak_without_gradients_bytes=self.peak_without_gradients_bytes + bucket_bytes,
        )

    def with_kept(self, more_bytes: int, floor: int = 0) -> Memory:
        """``more_bytes`` (negative: less) kept for backward, of which ``floor`` is alive at the peak all the same."""
        peak = more_bytes + floor if more_bytes < 0 else more_bytes
        return replace(
            self,
            activations_bytes=self.activations_bytes + more_bytes,
            peak_bytes=self.peak_bytes + peak,
            peak_without_gradients_bytes=self.peak_without_gradients_bytes + peak,
        )

    def sharded(self, ranks: int, *, weights: bool, gradients: bool, optimizer: bool) -> Memory:
        """One rank's part where the categories named are divided among ``ranks``.

        The peak over moments of ``rest + g / n`` is convex in ``1 / n``, so the line between its ends is an
        upper bound, exact where the moment of the peak stays.
        """
        weights_bytes = -(-self.weights_bytes // ranks) if weights else self.weights_bytes
        optimizer_bytes = -(-self.optimizer_bytes // ranks) if optimizer else self.optimizer_bytes
        saved = self.weights_bytes - weights_bytes + self.optimizer_bytes - optimizer_bytes
        bare = self.peak_without_gradients_bytes
        peak = bare + -(-(self.peak_bytes - bare) // ranks) if gradients else self.peak_bytes
        return replace(
            self,
            weights_bytes=weights_bytes,
            optimizer_bytes=optimizer_bytes,
            gradients_bytes=-(-self.gradients_bytes // ranks) if gradients else self.gradients_bytes,
            peak_bytes=peak - saved,
            peak_without_gradients_bytes=bare - saved,
        )


@dataclass(frozen=True, slots=True)
class Step:
    """What the life of tensors depends on: operators laid out, their tape, kernels, ends of the graph."""

    laid: Sequence[Laid]
    tape: Sequence[TapeOp]
    fusion: Fusion
    inputs: Mapping[str, int]
    outputs: frozenset[str]


def memory_of(step: Step, params: Mapping[str, Param], gradient_bytes: Mapping[str, int], recipe: Recipe) -> Memory:
    """Memory of a step; ``gradient_bytes`` by parameter, in the form they are kept."""
    weights = sum(p.numel * recipe.weight_bytes for p in params.values() if p.kind is ParamKind.WEIGHT)
    buffers = sum(p.stored_bytes for p in params.values() if p.kind is ParamKind.BUFFER)
    trained = [params[name] for name in gradient_bytes]
    values = sum(recipe.optimizer.state_numel(one.spec.shape, one.numel) for one in trained)
    values += sum(one.numel for one in trained) if recipe.master_weights else 0
    state = values * recipe.state_bytes
    life = Life(step, gradient_bytes)
    life.run(recipe)
    gradients = sum(gradient_bytes.values())
    made = update_temporaries(params, gradient_bytes, recipe)
    in_update = recipe.trains and gradients + made > life.peak.total
    return Memory(
        weights_bytes=weights,
        gradients_bytes=gradients,
        optimizer_bytes=state,
        activations_bytes=life.kept_bytes,
        buffers_bytes=buffers,
        temporary_bytes=made if in_update else life.peak.total - life.peak.kept - life.peak.gradients,
        peak_bytes=weights + buffers + state + (gradients + made if in_update else life.peak.total),
        peak_phase="update" if in_update else life.peak.phase,
        peak_without_gradients_bytes=weights + buffers + state + max(life.bare_peak_bytes, made),
    )


def update_temporaries(params: Mapping[str, Param], gradient_bytes: Mapping[str, int], recipe: Recipe) -> int:
    """An optimizer of several kernels makes one tensor between them: foreach of all parameters at once."""
    if len(recipe.optimizer.passes(recipe.kernels)) <= 3:  # sgd and momentum work in place
        return 0
    sizes = [params[name].numel * recipe.state_bytes for name in gradient_bytes]
    return sum(sizes) if recipe.kernels is OptimizerKernels.FOREACH else max(sizes, default=0)


@dataclass(slots=True)
class Held:
    """Live bytes at one time: all, those kept for backward, those of parameters' gradients."""

    total: int = 0
    kept: int = 0
    gradients: int = 0
    phase: str = "forward"


@dataclass(slots=True)
class _Tensor:
    """A gradient on its way: how many values it is the gradient of."""

    size: int
    holders: int = 0


@dataclass(slots=True)
class Life:
    """Allocations and releases of one step, in order. Weights, buffers and state are not in it.

    ``position``: the operator, of those laid out, that the walk is at.
    """

    step: Step
    gradient_bytes: Mapping[str, int]
    now: Held = field(default_factory=Held)
    peak: Held = field(default_factory=Held)
    kept_bytes: int = 0
    bare_peak_bytes: int = 0
    position: int = 0
    _live: dict[str, int] = field(default_factory=dict)
    _kept: dict[str, int] = field(default_factory=dict)
    _grads: dict[str, _Tensor] = field(default_factory=dict)

    def run(self, recipe: Recipe) -> None:
        """Forward, then backward where there is a tape."""
        step = self.step
        saves = saved_by_tape(step.laid, step.tape, step.fusion, recipe.dropout_mask_bytes)
        sizes = dict(step.inputs)
        for op in step.laid:
            sizes.update((name, size) for name, size in _made(op) if name not in step.fusion.inside)
        starts = [0]
        if recipe.recompute and step.tape:
            starts, self._kept = checkpoints(step.laid, sizes, max(1, isqrt(len(step.laid))))
            read = {name for saved in saves for name in saved}
            for position in kept_results(step.laid) if recipe.selective else ():
                kept = read.intersection(step.laid[position].writes, sizes)
                self._kept.update((name, sizes[name]) for name in kept)
        else:
            for saved in saves:
                for name, size in saved.items():  # a slice keeps the whole of its storage
                    self._kept[name] = max(size, sizes.get(name, 0), self._kept.get(name, 0))
        self._forward([] if recipe.recompute else saves)
        self._backward(saves, starts)

    def _forward(self, saves: Sequence[Mapping[str, int]]) -> None:
        step = self.step
        saved_at = {one.position: saved for one, saved in zip(step.tape, saves, strict=False)}
        last: dict[str, int] = {}
        for position, op in enumerate(step.laid):
            last.update((name, position) for name in op.reads)
        stay = step.outputs | step.inputs.keys()
        for name, size in step.inputs.items():
            self._allocate(name, size)
        for position, op in enumerate(step.laid):
            self.position = position
            before = [name for name in op.reads if last[name] == position and name not in stay]
            if op.node.op_type == "Relu":  # assumed in place, as torchvision's models have it
                self._release(name for name in before if name not in self._kept)
            for name, size in (*_made(op), *saved_at.get(position, {}).items()):
                if name not in step.fusion.inside:
                    self._allocate(name, self._kept.get(name, size))
            self.note("forward")
            unread = [name for name in op.writes if name not in last and name not in stay]
            self._release(name for name in (*before, *unread) if name not in self._kept)
        self.kept_bytes = self.now.kept

    def _backward(self, saves: Sequence[Mapping[str, int]], starts: Sequence[int]) -> None:
        step = self.step
        first_user: dict[str, int] = {}
        for index, saved in enumerate(saves):
            for name in saved:
                first_user.setdefault(name, index)
        ends: dict[int, list[str]] = {}
        for name, index in first_user.items():
            ends.setdefault(index, []).append(name)
        for name in step.outputs:
            if step.tape and name in self._live:
                self._grads[name] = self._gradient(self._live[name])
        entered = len(starts)
        for index in range(len(step.tape) - 1, -1, -1):
            segment = bisect_right(starts, step.tape[index].position) - 1
            if segment < entered:  # its forward pass runs again first
                entered = segment
                self._again(saves, starts, segment)
            self._back(step.tape[index])
            self._release(ends.get(index, ()))

    def _again(self, saves: Sequence[Mapping[str, int]], starts: Sequence[int], segment: int) -> None:
        end = starts[segment + 1] if segment + 1 < len(starts) else len(self.step.laid)
        for one, saved in zip(self.step.tape, saves, strict=True):
            if starts[segment] <= one.position < end:
                for name, size in saved.items():
                    self._kept.setdefault(name, size)
                    self._allocate(name, size)
        self.kept_bytes = max(self.kept_bytes, self.now.kept)

    def _back(self, one: TapeOp) -> None:
        """One operator's backward pass: gradients of its inputs come, those of its outputs go."""
        self.position = one.position
        op = self.step.laid[one.position]
        node = op.node
        arrived = [self._grads.pop(name) for name in node.output_names if name in self._grads]
        for index in sorted(one.wrt):
            spec = node.spec(index)
            if spec is None or index >= len(node.input_names):
                continue
            stored = node.params_at(index)
            for param in stored:
                self._keep_gradient(param.name)
            if stored:
                continue
            passes_on = op.is_view or node.op_type in _PASSES_ON
            if passes_on and arrived and arrived[0].size == spec.size_bytes:
                gradient = arrived[0]
            else:
                gradient = self._gradient(0 if op.reads[index] in self.step.fusion.inside else spec.size_bytes)
            self._arrive(node.input_names[index], gradient)
        self.note("backward")
        for gradient in arrived:
            self._drop(gradient)

    def _arrive(self, name: str, gradient: _Tensor) -> None:
        """A further part of a value's gradient: summed into one that nobody else holds, or into a new tensor."""
        held = self._grads.get(name)
        gradient.holders += 1
        if held is None:
            self._grads[name] = gradient
            return
        total = next((one for one in (held, gradient) if one.holders == 1), None) or self._gradient(held.size)
        if total.holders == 0:
            total.holders = 1
        self.note("backward")
        for one in (held, gradient):
            if one is not total:
                self._drop(one)
        self._grads[name] = total

    def _gradient(self, size: int) -> _Tensor:
        self.now.total += size
        return _Tensor(size)

    def _drop(self, gradient: _Tensor) -> None:
        gradient.holders -= 1
        if gradient.holders <= 0:
            self.now.total -= gradient.size
            gradient.size = 0

    def _keep_gradient(self, param: str) -> None:
        key = f"gradient of {param}"
        size = self.gradient_bytes.get(param, 0)
        if key not in self._live:
            self._live[key] = size
            self.now.total += size
            self.now.gradients += size

    def _allocate(self, name: str, size: int) -> None:
        if name and name not in self._live:
            self._live[name] = size
            self.now.total += size
            self.now.kept += size if name in self._kept else 0

    def _release(self, names: Iterable[str]) -> None:
        for name in names:
            size = self._live.pop(name, 0)
            self.now.total -= size
            self.now.kept -= size if name in self._kept else 0

    def note(self, phase: str) -> None:
        """A moment at which the sum may be at its largest."""
        self.bare_peak_bytes = max(self.bare_peak_bytes, self.now.total - self.now.gradients)
        if self.now.total > self.peak.total:
            self.peak = replace(self.now, phase=phase)


_PASSES_ON = frozenset({"Add", "Sum"})
"""The gradient of an input is the output's own tensor where sizes agree."""


def _made(op: Laid) -> list[tuple[str, int]]:
    """(storage, bytes) of the results that the operator writes; a view writes none."""
    if op.is_view:
        return []
    return [
        (name, spec.size_bytes)
        for name, spec in zip(op.writes, op.node.outputs, strict=False)
        if name and spec is not None
    ]
