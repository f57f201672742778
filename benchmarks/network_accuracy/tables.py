"""The published tables: which rows count, and the machine that each ran on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.network_accuracy.rows import Cells, Row, Run, matched, read
from graphcost.engine.timeline import Overlap


def traces(folder: Path, name: str, clusters: Mapping[str, str], skipped: Counter[str]) -> Iterator[Row]:
    """Pollux and Sia: placements in the notes; rows without one summarise others and are left out."""

    def run_of(row: Cells) -> Run | str:
        return Run(clusters[row["gpu"]], int(row["n_gpus"]), int(row["n_nodes"]))

    rows = [dict(row, run=_run(row["notes"])) for row in read(folder, name) if "pl=" in row["notes"]]
    for gpu in clusters:
        label = name if len(clusters) == 1 else f"{name}: {gpu}"
        mine = [row for row in rows if row["gpu"] == gpu]
        yield from matched(label, mine, run_of, ("model_id", "batch_per_gpu", "precision", "run"), skipped)


def _run(notes: str) -> str:
    found = re.search(r"run=(\S+)", notes)
    return found.group(1) if found else ""


HKBU_CLUSTERS = {
    "10GbE with TCP/IP": "hkbu-2080ti-10gbe", "100GbE with TCP/IP": "hkbu-2080ti-100gbe",
    "100GbIB with RDMA": "hkbu-2080ti-ib",
}  # fmt: skip
HKBU_RUNS: Mapping[str, tuple[str, Overlap, str]] = {
    "AllReduce no overlap": ("allreduce", Overlap.NONE, "ddp"),
    "AllReduce WFBP, no fusion": ("allreduce", Overlap.BUCKETED, "unfused"),
    "AllReduce WFBP + optimal fusion": ("allreduce", Overlap.BUCKETED, "ddp"),
    "AllReduce + partition/priority": ("allreduce", Overlap.BUCKETED, "ddp"),
    "PS (BytePS) no overlap": ("ps", Overlap.NONE, "ddp"),
    "PS (BytePS) WFBP": ("ps", Overlap.BUCKETED, "ddp"),
    "PS (BytePS) + partition/priority": ("ps", Overlap.BUCKETED, "ddp"),
}
HKBU_SCORED = {"AllReduce no overlap", "AllReduce WFBP + optimal fusion"}
"""The rings whose cost is the network's; the unfused and the partitioned one are scored as rivals of PS only."""

HKBU_MODES = {
    "no overlap": ("AllReduce no overlap", "PS (BytePS) no overlap"),
    "WFBP": ("AllReduce WFBP, no fusion", "PS (BytePS) WFBP"),
    "priority": ("AllReduce + partition/priority", "PS (BytePS) + partition/priority"),
}


def hkbu(folder: Path, skipped: Counter[str]) -> Iterator[Row]:
    rows = read(folder, "hkbu_ddl_benchmarks")
    single = {row["model_id"]: float(row["step_time_ms"]) * 1e-3 for row in rows if row["n_gpus"] == "1"}
    for row in rows:
        if row["n_gpus"] == "1":
            continue
        gpus, servers = int(row["n_gpus"]), int(row["n_nodes"])
        network = row["inter_link"] or re.sub(r".*network ([^;]+);.*", r"\1", row["notes"])
        arch, overlap, bucketing = HKBU_RUNS[row["arch"]]
        ps = servers if arch == "ps" and servers > 1 else 0  # on one server BytePS sums by itself
        run = Run(HKBU_CLUSTERS[network], gpus, servers, arch, ps=ps, overlap=overlap, bucketing=bucketing)
        kind = "PS" if arch == "ps" else "AllReduce" if row["arch"] in HKBU_SCORED else "AllReduce, other"
        # ResNet-50 under BytePS at 100 GbE equals the 10 GbE rows within 1 %: the same run, most likely.
        if arch == "ps" and row["model_id"] == "resnet50" and "100GbE" in network and "partition" not in row["arch"]:
            skipped["suspicious"] += 1
            continue
        mode = next(name for name, archs in HKBU_MODES.items() if row["arch"] in archs or name == "priority")
        pair = (row["model_id"], network, row["n_gpus"], mode) if row["arch"] in HKBU_MODES[mode] else ()
        step_s = float(row["step_time_ms"]) * 1e-3
        yield Row(f"hkbu {kind}", row["model_id"], run, single[row["model_id"]], step_s, None, pair)


def dlperf(folder: Path, skipped: Counter[str]) -> Iterator[Row]:
    def run_of(row: Cells) -> Run | str:
        if row["arch"] != "AllReduce DP":
            return "another architecture"
        return Run("dlperf-v100", int(row["n_gpus"]), int(row["n_nodes"]))

    keys = ("source", "model_id", "framework", "precision", "batch_per_gpu", "notes")
    yield from matched("dlperf", read(folder, "dlperf_v100"), run_of, keys, skipped)


