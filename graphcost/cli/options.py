"""Options that commands share, and the way from them to ``AnalysisOptions``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import click

from graphcost.arch import ARCHITECTURES, PsOn, PsStyle
from graphcost.cli import completing
from graphcost.cli.option_kinds import F, Quantity, listed, stack
from graphcost.cli.training_options import pipeline_of
from graphcost.errors import UsageError
from graphcost.frontends.options import LoadOptions
from graphcost.many import BACKENDS, LOCAL
from graphcost.placing import DEFAULT_CLUSTER, AnalysisOptions
from graphcost.report import FORMATS
from graphcost.sources import expand
from graphcost.units import parse_bandwidth, parse_flops_per_s, parse_share, parse_usd

model_argument = click.argument("model", metavar="MODEL", shell_complete=completing.models)
outputs_option = click.option(
    "--output", "outputs", multiple=True, metavar="FILE", help="Write to a file; its suffix chooses the format."
)

models_argument = click.argument(
    "models", metavar="MODEL...", nargs=-1, required=True, shell_complete=completing.models
)

size_options = stack(
    click.option("--batch", type=int, help="Samples per GPU and step (default: the file's, else 32)."),
    click.option("--dim", "dims", multiple=True, metavar="NAME=N", help="Size of an open dimension."),
    click.option(
        "--input-shape", "input_shapes", multiple=True, metavar="NAME=1,3,224,224", help="Shape of an input."
    ),
    click.option(
        "--input-value", "input_values", multiple=True, metavar="NAME=V", help="Value that steers control flow."
    ),
    click.option("--signature", metavar="NAME", help="Signature of a SavedModel."),
)


def cluster_option(default: str) -> Callable[[F], F]:
    """``--cluster``, with the command's default."""
    return click.option(
        "--cluster",
        metavar="NAME|FILE",
        help=f"Cluster of `graphcost devices`, or a TOML file (default {default}).",
        shell_complete=completing.clusters,
    )


_rate = partial(click.option, type=Quantity(parse_bandwidth), metavar="RATE")

rate_options = stack(
    click.option(
        "--device", metavar="NAME|FILE", help="Put this device into the cluster's servers.",
        shell_complete=completing.devices,
    ),
    _rate("--network", help="Network rate of a whole server, e.g. 25Gb/s."),
    _rate("--nvlink", help="Scale-up rate of a GPU, one direction, e.g. 300GB/s."),
    _rate("--pcie", help="PCIe rate of a GPU, one direction."),
    _rate("--mem-bandwidth", help="Device memory bandwidth."),
    _rate("--peak", type=Quantity(parse_flops_per_s), help="Peak compute rate, all dtypes, e.g. 312TFLOP/s."),
    click.option(
        "--network-kind", metavar="KIND", help="tcp, tcp-cloud, roce, infiniband, efa: what a nominal rate gives."
    ),
)  # fmt: skip

cluster_options = stack(cluster_option(DEFAULT_CLUSTER), rate_options)

placement_options = stack(
    click.option("--servers", type=int, help="Spread the GPUs over this many servers."),
    click.option("--ps", type=int, help="Parameter servers (default: as many as worker servers)."),
    click.option(
        "--ps-colocated", is_flag=True, help="Parameter servers run on the workers' servers and share their network."
    ),
    listed(
        "--ps-on",
        default="cpu",
        show_default=True,
        metavar="|".join(PsOn),
        help="Where variables lie under --ps-style grpc or tf-local.",
    ),
    listed(
        "--ps-style",
        default="byteps",
        show_default=True,
        metavar="|".join(PsStyle),
        help="Whose parameter servers (calibrated profile).",
    ),
    click.option(
        "--gather-rows", is_flag=True, help="AllReduce: tables marked sparse travel as rows gathered by every GPU."
    ),
    click.option(
        "--half-gradients", is_flag=True, help="AllReduce: gradients travel in 2 bytes, as with DDP's fp16 hook."
    ),
    click.option(
        "--straggler",
        "straggler_spread",
        type=parse_share,
        metavar="SHARE",
        default="0%",
        help="Spread of the step time over GPUs, where it is known; the slowest is waited for.",
    ),
)

limit_option = click.option(
    "--max-comm-share", type=Quantity(parse_share), metavar="SHARE", default="50%", show_default=True,
    help="Flag models strictly over it.",
)  # fmt: skip

verdict_options = stack(
    limit_option,
    click.option(
        "--on-doubt", type=click.Choice(["fail", "warn", "pass"]), default="warn", show_default=True,
        help="When the interval straddles the limit.",
    ),
    click.option("--strict", is_flag=True, help="Operators without a rule are an error (exit 4)."),
    click.option(
        "--min-coverage", type=Quantity(parse_share), metavar="SHARE",
        help="Least share of operators with an answer (else exit 4).",
    ),
    click.option("--exit-zero", is_flag=True, help="Findings do not fail (turns exit 1 into 0)."),
)  # fmt: skip

