"""Training data on its way to the GPU: read, decoded, copied.

The three stages work on different batches at once; with prefetching a step waits for
the slowest of them alone, and only as far as the rest of the step does not cover it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InputPipeline:
    """What is known of the data's way. None: not given, so its stage takes no time and is reported unknown.

    ``sample_bytes``: stored size of a sample. ``storage_bytes_per_s``: what one server
    reads, storage or network. ``decode_samples_per_s``: one core. ``workers``: decoding
    processes per GPU. ``prefetch``: batches are made ready ahead of time.
    """

    sample_bytes: float | None = None
    storage_bytes_per_s: float | None = None
    decode_samples_per_s: float | None = None
    workers: int = 4
    prefetch: bool = True

    @property
    def unknown(self) -> tuple[str, ...]:
        """Stages that nothing is known about."""
        reads = self.sample_bytes is not None and self.storage_bytes_per_s is not None
        return (() if reads else ("read",)) + (() if self.decode_samples_per_s is not None else ("decode",))


@dataclass(frozen=True, slots=True)
class InputStage:
    """Seconds that one stage takes for one step's data of one GPU."""

    what: str
    bytes: float
    time_s: float


def input_stages(
    pipeline: InputPipeline,
    samples: int | None,
    tensor_bytes: float,
    gpus_per_server: int,
    copy_bytes_per_s: float,
) -> tuple[InputStage, ...]:
    """The stages that are known, for ``samples`` of one GPU whose tensors take ``tensor_bytes``.

    A server's GPUs share its storage rate; ``copy_bytes_per_s`` is what one of them gets of PCIe.
    """
    count = samples or 1
    stages = []
    if pipeline.sample_bytes is not None and pipeline.storage_bytes_per_s is not None:
        stored = count * pipeline.sample_bytes
        stages.append(InputStage("read", stored, stored * gpus_per_server / pipeline.storage_bytes_per_s))
    if pipeline.decode_samples_per_s is not None:
        stages.append(InputStage("decode", tensor_bytes, count / (pipeline.workers * pipeline.decode_samples_per_s)))
    return (*stages, InputStage("copy", tensor_bytes, tensor_bytes / copy_bytes_per_s))


def exposed_input_s(pipeline: InputPipeline, stages: tuple[InputStage, ...], rest_s: float) -> float:
    """What the step waits for: the slowest stage beyond ``rest_s``; all of them without prefetching."""
    if not pipeline.prefetch:
        return sum(stage.time_s for stage in stages)
    return max(0.0, max(stage.time_s for stage in stages) - rest_s)
