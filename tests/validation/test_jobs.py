"""From a table's words to a model, a machine and options."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from validation.helpers_tables import write_table

from graphcost.device_db import load_device
from graphcost.links import LinkKind
from graphcost.validation import Job, MeasuredRow, Skipped, job_of, read_table
from graphcost.validation.jobs import _names, network_of


@pytest.fixture
def row(tmp_path: Path) -> MeasuredRow:
    (found,) = read_table(write_table(tmp_path / "own.csv", [{}]))
    return found


def job(row: MeasuredRow, **changes: Any) -> Job:
    found = job_of(replace(row, **changes))
    assert isinstance(found, Job), found
    return found


def test_a_plain_row(row: MeasuredRow) -> None:
    found = job(row)
    assert (found.source, found.batch, dict(found.dims)) == ("zoo:resnet50", 32, {"image": 224})
    assert (found.arch, found.gpus, found.servers, found.recipe.precision) == ("single", 1, 1, "fp32")
    assert (found.recipe.optimizer.name, found.recipe.layout, found.recipe.execution) == ("momentum", "nchw", "eager")
    assert found.cluster.device.id == "v100-sxm2-16"


@pytest.mark.parametrize(
    ("text", "device"),
    [
        ("T4", "t4"),
        ("RTX 2080Ti NVLink", "rtx2080ti"),
        ("RTX 2080 Ti (GPU type not in repo; PCIe)", "rtx2080ti"),
        ("A100-SXM4 (repo trace dir a100)", "a100-sxm-80"),
        ("A100-SXM4-40GB", "a100-sxm-40"),
        ("A100-SXM4-80GB (400W) 80 GB", "a100-sxm-80"),
        ("A100 80GB PCIe", "a100-pcie-80"),
        ("A100-PCIE-40GB (250W) 40 GB", "a100-pcie-40"),
        ("V100-SXM3-32GB (DGX-2H)", "v100-sxm2-32"),
        ("H100 80GB PCIe Gen5", "h100-pcie"),
        ("H100 80GB SXM5", "h100-sxm"),
        ("GH200 96GB", "gh200-96"),
        ("P100 (Pascal; \"Pascal GPUs\" in source)", "p100-pcie-16"),
        ("V100-PCIe-32GB", "v100-pcie-32"),
    ],
)  # fmt: skip
def test_devices_by_their_published_names(text: str, device: str, row: MeasuredRow) -> None:
    assert job(row, gpu=text).cluster.device.id == device


def test_every_device_and_cluster_of_the_map_is_there() -> None:
    from graphcost.device_db import load_cluster

    for entry in _names()["gpu"]:
        assert load_device(entry["device"]).id == entry["device"]
    for entry in _names()["machine"]:
        assert load_cluster(entry["cluster"]).id == entry["cluster"]


@pytest.mark.parametrize(
    ("text", "gigabytes_per_s", "kind"),
    [
        ("50Gb/s Ethernet", 6.25, LinkKind.TCP),
        ("1.6Tb/s InfiniBand", 200, LinkKind.INFINIBAND),
        ("1x100Gb/s IB EDR", 12.5, LinkKind.INFINIBAND),
        ("4x100Gb/s RoCE", 50, LinkKind.ROCE),
        ("10GbE with TCP/IP", 1.25, LinkKind.TCP),
        ("100GbE with TCP/IP", 12.5, LinkKind.TCP),
        ("100GbIB with RDMA", 12.5, LinkKind.INFINIBAND),
        ("cloud Ethernet (speed not in repo)", None, None),
        ("", None, None),
    ],
)
def test_networks(text: str, gigabytes_per_s: float | None, kind: LinkKind | None) -> None:
    expected = None if gigabytes_per_s is None else gigabytes_per_s * 1e9
    assert network_of(text) == (expected, kind)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"step_s": None}, "no step time"),
        ({"batch": None}, "no batch"),
        ({"batch": 3.5}, "a batch that is no whole number"),
        ({"model_id": "tacotron2"}, "no builder"),
        ({"gpu": "Voodoo 2"}, "no device for Voodoo 2"),
        ({"precision": "FP7"}, "no precision for FP7"),
        ({"gpus": 4, "arch": "gossip"}, "no architecture for gossip"),
        (
            {"gpus": 8, "arch": "TP8 CP2"},
            "model parallelism whose sizes the row leaves out, or of a kind that is not modelled",
        ),
        ({"phase": "forward"}, "phase forward"),
        ({"model_id": "bert_base", "task_input": ""}, "no length of its sequences"),
    ],
)
def test_what_is_not_known_is_said(changes: dict[str, Any], reason: str, row: MeasuredRow) -> None:
    assert job_of(replace(row, **changes)) == Skipped(reason)


@pytest.mark.parametrize(
    ("arch", "gpus", "built", "overlap"),
    [
        ("AllReduce(NCCL) DP", 4, "allreduce", None),
        ("AllReduce no overlap", 8, "allreduce", "none"),
        ("PS (BytePS) no overlap", 8, "ps", "none"),
        ("PS (BytePS) WFBP", 8, "ps", None),
        ("replicated/NCCL (tf_cnn_benchmarks)", 8, "allreduce", None),
        ("AllReduce(NCCL) DP", 1, "single", None),
    ],
)
def test_architectures(arch: str, gpus: int, built: str, overlap: str | None, row: MeasuredRow) -> None:
    found = job(row, arch=arch, gpus=gpus)
    assert (found.arch, found.overlap) == (built, overlap)


def test_spread_gpus_get_servers(row: MeasuredRow) -> None:
    assert job(row, gpus=4, servers=None, spread=True, arch="AllReduce DP").servers == 2
    assert job(row, gpus=4, servers=3, arch="AllReduce DP").servers == 3
    assert job(row, gpus=16, servers=None, arch="AllReduce DP").servers == 2  # 8 GPUs a server


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"table": "timm_train_amp_nhwc_pt112", "framework": "PyTorch 1.12 (timm)", "layout": "channels-last"},
         {"layout": "channels-last", "stack": "torch-1", "kernels": "for-loop", "keep_gradients": True}),
        ({"table": "nvidia_dle_train", "precision": "AMP"}, {"layout": "channels-last", "execution": "eager"}),
        ({"table": "nvidia_dle_train", "notes": "with XLA"}, {"execution": "compiled", "layout": "nchw"}),
        ({"table": "nvidia_dle_train", "notes": "without XLA"}, {"execution": "eager"}),
        ({"table": "neusight_models"}, {"stack": "torch-2", "fused_attention": True}),
        ({"table": "llm_foundry_mpt", "precision": "amp_bf16", "gpu": "A100-SXM4-80GB"},
         {"precision": "bf16", "fused_attention": True}),
        ({"table": "vtrain_ground_truth", "precision": "FP16"},
         {"master_weights": True, "execution": "fused", "recompute": False}),
        ({"table": "llm_cluster", "source": "pytorch/torchtitan:benchmarks/", "notes": "eager; selective act ckpt"},
         {"master_weights": True, "recompute": True, "selective": True, "stack": "torch-2"}),
        ({"table": "llm_cluster", "precision": "FP16", "notes": "TFlops/GPU reported 26.7"}, {"recompute": True}),
        ({"phase": "infer"}, {"trains": False}),
    ],
)  # fmt: skip
def test_what_a_script_ran(changes: dict[str, Any], expected: dict[str, Any], row: MeasuredRow) -> None:
    recipe = job(row, **changes).recipe
    assert {name: getattr(recipe, name) for name in expected} == expected


def test_a_timm_name_loses_its_tag(row: MeasuredRow) -> None:
    found = job(row, framework="PyTorch 2.4 (timm)", model_id="resnet50.a1_in1k", task_input="288x288")
    assert (found.source, dict(found.dims)) == ("timm:resnet50", {"image": 288})


def test_sizes_of_a_mesh_are_its_architecture(row: MeasuredRow) -> None:
    row = replace(row, gpus=8, arch="TP4 DP1 PP2", accumulate=4, notes="interleave=2; seq-parallel/selective=seqsel")
    job = job_of(row)
    assert isinstance(job, Job)
    assert job.arch == "tp=4,dp=1,pp=2,mb=4,v=2,sp=1,cut=layers"
    job = job_of(replace(row, framework="Megatron + Deepspeed ZeRO", notes=""))
    assert isinstance(job, Job)
    assert job.arch == "tp=4,dp=1,pp=2,mb=4,zero=3,cut=layers"


def test_what_a_script_is_known_to_have_run(row: MeasuredRow) -> None:
    """By table, and by framework within one."""
    assert job(row, table="sia_traces_a100").recipe.trainer == "adaptdl" and job(row).recipe.trainer == "torch"
    tuned = job(row, table="mlperf_training", precision="AMP/FP16 (per submission)").recipe
    assert (tuned.execution, tuned.layout, tuned.master_weights) == ("compiled", "channels-last", True)
    layouts = {
        name: job(row, table="dlperf_v100", framework=name, precision="AMP").recipe.layout
        for name in ("NGC-PyTorch", "NGC-TensorFlow")
    }
    assert layouts == {"NGC-PyTorch": "nchw", "NGC-TensorFlow": "channels-last"}


@pytest.mark.parametrize(("framework", "positions"), [("OneFlow", 20), ("PyTorch 1.4", 0)])
def test_words_that_pretraining_scores(framework: str, positions: int, row: MeasuredRow) -> None:
    found = job(row, model_id="bert_base", task_input="seq128", framework=framework)
    assert found.source == "zoo:bert-base-pretraining" and found.dims.get("predictions", 0) == positions