format_options = stack(
    click.option("--format", "form", type=click.Choice(sorted(FORMATS)), default="text", show_default=True),
    click.option(
        "--output", "outputs", multiple=True, metavar="[FORMAT:]FILE",
        help="Write to a file (repeatable); its suffix chooses the format (.xml is junit) unless that is named, "
        "as in gitlab:quality.json.",
    ),
)  # fmt: skip

backend_option = click.option(
    "--backend", type=click.Choice(list(BACKENDS)), default=LOCAL, show_default=True,
    help="What runs the workers: this machine's processes, or a Ray cluster (the running one, else one of its own).",
)  # fmt: skip

shared_flags = stack(
    click.option("--quiet", is_flag=True, help="No notes on stderr."),
    click.option("--debug", is_flag=True, help="Show tracebacks."),
)

price_option = click.option(
    "--price-per-gpu-hour", type=Quantity(parse_usd), metavar="USD",
    help="What a GPU costs an hour, instead of the list price of whole servers.",
)  # fmt: skip

plot_option = click.option(
    "--plot", "plots", multiple=True, metavar="FILE", help="Draw it: .png, .svg or .pdf (extra graphcost[plot])."
)

symbolic_option = click.option(
    "--symbolic", is_flag=True, help="Costs as expressions in the sizes left open (else in all open sizes)."
)

arch_option = click.option(
    "--arch", metavar="|".join(ARCHITECTURES), help="Default allreduce when --gpus is over 1, else single.",
    shell_complete=completing.architectures,
)  # fmt: skip
global_batch_option = click.option(
    "--global-batch", type=int, metavar="N", help="Samples a step of the whole job, instead of --batch a GPU."
)
gpus_option = click.option("--gpus", type=int, default=1, show_default=True, help="GPUs in the job.")


def single_model(source: str) -> str:
    """The one model that ``source`` stands for; raises ``UsageError`` for a folder of several."""
    found = expand(source)
    if len(found) > 1:
        raise UsageError(f"{source}: a folder of {len(found)} models; name one of them, e.g. {found[0]}")
    return found[0]


def load_options(
    batch: int | None,
    dims: tuple[str, ...],
    input_shapes: tuple[str, ...],
    input_values: tuple[str, ...],
    signature: str | None = None,
) -> LoadOptions:
    """Text bindings to ``LoadOptions``; raises ``UsageError`` for text that is none."""
    if batch is not None and batch < 1:
        raise UsageError(f"--batch {batch}: at least one sample")
    return LoadOptions(
        batch=batch,
        dims={name: _size(text, "--dim", name) for name, text in _pairs(dims, "--dim", "NAME=N")},
        input_shapes={
            name: tuple(
                _size(part, "--input-shape", name) for part in text.replace("x", ",").split(",") if part.strip()
            )
            for name, text in _pairs(input_shapes, "--input-shape", "NAME=1,3,224,224")
        },
        input_values={
            name: tuple(_number(part, name) for part in text.split(","))
            for name, text in _pairs(input_values, "--input-value", "NAME=16000")
        },
        signature=signature,
    )


def analysis_options(values: Mapping[str, Any]) -> AnalysisOptions:
    """Parsed command-line values to ``AnalysisOptions``; what a command lacks keeps its default."""
    renamed = {
        "network": "network_bytes_per_s", "nvlink": "nvlink_bytes_per_s", "pcie": "pcie_bytes_per_s",
        "mem_bandwidth": "mem_bytes_per_s", "peak": "peak_flops_per_s",
        "price_per_gpu_hour": "price_per_gpu_hour_usd",
    }  # fmt: skip
    fields = AnalysisOptions.__dataclass_fields__
    chosen = {renamed.get(name, name): value for name, value in values.items()}
    names = ("batch", "dims", "input_shapes", "input_values", "signature")
    load = load_options(**{name: values[name] for name in names})
    taken = {name: value for name, value in chosen.items() if name in fields}
    return AnalysisOptions(**taken, load=load, pipeline=pipeline_of(values))


def _pairs(items: tuple[str, ...], option: str, form: str) -> list[tuple[str, str]]:
    pairs = []
    for item in items:
        name, separator, text = item.rpartition("=")
        if not separator or not name or not text:
            raise UsageError(f"{option} {item!r}: write it as {form}")
        pairs.append((name, text))
    return pairs


def _size(text: str, option: str, name: str) -> int:
    try:
        size = int(text)
    except ValueError:
        raise UsageError(f"{option} {name}={text}: {text!r} is not a whole number") from None
    if size < 0:
        raise UsageError(f"{option} {name}={text}: a size is not negative")
    return size


def _number(text: str, name: str) -> float:
    lowered = text.strip().lower()
    if lowered in ("true", "false"):
        return float(lowered == "true")
    try:
        return int(lowered)
    except ValueError:
        pass
    try:
        return float(lowered)
    except ValueError:
        raise UsageError(f"--input-value {name}={text}: {text!r} is not a number, true or false") from None
