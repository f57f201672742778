"""Options of how a model is trained, and of where its data comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from graphcost.cli.option_kinds import Quantity, listed, stack
from graphcost.engine.input import InputPipeline
from graphcost.engine.timeline import BUCKETINGS, Overlap
from graphcost.engine.trainers import TORCH, TRAINERS
from graphcost.errors import UsageError
from graphcost.predict import Profile
from graphcost.recipe import OPTIMIZERS, Execution, Layout, OptimizerKernels, Precision
from graphcost.units import parse_bandwidth, parse_bytes

training_options = stack(
    listed("--precision", default="fp32", show_default=True, metavar="|".join(Precision)),
    listed(
        "--layout", default="nchw", show_default=True, metavar="|".join(Layout),
        help="Memory order of images in convolutions.",
    ),
    listed(
        "--optimizer", default="adam", show_default=True, metavar="|".join(OPTIMIZERS), help="none: forward only."
    ),
    listed(
        "--optimizer-kernels", default="fused", show_default=True, metavar="|".join(OptimizerKernels),
        help="Implementation of the optimizer.",
    ),
    click.option(
        "--master-weights", is_flag=True,
        help="Weights and gradients in 2 bytes, updated in fp32 (Megatron-LM, DeepSpeed, FSDP), under bf16 or amp.",
    ),
    listed(
        "--trainer", default=TORCH, show_default=True, metavar="|".join(TRAINERS),
        help="Library around the training loop; adaptdl: statistics of gradients after every backward pass.",
    ),
    click.option("--clip-grad", is_flag=True, help="Clip gradients by their global norm."),
    listed(
        "--lookups", default="all", show_default=True, metavar="all|uniform|zipf:EXPONENT",
        help="Which rows of sparse tables a batch touches.",
    ),
    click.option("--freeze", multiple=True, metavar="PATTERN", help="Parameters not trained (shell pattern)."),
    listed("--profile", default="calibrated", show_default=True, metavar="|".join(Profile)),
    listed("--execution", default="eager", show_default=True, metavar="|".join(Execution)),
    listed("--overlap", metavar="|".join(Overlap), help="Default bucketed; none under paper."),
    listed(
        "--buckets", default="ddp", show_default=True, metavar="|".join((*BUCKETINGS, "SIZE")),
        help="How gradients are grouped for sending.",
    ),
    click.option("--accumulate", type=int, default=1, show_default=True, help="Micro-batches per step."),
    click.option("--recompute", is_flag=True, help="Recompute activations in the backward pass."),
    click.option("--input-sharing", type=int, help="GPUs contending for one PCIe on input copies (paper)."),
)  # fmt: skip

input_options = stack(
    click.option(
        "--sample-bytes", type=Quantity(parse_bytes), metavar="SIZE", help="Stored size of a sample, e.g. 110kB."
    ),
    click.option(
        "--storage", type=Quantity(parse_bandwidth), metavar="RATE", help="What one server reads of training data."
    ),
    click.option("--decode-rate", type=float, metavar="N", help="Samples per second that one CPU core decodes."),
    click.option("--data-workers", type=int, default=4, show_default=True, help="Decoding processes per GPU."),
    click.option("--no-prefetch", is_flag=True, help="Batches are not made ready ahead of time."),
)


def pipeline_of(values: Mapping[str, Any]) -> InputPipeline:
    """The input options; raises ``UsageError`` for a size without a rate and for what cannot be."""
    sample_bytes, storage = values.get("sample_bytes"), values.get("storage")
    rate, workers = values.get("decode_rate"), values.get("data_workers", 4)
    if (sample_bytes is None) != (storage is None):
        raise UsageError("--sample-bytes and --storage go together: how much is read, and how fast")
    if rate is not None and not 0 < rate < float("inf"):
        raise UsageError(f"--decode-rate {rate:g}: samples per second of one core, more than 0 and finite")
    if workers < 1:
        raise UsageError(f"--data-workers {workers}: at least one")
    return InputPipeline(sample_bytes, storage, rate, workers, prefetch=not values.get("no_prefetch", False))