DLE_CLUSTERS = {
    "A100-SXM4-80GB": "dgx-a100", "A100-SXM4-40GB": "dgx-a100-40", "V100-SXM2-16GB": "dgx1-v100",
    "V100-SXM2-32GB": "dgx1-v100", "V100-SXM3-32GB": "dgx2", "V100-SXM3-32GB-450W": "dgx2",
}  # fmt: skip


def dle(folder: Path, skipped: Counter[str]) -> Iterator[Row]:
    def run_of(row: Cells) -> Run | str:
        if row["arch"] != "AllReduce(NCCL) DP":
            return "another architecture"
        return Run(DLE_CLUSTERS[row["gpu"]], int(row["n_gpus"]), int(row["n_nodes"]))

    keys = ("source", "model_id", "framework", "gpu", "precision", "batch_per_gpu", "task_input", "notes")
    yield from matched("nvidia_dle", read(folder, "nvidia_dle_train"), run_of, keys, skipped)


LAMBDA_CLUSTERS = {
    "H100 80GB SXM5": ("dgx-h100", ""), "H100-SXM5-80GB": ("dgx-h100", ""), "V100 16GB": ("dgx1-v100", ""),
    "A100 80GB SXM4": ("dgx-a100", ""), "B200 192GB SXM5": ("hgx-b200", ""), "B200-192GB": ("hgx-b200", ""),
    "H200-SXM-140GB": ("dgx-h200", ""), "H100 80GB PCIe Gen5": ("pcie-8x-gen5", "h100-pcie"),
    "RTX 6000 Ada": ("pcie-8x-gen4", "rtx-6000-ada"), "RTX A6000": ("pcie-8x-gen4", "rtx-a6000"),
    "RTX 3090": ("pcie-8x-gen4", "rtx3090"), "RTX 4090": ("pcie-8x-gen4", "rtx4090"),
    "A100 80GB PCIe": ("pcie-8x-gen4", "a100-pcie-80"),
}  # fmt: skip


def lambda_boxes(folder: Path, skipped: Counter[str]) -> Iterator[Row]:
    def run_of(row: Cells) -> Run | str:
        if row["model_id"] == "bert_base":
            return "the batch changed"
        if row["gpu"] not in LAMBDA_CLUSTERS:
            return "no such cluster"
        cluster, device = LAMBDA_CLUSTERS[row["gpu"]]
        return Run(cluster, int(row["n_gpus"]), 1, device=device)

    # Boxes of several makers bear one name; single-GPU rows that differ by more than 10 % drop theirs.
    keys = ("source", "model_id", "gpu", "precision", "batch_per_gpu", "task_input")
    yield from matched("lambda", read(folder, "lambda_pytorch"), run_of, keys, skipped)


LAMBDA_TF_CLUSTERS = {
    "A100 40GB PCIe": ("pcie-8x-gen4", "a100-pcie-40"), "RTX A6000": ("pcie-8x-gen4", "rtx-a6000"),
    "RTX 3090": ("geforce-8x-gen4", "rtx3090"), "RTX 3080": ("geforce-8x-gen4", "rtx3080"),
    "RTX 8000": ("pcie-8x-gen3", "quadro-rtx8000"), "RTX 2080Ti": ("pcie-8x-gen3", "rtx2080ti"),
    "V100 32GB": ("dgx1-v100", "v100-sxm2-32"),
}  # fmt: skip


def lambda_tensorflow(folder: Path, skipped: Counter[str]) -> Iterator[Row]:
    def run_of(row: Cells) -> Run | str:
        if row["gpu"] not in LAMBDA_TF_CLUSTERS:
            return "no single-GPU row"
        cluster, device = LAMBDA_TF_CLUSTERS[row["gpu"]]
        return Run(cluster, int(row["n_gpus"]), 1, bucketing="horovod", device=device)

    keys = ("model_id", "gpu", "precision", "batch_per_gpu", "notes")
    yield from matched("lambda TensorFlow", read(folder, "lambda_tensorflow"), run_of, keys, skipped)


