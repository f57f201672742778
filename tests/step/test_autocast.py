"""Formats under AMP against torch's own CUDA autocast, asked with fake tensors: no GPU is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcost.graph import build_graph
from graphcost.ir import BatchSource, Model, OpNode, Phase, TensorSpec
from graphcost.models_zoo import build
from graphcost.models_zoo._builder import Builder
from graphcost.recipe import Precision, Recipe
from graphcost.training import StepPlan, plan_step
from graphcost.training.autocast import TypedOp, under

torch = pytest.importorskip("torch")
F = torch.nn.functional
SQUARE = TensorSpec((16, 16))
Torch = Callable[..., Any]

# ONNX name: torch's call
UNARY: dict[str, Torch] = {
    "Softmax": lambda x: torch.softmax(x, -1), "LogSoftmax": lambda x: torch.log_softmax(x, -1),
    "Exp": torch.exp, "Log": torch.log, "Reciprocal": torch.reciprocal, "Softplus": F.softplus, "Tan": torch.tan,
    "Sinh": torch.sinh, "Cosh": torch.cosh, "Acos": torch.acos, "Asin": torch.asin,
    "ReduceSum": lambda x: x.sum(-1), "ReduceProd": lambda x: x.prod(-1), "CumSum": lambda x: x.cumsum(-1),
    "CumProd": lambda x: x.cumprod(-1), "ReduceL2": lambda x: x.norm(dim=-1),
    "ReduceL1": lambda x: x.norm(p=1, dim=-1),
    "Relu": torch.relu, "Sigmoid": torch.sigmoid, "Tanh": torch.tanh, "Gelu": F.gelu, "Swish": F.silu,
    "Elu": F.elu, "HardSwish": F.hardswish, "Clip": lambda x: x.clamp(0, 6), "Erf": torch.erf, "Sqrt": torch.sqrt,
    "Abs": torch.abs, "Neg": torch.neg, "Sin": torch.sin, "Cos": torch.cos, "ReduceMean": lambda x: x.mean(-1),
    "ReduceMax": lambda x: x.amax(-1), "Dropout": lambda x: F.dropout(x, 0.5), "LeakyRelu": F.leaky_relu,
}  # fmt: skip
BINARY: dict[str, Torch] = {
    "MatMul": torch.matmul, "Add": torch.add, "Mul": torch.mul, "Sub": torch.sub, "Div": torch.div,
    "Pow": torch.pow, "Max": torch.maximum, "PRelu": lambda x, w: F.prelu(x, w.select(0, 0)),
    "Concat": lambda x, y: torch.cat([x, y]),
}  # fmt: skip


@pytest.fixture
def fake_cuda() -> Iterator[Callable[..., Any]]:
    """Tensors that claim to be on a GPU, under autocast to float16."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    before = torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
    torch.set_autocast_enabled("cuda", True)
    torch.set_autocast_dtype("cuda", torch.float16)
    try:
        with FakeTensorMode():
            yield lambda *shape, dtype=torch.float32: torch.empty(*shape, device="cuda", dtype=dtype)
    finally:
        torch.set_autocast_enabled("cuda", before[0])
        torch.set_autocast_dtype("cuda", before[1])


