"""A model of one matrix product, small enough to work out by hand, and its times under the paper profile."""

from __future__ import annotations

from pathlib import Path

from onnx import TensorProto, helper, save

from graphcost.frontends.options import LoadOptions
from graphcost.placing import AnalysisOptions

K = N = 1024
WEIGHT_BYTES = 4 * K * N
UTILISATION = 0.7
PEAK, MEM, PCIE, NVLINK = 11e12, 1e12, 10e9, 50e9  # pai-paper-base, per second


def one_product(path: Path) -> Path:
    """``y = x @ w``: x is [batch, 1024], w is [1024, 1024]."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", K])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", N])
    w = TensorProto(name="w", dims=(K, N), data_type=TensorProto.FLOAT)
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [x], [y], [w])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), path)
    return path


def paper(batch: int = 64, gpus: int = 16, limit: float = 0.8, arch: str | None = None) -> AnalysisOptions:
    return AnalysisOptions(
        arch=arch, gpus=gpus, cluster="pai-paper-base", profile="paper", optimizer="sgd", max_comm_share=limit,
        load=LoadOptions(batch=batch),
    )  # fmt: skip


def rest_s(batch: int, pcie: float = PCIE, sharing: int = 8) -> float:
    """T_d + T_c: GPUs share a PCIe for inputs; forward and the weight's gradient; SGD reads w, g and writes w."""
    input_s = batch * K * 4 * sharing / (UTILISATION * pcie)
    compute_s = 2 * (2 * batch * K * N) / (UTILISATION * PEAK)
    memory_s = (4 + 4 + 4) * K * N / (UTILISATION * MEM)
    return input_s + compute_s + memory_s


def ring_bytes(gpus: int) -> float:
    """S_w of AllReduce: 4 (n-1)/n W."""
    return 4 * (gpus - 1) / gpus * WEIGHT_BYTES