def tensorflow_2017(folder: Path, skipped: Counter[str]) -> Iterator[Row]:
    """The page's rows on synthetic data: of two equal ones the first (the second is on real data)."""
    seen: set[tuple[str, ...]] = set()
    rows = []
    for row in read(folder, "tf_cnn_benchmarks_2017"):
        key = tuple(row[k] for k in ("model_id", "gpu", "n_gpus", "batch_per_gpu", "arch", "notes", "n_nodes"))
        if key not in seen:
            seen.add(key)
            rows.append(row)

    def cluster(row: Cells) -> str:
        if "DGX-1" in row["gpu"]:
            return "dgx1-p100"
        return "gce-k80x8" if "GCE" in row["notes"] else "aws-p2.8xlarge"

    def ring(row: Cells) -> Run | str:
        if not row["arch"].startswith("replicated"):
            return "another architecture"
        return Run(cluster(row), int(row["n_gpus"]), 1, bucketing="horovod")

    def servers(row: Cells) -> Run | str:
        if "PS" not in row["arch"]:
            return "another architecture"
        nodes = int(row["n_nodes"] or 1)
        return Run(cluster(row), int(row["n_gpus"]), nodes, "ps", "tf-local", nodes)

    keys = ("model_id", "gpu", "batch_per_gpu", "notes")
    yield from matched("tf_cnn AllReduce", rows, ring, keys, skipped)
    yield from matched("tf_cnn PS", rows, servers, keys, skipped)


def mxnet(folder: Path, skipped: Counter[str]) -> Iterator[Row]:
    def run_of(row: Cells) -> Run | str:
        nodes = int(row["n_nodes"] or 1)
        return Run("aws-p2.16xlarge", int(row["n_gpus"]), nodes, "ps", "mxnet", nodes)

    keys = ("model_id", "batch_per_gpu")
    yield from matched("mxnet PS", read(folder, "mxnet_k80_scaling"), run_of, keys, skipped)


def horovod(folder: Path, skipped: Counter[str]) -> Iterator[Row]:
    """Horovod's two tables. The first does not name its network; it is taken as the second's."""
    rows = [row for row in read(folder, "ps_allreduce_published") if row["source"].startswith("horovod/horovod@")]

    def run_of(row: Cells) -> Run | str:
        gpus, servers = int(row["n_gpus"]), int(row["n_nodes"])
        network = "25roce" if "RDMA" in row["arch"] else "40gbe" if "40Gb" in row["inter_link"] else "25gbe"
        if row["arch"].startswith("PS"):
            return Run(f"horovod-p100-{network}", gpus, servers, "ps", "grpc", servers)
        if "NCCL" not in row["arch"]:
            return "AllReduce on CPUs"
        return Run(f"horovod-p100-{network}", gpus, servers, bucketing="horovod")

    # Parameter servers lose by more than the range of efficiencies allows, so rows are matched here.
    single = {(row["source"], row["notes"]): row for row in rows if row["n_gpus"] == "1"}
    for row in rows:
        if row["n_gpus"] == "1":
            continue
        run = run_of(row)
        if isinstance(run, str):
            skipped[run] += 1
            continue
        notes = "second published table, 16 servers" if row["n_gpus"] == "64" else row["notes"]
        alone = float(single[row["source"], notes]["step_time_ms"]) * 1e-3
        kind = "PS" if run.arch == "ps" else "AllReduce"
        pair = (row["source"], row["n_gpus"])
        step_s = float(row["step_time_ms"]) * 1e-3
        yield Row(f"horovod {kind}", row["model_id"], run, alone, step_s, None, pair)


def gavel(folder: Path, skipped: Counter[str]) -> Iterator[Row]:
    """Packed rows on one server as far as it goes, spread rows one GPU a server; both assumed."""

    def run_of(row: Cells) -> Run | str:
        gpus, spread = int(row["n_gpus"]), "unconsolidated" in row["arch"]
        cluster, size = GAVEL_CLUSTERS[row["gpu"]]
        return Run(cluster, gpus, gpus if spread else -(-gpus // size))

    rows = [dict(row, table=row["notes"][:8]) for row in read(folder, "gavel_throughputs")]
    yield from matched("gavel", rows, run_of, ("source", "model_id", "gpu", "batch_per_gpu", "table"), skipped)


GAVEL_CLUSTERS = {
    "V100": ("aws-p3.16xlarge", 8),
    "P100": ("gcp-p100x4", 4),
    "K80 (one GK210 die)": ("aws-p2.8xlarge", 8),
}


def all_rows(folder: Path) -> tuple[list[Row], Counter[str]]:
    skipped: Counter[str] = Counter()
    rows = [
        *hkbu(folder, skipped),
        *traces(folder, "pollux_traces_t4", {"T4": "aws-g4dn.12xlarge"}, skipped),
        *traces(
            folder, "sia_traces_rtx_quadro", {"RTX 2080 Ti": "sia-2080ti", "Quadro RTX 6000": "sia-quadro"}, skipped
        ),
        *traces(folder, "sia_traces_a100", {"A100-SXM4-40GB": "sia-dgx-a100"}, skipped),
        *dlperf(folder, skipped),
        *dle(folder, skipped),
        *lambda_boxes(folder, skipped),
        *lambda_tensorflow(folder, skipped),
        *tensorflow_2017(folder, skipped),
        *mxnet(folder, skipped),
        *horovod(folder, skipped),
        *gavel(folder, skipped),
    ]
    return rows, skipped
