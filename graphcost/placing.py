"""From option names to the things they name: cluster, architecture, placement, profile."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from graphcost.arch import Architecture, Placement, PsOn, PsStyle, architecture_named
from graphcost.arch.async_ps import AsyncParameterServer
from graphcost.arch.product import Product
from graphcost.device_db import load_cluster, load_device
from graphcost.engine.input import InputPipeline
from graphcost.engine.timeline import BUCKETINGS, Bucketing, Overlap
from graphcost.engine.trainers import TORCH, TRAINERS
from graphcost.errors import GraphcostError, PlacementError, UnknownNameError, UsageError
from graphcost.frontends.options import LoadOptions
from graphcost.hardware import Cluster
from graphcost.predict import Profile
from graphcost.recipe import OPTIMIZERS, Execution, Layout, Lookups, Optimizer, OptimizerKernels, Precision, Recipe
from graphcost.registry import did_you_mean
from graphcost.units import MIB, parse_bytes

DEFAULT_CLUSTER = "dgx-a100"
SERVED = frozenset({"ps", "async-ps"})
"""Architectures with parameter servers."""

MOST_MICRO_BATCHES = 65_536
"""assumed: no job sums more, and a trace shows every one of them."""


@dataclass(frozen=True, slots=True)
class AnalysisOptions:
    """Options of ``analyze``; names and defaults are the command line's. Rates are bytes/s or FLOP/s."""

    arch: str | None = None
    gpus: int = 1
    servers: int | None = None
    ps: int | None = None
    ps_style: str = PsStyle.BYTEPS.value
    ps_colocated: bool = False
    ps_on: str = PsOn.CPU.value
    gather_rows: bool = False
    half_gradients: bool = False
    master_weights: bool = False
    trainer: str = TORCH
    straggler_spread: float = 0.0
    cluster: str | None = None
    device: str | None = None
    network_bytes_per_s: float | None = None
    nvlink_bytes_per_s: float | None = None
    pcie_bytes_per_s: float | None = None
    mem_bytes_per_s: float | None = None
    peak_flops_per_s: float | None = None
    network_kind: str | None = None
    precision: str = "fp32"
    layout: str = "nchw"
    optimizer: str = "adam"
    optimizer_kernels: str = "fused"
    clip_grad: bool = False
    lookups: str = "all"
    freeze: tuple[str, ...] = ()
    profile: str = "calibrated"
    execution: str = "eager"
    overlap: str | None = None
    buckets: str = "ddp"
    accumulate: int = 1
    recompute: bool = False
    input_sharing: int | None = None
    pipeline: InputPipeline = field(default_factory=InputPipeline)
    max_comm_share: float = 0.5
    price_per_gpu_hour_usd: float | None = None
    max_batch: bool = False
    global_batch: int | None = None
    load: LoadOptions = field(default_factory=LoadOptions)


@dataclass(frozen=True, slots=True)
class Choice:
    """Options resolved to the things they name."""

    arch: Architecture
    placement: Placement
    cluster_source: str
    profile: Profile
    overlap: Overlap
    bucketing: Bucketing
    recipe: Recipe

    @property
    def replicas(self) -> int:
        """GPUs, or groups of them, that work on samples of their own."""
        return self.arch.mesh.dp if isinstance(self.arch, Product) else self.placement.gpus


def resolve(options: AnalysisOptions) -> Choice:
    """Names to things; raises ``UnknownNameError``, ``UsageError`` or ``PlacementError``."""
    if options.gpus < 1:
        raise UsageError(f"--gpus {options.gpus}: a job has at least one GPU")
    if not 1 <= options.accumulate <= MOST_MICRO_BATCHES:
        limits = (
            "at least one micro-batch" if options.accumulate < 1 else f"at most {MOST_MICRO_BATCHES} micro-batches"
        )
        raise UsageError(f"--accumulate {options.accumulate}: {limits}")
    if options.price_per_gpu_hour_usd is not None and not 0 < options.price_per_gpu_hour_usd < float("inf"):
        raise UsageError(
            f"--price-per-gpu-hour {options.price_per_gpu_hour_usd:g}: more than 0 US dollars and finite"
        )
    if options.input_sharing is not None and options.input_sharing < 1:
        raise UsageError(f"--input-sharing {options.input_sharing}: at least one GPU copies its input")
    profile = named(Profile, options.profile, "profile")
    default_overlap = Overlap.NONE if profile is Profile.PAPER else Overlap.BUCKETED
    overlap = named(Overlap, options.overlap, "overlap") if options.overlap is not None else default_overlap
    if profile is Profile.PAPER and overlap is Overlap.BUCKETED:
        raise UsageError("--overlap bucketed: the paper's framework knows no buckets; use none or ideal")
    recipe = recipe_of(options)
    if recipe.master_weights and recipe.precision.half_dtype is None:
        raise UsageError(
            f"--master-weights: weights of {recipe.precision} are their own masters; use bf16 or amp-bf16"
        )
    if profile is Profile.PAPER:
        _refuse_in_paper(options)
    arch = architecture_named(options.arch or ("allreduce" if options.gpus > 1 else "single"))
    if isinstance(arch, Product):
        arch, options, recipe = _product(arch, options, recipe, profile)
    if recipe.half_gradients and arch.name != "allreduce":
        raise UsageError(f"--half-gradients goes with --arch allreduce, not {arch.name}")
    if recipe.half_gradients and recipe.weight_bytes < 4:
        raise UsageError(f"--half-gradients: gradients of {recipe.precision} have 2 bytes already")
    cluster = cluster_of(options)
    placement = _placement(options, arch, cluster, profile)
    arch.check(placement)
    return Choice(
        arch=arch,
        placement=placement,
        cluster_source="option" if options.cluster else "default",
        profile=profile,
        overlap=overlap,
        bucketing=bucketing_of(options.buckets),
        recipe=recipe,
    )


