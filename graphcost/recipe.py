"""How a model is trained, apart from the model: precision, optimizer, and what a step repeats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any


class Precision(StrEnum):
    """Numeric recipe of a step (torch's names)."""

    FP32 = "fp32"
    TF32 = "tf32"
    AMP_FP16 = "amp-fp16"
    AMP_BF16 = "amp-bf16"
    BF16 = "bf16"

    @property
    def weight_bytes(self) -> int:
        """Bytes of a stored weight and of its gradient on the wire: torch AMP keeps both in fp32."""
        return 2 if self is Precision.BF16 else 4

    @property
    def is_amp(self) -> bool:
        """Whether contractions run in a half format over fp32 weights."""
        return self in (Precision.AMP_FP16, Precision.AMP_BF16)

    @property
    def half_dtype(self) -> str | None:
        """The two-byte format that this recipe uses, if any."""
        return {"amp-fp16": "float16", "amp-bf16": "bfloat16", "bf16": "bfloat16"}.get(self.value)

    @property
    def scales_loss(self) -> bool:
        """Whether the loss is scaled, and gradients unscaled (torch.amp.GradScaler goes with fp16)."""
        return self is Precision.AMP_FP16


class Execution(StrEnum):
    """How operators are launched."""

    EAGER = "eager"
    FUSED = "fused"  # eager, with the pointwise chains that Megatron-LM writes as kernels by hand
    COMPILED = "compiled"


class Layout(StrEnum):
    """Memory order of images in convolutional networks (torch's memory formats)."""

    NCHW = "nchw"
    CHANNELS_LAST = "channels-last"


class Stack(StrEnum):
    """Generation of the framework and its kernel libraries, where efficiencies depend on it."""

    TORCH_1 = "torch-1"  # torch 1.12, cuDNN 8.3 and its like
    TORCH_2 = "torch-2"


class OptimizerKernels(StrEnum):
    """How the optimizer is implemented (torch.optim's ``fused``, ``foreach``, or neither)."""

    FUSED = "fused"
    FOREACH = "foreach"
    FOR_LOOP = "for-loop"


Pass = tuple[int, int]
"""One kernel over a parameter tensor: values read and values written, per parameter."""


@dataclass(frozen=True, slots=True)
class Optimizer:
    """An optimizer's work per parameter value.

    ``fused``: values read and written by one kernel that does it all, None where no such
    kernel exists. ``kernels``: the pointwise kernels of the plain implementation.
    ``state_values`` are kept per parameter; ``factored`` keeps row and column sums
    instead of one of them.
    """

    name: str
    fused: Pass | None
    kernels: tuple[Pass, ...]
    state_values: int
    flops: int
    factored: bool = False

    def passes(self, kernels: OptimizerKernels) -> tuple[Pass, ...]:
        """The kernels that one update runs over every parameter tensor."""
        return (self.fused,) if kernels is OptimizerKernels.FUSED and self.fused is not None else self.kernels

    def state_numel(self, shape: tuple[int, ...], numel: int) -> int:
        """Values kept for a parameter of ``shape`` that holds ``numel`` values.

        >>> OPTIMIZERS["adafactor"].state_numel((1000, 64), 64000), OPTIMIZERS["adam"].state_numel((10,), 10)
        (1064, 20)
        """
        if self.factored and len(shape) > 1 and shape[-1] and shape[-2]:
            return numel // shape[-1] + numel // shape[-2]
        return self.state_values * numel


_ADAM: tuple[Pass, ...] = ((2, 1), (1, 1), (2, 1), (1, 1), (1, 1), (1, 1), (3, 1))
"""lerp m; scale v; add g^2 to v; square root; bias correction; epsilon; p += m / root."""

OPTIMIZERS: Mapping[str, Optimizer] = MappingProxyType(
    {
        # Fused kernels: read weight, gradient, state; write weight, state (COST_MODEL: 12, 20, 28 bytes in fp32).
        # Plain ones: the kernels of torch.optim's foreach functions, in their order (torch 2.13).
        "none": Optimizer("none", (0, 0), (), 0, 0),
        "sgd": Optimizer("sgd", (2, 1), ((2, 1),), 0, 2),
        "momentum": Optimizer("momentum", (3, 2), ((1, 1), (2, 1), (2, 1)), 1, 4),
        "nesterov": Optimizer("nesterov", (3, 2), ((1, 1), (2, 1), (2, 1), (2, 1)), 1, 6),
        "adam": Optimizer("adam", (4, 3), _ADAM, 2, 12),
        "adamw": Optimizer("adamw", (4, 3), ((1, 1), *_ADAM), 2, 14),
        # torch.optim.Adafactor has no fused kernel: decay, norm of p, row and column norms of g, their product,
        # clamp, rsqrt, times g, norm of the update, p += update.
        "adafactor": Optimizer(
            "adafactor",
            None,
            ((1, 1), (1, 0), (1, 0), (1, 0), (0, 1), (1, 1), (1, 1), (2, 1), (1, 0), (2, 1)),
            1,
            16,
            factored=True,
        ),
        # Fused: NVIDIA Apex's two stages, two norms between (p, g, m, v -> m, v, u; |p|, |u|; p, u -> p).
        "lamb": Optimizer("lamb", (8, 4), (*_ADAM[:-1], (2, 1), (2, 1), (1, 0), (1, 0), (2, 1)), 2, 20),
    }
)
"""FLOPs: assumed, counted from the update equations (Kingma and Ba 2015; Loshchilov and Hutter
2019; Shazeer and Stern 2018; You et al. 2020)."""


@dataclass(frozen=True, slots=True)
class Lookups:
    """Which rows of a table one batch of ``k`` lookups touches.

    ``all``: every lookup another row (an upper bound, and what an uncoalesced sparse
    gradient sends). ``uniform``: rows drawn alike. ``zipf``: row r with probability
    proportional to ``r ** -exponent``.
    """

    distribution: str = "all"
    exponent: float = 0.0

    def rows(self, lookups: int, table_rows: int) -> int:
        """Expected distinct rows, rounded up: ``sum_i 1 - (1 - p_i) ** k`` (COST_MODEL, 12).

        >>> Lookups("uniform").rows(1000, 1000), Lookups("all").rows(1000, 1000)
        (633, 1000)
        """
        if table_rows <= 0 or lookups <= 0:
            return 0
        if self.distribution == "all":
            return min(lookups, table_rows)
        import numpy as np

        with np.errstate(divide="ignore"):  # a table of one row: log(0), expm1(-inf) = -1
            if self.distribution == "uniform":
                expected = -table_rows * float(np.expm1(lookups * np.log1p(-1 / table_rows)))
            else:
                ranks, counts = _ranks(table_rows)
                weights = ranks**-self.exponent
                shares = weights / (counts * weights).sum()
                expected = float(-(counts * np.expm1(lookups * np.log1p(-shares))).sum())
        return min(lookups, table_rows, int(np.ceil(expected)))


def _ranks(table_rows: int, exact: int = 100_000) -> tuple[Any, Any]:
    """Ranks 1 to ``table_rows`` and how often each stands: the tail in bins, whatever the table's size."""
    import numpy as np

    head = np.arange(1, min(exact, table_rows) + 1, dtype=np.float64)
    if table_rows <= exact:
        return head, np.ones_like(head)
    edges = np.unique(np.geomspace(exact + 1, table_rows + 1, 2000).round())
    middles = np.sqrt(edges[:-1] * (edges[1:] - 1))
    return np.concatenate([head, middles]), np.concatenate([np.ones_like(head), np.diff(edges)])


HALF_NORMS = frozenset({"LayerNormalization", "GroupNormalization", "RMSNormalization"})
HALF_EVERYTHING = HALF_NORMS | {"Softmax", "LogSoftmax", "SkipLayerNormalization", "Pow", "Exp", "ReduceSum"}


@dataclass(frozen=True, slots=True)
class Recipe:
    """A training step's choices. ``optimizer`` "none" is inference: forward only.

    ``freeze``: shell patterns of parameters not trained. ``recompute``: the forward pass
    runs again before the backward one. ``selective``: of it, attention and every second product are kept
    (torchtitan's checkpointing by operator). ``accumulate``: micro-batches per step.
    ``clip``: gradients are clipped by their global norm. ``dropout_mask_bytes``: kept per
    element, 1 by torch's GPU kernel (``native_dropout``), 4 by the CPU's.
    ``fused_attention``: attention is one kernel, and where not, products and a softmax.
    ``half_ops``: operators that AMP runs in the half format although its list says fp32
    (``HALF_NORMS``: timm's fast norms; ``HALF_EVERYTHING``: NVIDIA's Apex at level O2).
    ``half_gradients``: gradients of 4 bytes travel as 2 (torch DDP's fp16_compress_hook and
    bf16_compress_hook, Horovod's Compression.fp16).
    ``keep_gradients``: gradients are zeroed and added to instead of freed and written
    (torch before 2.0).
    ``master_weights``: weights and their gradients are held in the half format, and the optimizer
    updates fp32 copies of its own (Apex at level O2, Megatron-LM, DeepSpeed, FSDP's mixed precision).
    ``host_factor``: host time of a launch over that of torch's own modules on the mean machine.
    ``trainer``: the library around the training loop, by its name in ``engine/trainers.toml``.
    """

    optimizer: Optimizer = OPTIMIZERS["adam"]
    precision: Precision = Precision.FP32
    execution: Execution = Execution.EAGER
    kernels: OptimizerKernels = OptimizerKernels.FUSED
    freeze: tuple[str, ...] = ()
    recompute: bool = False
    selective: bool = False
    accumulate: int = 1
    clip: bool = False
    lookups: Lookups = field(default_factory=Lookups)
    dropout_mask_bytes: int = 1
    layout: Layout = Layout.NCHW
    stack: Stack = Stack.TORCH_2
    fused_attention: bool = True
    half_ops: frozenset[str] = frozenset()
    keep_gradients: bool = False
    half_gradients: bool = False
    master_weights: bool = False
    host_factor: float = 1.0
    trainer: str = "torch"

    @property
    def weight_bytes(self) -> int:
        """Bytes of a stored weight, and of its gradient."""
        return 2 if self.master_weights else self.precision.weight_bytes

    @property
    def state_bytes(self) -> int:
        """Bytes of a value that the optimizer keeps and updates."""
        return 4 if self.master_weights else self.precision.weight_bytes

    @property
    def wire_share(self) -> float:
        """Bytes of a gradient on the wire over its own."""
        return 0.5 if self.half_gradients else 1.0

    @property
    def trains(self) -> bool:
        """Whether there is a backward pass."""
        return self.optimizer.name != "none"

    def update_passes(self) -> tuple[tuple[str, Pass], ...]:
        """What runs over every gradient after the backward pass, in order.

        Sums of micro-batches; casts around the exchange; the scaler's unscaling and check;
        the norm and the scaling of a clipped gradient; the optimizer.
        """
        return (*self.gradient_passes(), *self.state_passes())

    def gradient_passes(self) -> tuple[tuple[str, Pass], ...]:
        """Those over gradients as the backward pass leaves them, ``weight_bytes`` a value."""
        found: list[tuple[str, Pass]] = [("accumulate", (2, 1))] * (self.accumulate - 1)
        if self.half_gradients:
            found += [("to 2 bytes", (1, 1)), ("from 2 bytes", (1, 1))]  # upper bound: one side is half as wide
        if self.keep_gradients:
            found += [("add gradient", (2, 1)), ("zero gradient", (0, 1))]
        if self.master_weights:  # the optimizer's first kernel reads the gradient, its last writes the weight
            found += [("overflow check", (1, 0))] * self.precision.scales_loss
            found.append(("gradient in, weight out", (1, 1)))
        return tuple(found) if self.trains else ()

    def state_passes(self) -> tuple[tuple[str, Pass], ...]:
        """Those over what the optimizer updates, ``state_bytes`` a value."""
        found: list[tuple[str, Pass]] = []
        if self.precision.scales_loss and not self.master_weights:
            found.append(("unscale", (1, 1)))
        if self.clip:
            found += [("gradient norm", (1, 0)), ("clip", (1, 1))]
        first, *others = self.optimizer.passes(self.kernels) or ((0, 0),)
        if self.master_weights:  # its gradient is in half the bytes
            first = (max(0, first[0] - 1), first[1])
        found += [(self.optimizer.name, one) for one in (first, *others) if one != (0, 0)]
        return tuple(found) if self.trains else ()