def name_of(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def typed(nodes: list[OpNode], precision: Precision = Precision.AMP_FP16) -> list[TypedOp]:
    return list(under(((node.name, node) for node in nodes), precision))


def asked(op_type: str, formats: tuple[str, ...], out: tuple[int, ...]) -> str:
    """The output's format where inputs arrive in ``formats``: half ones come from a product."""
    nodes = [
        OpNode(
            f"x{i}", "MatMul", (SQUARE, SQUARE), (SQUARE,), input_names=("a", "b"), output_names=(f"x{i}",)
        )
        for i, dtype in enumerate(formats)
        if dtype == "float16"
    ]  # fmt: skip
    names = tuple(f"x{i}" if dtype == "float16" else f"in{i}" for i, dtype in enumerate(formats))
    specs = (SQUARE,) * len(formats)
    nodes.append(OpNode("y", op_type, specs, (TensorSpec(out),), input_names=names, output_names=("y",)))
    spec = typed(nodes)[-1].node.outputs[0]
    assert spec is not None
    return spec.dtype


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("op_type", UNARY)
def test_one_input(op_type: str, dtype: str, fake_cuda: Callable[..., Any]) -> None:
    result = UNARY[op_type](fake_cuda(16, 16, dtype=getattr(torch, dtype)))
    assert asked(op_type, (dtype,), tuple(result.shape)) == name_of(result.dtype)


@pytest.mark.parametrize("formats", [("float16", "float16"), ("float16", "float32"), ("float32", "float32")], ids=str)
@pytest.mark.parametrize("op_type", BINARY)
def test_two_inputs(op_type: str, formats: tuple[str, str], fake_cuda: Callable[..., Any]) -> None:
    result = BINARY[op_type](*(fake_cuda(16, 16, dtype=getattr(torch, dtype)) for dtype in formats))
    assert asked(op_type, formats, tuple(result.shape)) == name_of(result.dtype)


def test_layers_with_weights(fake_cuda: Callable[..., Any]) -> None:
    """Convolution and Gemm are cast down, layer and group norm up; batch norm keeps its data's format."""
    weight = fake_cuda(16)
    images = fake_cuda(2, 16, 8, 8, dtype=torch.float16)
    results = {
        "Conv": F.conv2d(images, fake_cuda(16, 16, 1, 1)),
        "GroupNormalization": F.group_norm(images, 4, weight, weight),
        "LayerNormalization": F.layer_norm(images, (8,), fake_cuda(8), fake_cuda(8)),
        "RMSNormalization": F.rms_norm(images, (8,), fake_cuda(8)),
    }
    b = Builder("hand", 2, BatchSource.OPTION)
    x = b.conv(b.input("x", (2, 16, 8, 8)), 16, 1)
    slots = [b.param("scale", (16,)), b.param("shift", (16,))]
    rows = [b.param("row scale", (8,)), b.param("row shift", (8,))]
    b.batch_norm(x)
    b.op("GroupNormalization", [x, *slots], b.shape(x), num_groups=4)
    b.op("LayerNormalization", [x, *rows], b.shape(x), axis=-1)
    b.op("RMSNormalization", [x, rows[0]], b.shape(x), axis=-1)
    ours = {op.node.op_type: op.node.out.dtype for op in typed(list(b.finish(x).nodes)) if op.node.op_type != "Cast"}
    # fake tensors cannot ask batch norm without a GPU; it is on no list, so its kernel sees its data as it is
    assert not torch._C._dispatch_has_kernel_for_dispatch_key("aten::batch_norm", "AutocastCUDA")
    assert ours.pop("BatchNormalization") == "float16"
    assert ours == {name: name_of(result.dtype) for name, result in results.items()}


def tied() -> Model:
    """Two products with one weight of 8 x 8 values, a sum between them in fp32, and one product of their result."""
    b = Builder("tied", 4, BatchSource.OPTION)
    x, weight = b.input("x", (4, 8)), b.param("w", (8, 8))
    y = b.op("MatMul", [x, weight], (4, 8))
    z = b.op("MatMul", [b.op("Exp", [y], (4, 8)), weight], (4, 8))
    return b.finish(b.op("MatMul", [z, b.param("v", (8, 2))], (4, 2)))


def casts(plan: StepPlan) -> dict[str, tuple[int, int]]:
    return {
        op.name: (op.cost.read_bytes, op.cost.write_bytes) for op in plan.forward if op.op_type == "Cast" and op.cost
    }


def test_weights_are_cast_once_and_activations_for_every_reader() -> None:
    plan = plan_step(build_graph(tied()), Recipe(precision=Precision.AMP_FP16))
    found = casts(plan)
    # 4 x 8 values of the input down, 8 x 8 of the tied weight once, y up, exp(y) down, 8 x 2 of the last weight
    assert sorted(found.values()) == sorted(
        [(4 * 32, 2 * 32), (4 * 64, 2 * 64), (2 * 32, 4 * 32), (4 * 32, 2 * 32), (4 * 16, 2 * 16)]
    )
    assert plan.gradient_bytes == 4 * (64 + 16) and plan.memory.weights_bytes == 4 * (64 + 16)
    dtypes = [op.dtype for op in plan.forward if op.op_type == "MatMul"]
    assert dtypes == ["float16"] * 3
    back = [op for op in plan.backward if op.op_type == "MatMul"]
    assert {op.dtype for op in back} == {"float16"}


@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16"])
def test_one_format_needs_no_casts(precision: str) -> None:
    plan = plan_step(build_graph(tied()), Recipe(precision=Precision(precision)))
    assert casts(plan) == {}
    expected = {"fp32": "float32", "tf32": "tf32", "bf16": "bfloat16"}[precision]
    assert [op.dtype for op in plan.forward if op.op_type == "MatMul"] == [expected] * 3
    assert next(op.dtype for op in plan.forward if op.op_type == "Exp") == (
        "bfloat16" if precision == "bf16" else "float32"
    )
    assert plan.gradient_bytes == (2 if precision == "bf16" else 4) * (64 + 16)


@given(st.sampled_from(["mlp", "resnet18", "mobilenet-v2"]), st.sampled_from(["amp-fp16", "amp-bf16"]))
def test_amp_changes_no_count(model: str, precision: str) -> None:
    """The same products, parameters and gradients as fp32; fewer bytes of activations; casts alone are new."""
    graph = build_graph(build(model, batch=4, dims={} if model == "mlp" else {"image": 64}))
    full, amp = plan_step(graph), plan_step(graph, Recipe(precision=Precision(precision)))
    for phase in (Phase.FORWARD, Phase.BACKWARD):
        assert amp.total(phase).matmul_flops == full.total(phase).matmul_flops
    sent = [sorted((gradient.param, gradient.bytes) for gradient in plan.gradients) for plan in (full, amp)]
    assert sent[0] == sent[1]
    half_weights_bytes = full.memory.weights_bytes // 2  # autocast's copies live until their backward pass
    assert amp.memory.activations_bytes - half_weights_bytes < full.memory.activations_bytes
    assert [op.name for op in amp.forward if op.op_type != "Cast"] == [op.name for op in full.forward]