def _product(
    arch: Product, options: AnalysisOptions, recipe: Recipe, profile: Profile
) -> tuple[Product, AnalysisOptions, Recipe]:
    """The mesh with nothing open. One GPU, the default, stands for as many as its sizes make."""
    if profile is Profile.PAPER:
        raise UsageError(f"--arch {arch.name}: the paper's framework knows no such product; use calibrated")
    if arch.mesh.micro_batches and options.accumulate > 1:
        raise UsageError(f"--accumulate {options.accumulate} and mb={arch.mesh.micro_batches} are the same; give one")
    gpus = arch.mesh.gpus if options.gpus == 1 else options.gpus
    mesh = arch.mesh.on(gpus, options.accumulate)
    if mesh.chunks > 1 and mesh.micro_batches % mesh.pp:
        raise PlacementError(
            f"--arch {mesh.name}: interleaved stages take micro-batches in rounds of pp={mesh.pp}, "
            f"and {mesh.micro_batches} is no multiple"
        )
    return Product(mesh), replace(options, gpus=gpus), replace(recipe, accumulate=mesh.micro_batches)


def with_arch(options: AnalysisOptions, name: str) -> AnalysisOptions:
    """``options`` under the architecture ``name``, without what only other architectures know."""
    return replace(
        options,
        arch=name,
        ps=options.ps if name in SERVED else None,
        ps_style=options.ps_style if name in SERVED else PsStyle.BYTEPS.value,
        ps_colocated=options.ps_colocated and name in SERVED,
        ps_on=options.ps_on if name in SERVED else PsOn.CPU.value,
        gather_rows=options.gather_rows and name == "allreduce",
        half_gradients=options.half_gradients and name == "allreduce",
    )


def _refuse_in_paper(options: AnalysisOptions) -> None:
    """What the study's framework has no term for would change nothing, silently."""
    unknown = [
        ("--accumulate", "micro-batches", options.accumulate > 1),
        ("--ps-colocated", "servers beside the workers", options.ps_colocated),
        ("--trainer", "host", options.trainer != TORCH),
        ("--buckets", "buckets", options.buckets != AnalysisOptions.__dataclass_fields__["buckets"].default),
        ("--sample-bytes, --decode-rate, --no-prefetch", "input but its copy", options.pipeline != InputPipeline()),
    ]
    for option, what, given in unknown:
        if given:
            raise UsageError(f"{option}: the paper's framework knows no {what}; use --profile calibrated")


def recipe_of(options: AnalysisOptions) -> Recipe:
    """The training options as a recipe; raises ``UnknownNameError`` and ``UsageError``."""
    return Recipe(
        optimizer=optimizer_of(options.optimizer),
        precision=named(Precision, options.precision, "precision"),
        layout=named(Layout, options.layout, "layout"),
        execution=named(Execution, options.execution, "execution"),
        kernels=named(OptimizerKernels, options.optimizer_kernels, "optimizer implementation"),
        freeze=options.freeze,
        recompute=options.recompute,
        half_gradients=options.half_gradients,
        master_weights=options.master_weights,
        trainer=TRAINERS.find(options.trainer).name,
        accumulate=options.accumulate,
        clip=options.clip_grad,
        lookups=lookups_of(options.lookups),
    )


def lookups_of(text: str) -> Lookups:
    """``all``, ``uniform`` or ``zipf:EXPONENT`` (``zipf`` alone: 1.05, a recommendation data set's; assumed).

    >>> lookups_of("zipf:1.2").exponent
    1.2
    """
    kind, colon, exponent = text.partition(":")
    if kind in ("all", "uniform") and not exponent:
        return Lookups(kind)
    try:
        value = float(exponent if colon else 1.05)
    except ValueError:
        value = -1.0
    if kind != "zipf" or not 0 < value < 100:
        raise UsageError(f"--lookups {text}: write all, uniform or zipf:EXPONENT with an exponent over 0")
    return Lookups(kind, value)


