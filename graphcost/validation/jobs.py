"""From a measured row to something that can be predicted: a model, its sizes, a machine, options.

The words of the tables (``RTX 2080Ti NVLink``, ``AMP/FP16 (per submission)``) are mapped
by ``names.toml``. What it does not know is skipped with the word.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from graphcost.arch import PsOn, PsStyle
from graphcost.device_db import load_cluster, load_device
from graphcost.hardware import Cluster
from graphcost.links import LinkKind
from graphcost.models_zoo import describe, names
from graphcost.recipe import (
    HALF_EVERYTHING,
    OPTIMIZERS,
    Execution,
    Layout,
    OptimizerKernels,
    Precision,
    Recipe,
    Stack,
)
from graphcost.units import parse_bandwidth
from graphcost.validation.meshes import mesh_text
from graphcost.validation.tables import MeasuredRow


@dataclass(frozen=True, slots=True)
class Job:
    """What to build and where it runs. ``batch``: samples of one GPU and micro-batch; ``fast_norms``: timm's."""

    source: str
    batch: int
    dims: Mapping[str, int] = field(hash=False)
    cluster: Cluster = field(hash=False)
    arch: str
    gpus: int
    servers: int
    recipe: Recipe
    fast_norms: bool
    overlap: str | None
    buckets: str
    ps_style: str = PsStyle.BYTEPS.value
    ps_on: str = PsOn.CPU.value

    @property
    def ps(self) -> int:
        """Parameter servers: as many as worker servers; one server of BytePS sums by itself."""
        alone = self.servers == 1 and self.ps_style == PsStyle.BYTEPS
        return self.servers if self.arch == "ps" and not alone else 0


@dataclass(frozen=True, slots=True)
class Skipped:
    """Why a row has no prediction; rows with equal reasons are counted together."""

    reason: str


@cache
def _names() -> dict[str, Any]:
    return tomllib.loads(files("graphcost.validation").joinpath("names.toml").read_text("utf-8"))


def job_of(row: MeasuredRow) -> Job | Skipped:
    """The job that ``row`` measured, or why there is none."""
    missing = _missing(row)
    if missing is not None:
        return Skipped(missing)
    model = _model(row)
    if model is None:
        return Skipped("no builder")
    for what, pattern in model.get("needs", {}).items():
        if not re.search(pattern, row.task_input):
            return Skipped(f"no {what}")
    device = _matching("gpu", row.gpu)
    if device is None:
        return Skipped(f"no device for {row.gpu}")
    precision = _matching("precision", row.precision)
    if precision is None:
        return Skipped(f"no precision for {row.precision}")
    arch = _matching("arch", row.arch)
    if arch is None:
        return Skipped(f"no architecture for {row.arch}")
    if "skip" in arch:
        return Skipped(arch["skip"])
    chosen = load_device(device["device"])
    if not _computes(chosen.peak_flops_per_s, precision["precision"]):
        return Skipped(f"{chosen.id} has no peak for {row.precision}")
    cluster = _cluster(row).with_overrides(device=chosen)
    gpus, servers = row.gpus or 1, _servers(row, cluster)
    assert row.batch is not None
    script = _script(row, model.get("optimizer", "adam"), precision["precision"])
    return Job(
        source=model["source"],
        batch=int(row.batch),
        dims=_dims(row, model),
        cluster=cluster,
        arch="single" if gpus == 1 else _arch_of(row, arch["arch"]),
        gpus=gpus,
        servers=servers,
        recipe=_recipe(row, script),
        fast_norms=script.get("fast_norms", False),
        overlap=arch.get("overlap"),
        buckets=arch.get("buckets", "ddp"),
        ps_style=arch.get("ps_style", PsStyle.BYTEPS.value),
        ps_on=PsOn.GPU.value if re.search(arch.get("gpu_where", "$^"), row.arch) else PsOn.CPU.value,
    )


def _arch_of(row: MeasuredRow, name: str) -> str:
    return mesh_text(row.arch, row.framework, row.notes, row.accumulate) if name == "mesh" else name


_APEX_O2 = HALF_EVERYTHING | {"Add", "Sub", "Mul", "Where", "Div"}
"""The whole network and its attention mask are in the half format, so that nothing is promoted."""


def _script(row: MeasuredRow, optimizer: str, precision: str) -> Mapping[str, Any]:
    """What the row's script ran, as far as it is known: every entry of ``recipe`` that fits, in order."""
    names = {
        "table": "table",
        "model": "model_id",
        "precision": "precision",
        "notes": "notes",
        "framework": "framework",
    }
    texts = {key: getattr(row, name) for key, name in names.items()}
    chosen: dict[str, Any] = {"optimizer": optimizer, "precision": precision, "layout": row.layout}
    for entry in _names()["recipe"]:
        if all(re.search(entry[key], text, re.IGNORECASE) for key, text in texts.items() if key in entry):
            chosen.update(entry["set"])
    return chosen


