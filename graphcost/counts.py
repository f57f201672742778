"""Parts of a result that need no hardware: the forward pass, one training step, memory; the JSON contract's names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UnknownInfo:
    """An operator type without a rule."""

    op_type: str
    count: int
    example: str


@dataclass(frozen=True, slots=True)
class CoverageInfo:
    """Operators counted, free by decision, unknown. ``folded`` ran on constants and are in none of them."""

    counted: int
    free: int
    unknown: tuple[UnknownInfo, ...]
    folded: int


@dataclass(frozen=True, slots=True)
class GraphInfo:
    """The forward pass: exact integers for the batch analysed."""

    ops: int
    macs: int
    matmul_flops: int
    elementwise_flops: int
    read_bytes: int
    write_bytes: int
    params: int
    param_bytes: int
    buffers: int
    buffer_bytes: int
    coverage: CoverageInfo


@dataclass(frozen=True, slots=True)
class MemoryInfo:
    """Bytes on one device, each category at its largest, and the peak of the step (``training.memory.Memory``).

    ``fits``: the peak and the framework's context go into the device.
    """

    weights_bytes: int
    gradients_bytes: int
    optimizer_bytes: int
    activations_bytes: int
    buffers_bytes: int
    temporary_bytes: int
    bucket_bytes: int
    peak_bytes: int
    peak_phase: str
    peak_without_gradients_bytes: int
    context_bytes: int
    fits: bool


@dataclass(frozen=True, slots=True)
class BytesInfo:
    """Memory traffic of the forward pass: eager, fused, and every weight once."""

    eager_bytes: int
    fused_bytes: int
    weights_bytes: int


@dataclass(frozen=True, slots=True)
class TrainingInfo:
    """One training step of one replica, before hardware.

    ``master_weights``: weights and gradients are held in two bytes, over copies in fp32 that the optimizer updates.
    ``trainer``: the library around the training loop.
    """

    optimizer: str
    precision: str
    master_weights: bool
    trainer: str
    forward_flops: int
    forward_matmul_flops: int
    backward_flops: int
    backward_matmul_flops: int
    update_flops: int
    gradient_bytes: int
    sparse_gradient_bytes: int
    read_bytes: int
    write_bytes: int
    bytes: BytesInfo
    memory: MemoryInfo