def bucketing_of(text: str) -> Bucketing:
    """``ddp``, ``horovod``, or a size: DDP's scheme with that cap.

    >>> bucketing_of("50MiB").cap_bytes == 50 * 2**20
    True
    """
    if text in BUCKETINGS:
        return BUCKETINGS[text]
    try:
        cap_bytes = 0.0 if text.strip().isdecimal() else parse_bytes(text)  # 25 bytes, or torch's 25 MiB?
    except GraphcostError:
        cap_bytes = 0.0
    if cap_bytes <= 0:
        raise UsageError(f"--buckets {text}: write {', '.join(BUCKETINGS)}, or a size such as 25MiB")
    return Bucketing(text, min(1 * MIB, cap_bytes), cap_bytes)


def optimizer_of(name: str) -> Optimizer:
    """The optimizer called ``name``."""
    found = OPTIMIZERS.get(name)
    if found is None:
        raise UnknownNameError(
            f"no optimizer named {name!r}{did_you_mean(name, OPTIMIZERS)} ({', '.join(OPTIMIZERS)})"
        )
    return found


def named(kind: type[Any], name: str, what: str) -> Any:
    """A member of an enumeration by its command-line name."""
    try:
        return kind(name)
    except ValueError:
        known = [str(member) for member in kind]
        raise UnknownNameError(f"no {what} named {name!r}{did_you_mean(name, known)} ({', '.join(known)})") from None


def cluster_of(options: AnalysisOptions) -> Cluster:
    """The cluster that the options name, with their device and rates put in."""
    device = load_device(options.device) if options.device is not None else None
    cluster = load_cluster(options.cluster or DEFAULT_CLUSTER)
    return cluster.with_overrides(
        device=device,
        network_bytes_per_s=options.network_bytes_per_s,
        nvlink_bytes_per_s=options.nvlink_bytes_per_s,
        pcie_bytes_per_s=options.pcie_bytes_per_s,
        mem_bytes_per_s=options.mem_bytes_per_s,
        peak_flops_per_s=options.peak_flops_per_s,
        network_kind=options.network_kind,
    )


def _placement(options: AnalysisOptions, arch: Architecture, cluster: Cluster, profile: Profile) -> Placement:
    """Workers fill servers; under ``paper`` every PS worker has a server of its own."""
    gpus = options.gpus
    needed = -(-gpus // cluster.server.gpus)
    servers = options.servers if options.servers is not None else needed
    served = arch.name in SERVED
    if options.servers is None and served and profile is Profile.PAPER:
        servers = gpus
    if servers < needed:
        raise PlacementError(
            f"--servers {servers}: {gpus} GPUs need at least {needed} servers of {cluster.id} "
            f"({cluster.server.gpus} GPUs each)"
        )
    if servers > gpus:
        raise PlacementError(f"--servers {servers}: {gpus} GPUs cannot be spread over more servers than GPUs")
    if cluster.max_servers is not None and servers > cluster.max_servers:
        raise PlacementError(f"{servers} servers of {cluster.id}: the cluster has {cluster.max_servers}")
    if options.ps is not None and not served:
        raise UsageError(f"--ps goes with --arch ps or async-ps, not {arch.name}")
    if options.ps is not None and options.ps < 1:
        raise UsageError(f"--ps {options.ps}: at least one parameter server")
    ps = (options.ps if options.ps is not None else servers) if served else 0
    style = named(PsStyle, options.ps_style, "style of parameter servers")
    if style is not PsStyle.BYTEPS and not served:
        raise UsageError(f"--ps-style goes with --arch ps or async-ps, not {arch.name}")
    if options.ps_colocated and not served:
        raise UsageError(f"--ps-colocated goes with --arch ps or async-ps, not {arch.name}")
    if options.ps_colocated and style.always_colocated:
        raise UsageError(f"--ps-colocated: {style} always keeps its variables on the workers; leave it out")
    ps_on = named(PsOn, options.ps_on, "place for variables")
    if ps_on is not PsOn.CPU and not (served and style.says_where):
        raise UsageError(f"--ps-on {ps_on} goes with --ps-style grpc or tf-local; {style} says itself where it sums")
    if options.gather_rows and arch.name != "allreduce":
        raise UsageError(f"--gather-rows goes with --arch allreduce, not {arch.name}")
    return Placement(
        gpus, servers, ps, cluster, style, options.gather_rows, options.ps_colocated,
        asynchronous=isinstance(arch, AsyncParameterServer), ps_on=ps_on,
    )  # fmt: skip