def _recipe(row: MeasuredRow, chosen: Mapping[str, Any]) -> Recipe:
    return Recipe(
        optimizer=OPTIMIZERS["none" if row.phase == "infer" else chosen["optimizer"]],
        precision=Precision(chosen["precision"]),
        execution=Execution(chosen.get("execution", "eager")),
        kernels=OptimizerKernels(chosen["kernels"]),
        accumulate=row.accumulate,
        layout=Layout(chosen["layout"]),
        stack=Stack(chosen["stack"]),
        fused_attention=chosen["fused_attention"],
        half_ops=_APEX_O2 if chosen.get("apex_o2") else frozenset(),
        keep_gradients=chosen.get("keep_gradients", False),
        recompute=chosen.get("recompute", False),
        selective=chosen.get("selective", False),
        host_factor=chosen.get("host_factor", 1.0),
        trainer=chosen.get("trainer", "torch"),
        master_weights=chosen.get("master_weights", False),
    )


def _missing(row: MeasuredRow) -> str | None:
    """What the row itself leaves out."""
    if row.step_s is None:
        return "no step time"
    if row.step_s == 0:
        return "a step time of 0"
    if not row.batch:
        return "no batch"
    if row.batch != int(row.batch):
        return "a batch that is no whole number"
    if row.phase not in ("train", "infer"):
        return f"phase {row.phase}"
    return None


def _model(row: MeasuredRow) -> Mapping[str, Any] | None:
    if "(timm)" in row.framework:
        return {"source": f"timm:{row.model_id.partition('.')[0]}"}  # without its pre-training's tag
    found: Mapping[str, Any] | None = _names()["model"].get(row.model_id)
    if found is not None:
        heads = found.get("by_task", {}).items()
        source = next((name for pattern, name in heads if re.search(pattern, row.task_input)), found["source"])
        return {**found, "source": source}
    for entry in _names()["shape"]:
        if shape := re.search(entry["pattern"], row.model_id):
            return {**entry, "source": entry["source"].format(*shape.groups())}
    return None


def _matching(kind: str, text: str) -> Mapping[str, Any] | None:
    for entry in _names()[kind]:
        if re.search(entry["pattern"], text, re.IGNORECASE):
            found: Mapping[str, Any] = entry
            return found
    return None


def _dims(row: MeasuredRow, model: Mapping[str, Any]) -> dict[str, int]:
    """Sizes that the task states and the model leaves open, over the model's own for this kind of table."""
    known = dict(model.get("dims", {}))
    name = model["source"].removeprefix("zoo:")
    open_sizes = describe(name).dims if name in names() else {**known, "image": 0}
    for entry in _names()["size"]:
        found = re.search(entry["pattern"], getattr(row, entry.get("of", "task_input")))
        if found and entry["dim"] in open_sizes:
            known[entry["dim"]] = entry["value"] if "value" in entry else int(found[1])
    return known


def _cluster(row: MeasuredRow) -> Cluster:
    """The machine by table and links; the network's rate and kind where the row states them."""
    texts = {"table": row.table, "intra": row.intra_link, "gpu": row.gpu, "inter": row.inter_link, "arch": row.arch}
    entry = next(
        entry
        for entry in _names()["machine"]
        if all(re.search(entry[key], text, re.IGNORECASE) for key, text in texts.items() if key in entry)
    )
    cluster = load_cluster(entry["cluster"])
    rate, kind = network_of(row.inter_link)
    if rate is None or entry.get("keeps_network"):
        return cluster
    return cluster.with_overrides(network_bytes_per_s=rate, network_kind=kind)


_RATE = re.compile(r"(?:(\d+)x)?[^\d]*?(\d+(?:\.\d+)?) ?(G|T)b?(?:/s|E|/sec|IB)", re.IGNORECASE)
_KINDS = (
    ("cloud|VM", LinkKind.TCP_CLOUD),
    ("RoCE|^(?!.*IB).*RDMA", LinkKind.ROCE),
    ("IB|InfiniBand|HDR|EDR|NDR|Omni-Path|ConnectX", LinkKind.INFINIBAND),
    ("TCP|Ethernet|GbE", LinkKind.TCP),
)


def network_of(text: str) -> tuple[float | None, LinkKind | None]:
    """Bytes/s of a server in one direction, and the kind, from a table's words.

    >>> network_of("4x100Gb/s RoCE")
    (50000000000.0, <LinkKind.ROCE: 'roce'>)
    """
    found = _RATE.search(text)
    if found is None:
        return None, None
    links, rate, unit = found.groups()
    kind = next((kind for pattern, kind in _KINDS if re.search(pattern, text)), None)
    return int(links or 1) * parse_bandwidth(f"{rate}{unit.upper()}b/s"), kind


def _servers(row: MeasuredRow, cluster: Cluster) -> int:
    gpus = row.gpus or 1
    needed = -(-gpus // cluster.server.gpus)
    if row.spread:
        return max(needed, min(2, gpus))
    return max(needed, min(row.servers or needed, gpus))


def _computes(peaks: Mapping[str, float], precision: str) -> bool:
    dtype = {"tf32": "float32", "fp32": "float32", "amp-fp16": "float16"}.get(precision, "bfloat16")
    return dtype in peaks
