"""Networks held in the half format with fp32 masters, and kernels fused by hand, worked out on paper."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from graphcost import analyze
from graphcost.cli.main import cli
from graphcost.graph import build_graph
from graphcost.ir import BatchSource, Model
from graphcost.models_zoo import build
from graphcost.models_zoo._builder import Builder
from graphcost.ops import OpClass
from graphcost.recipe import HALF_EVERYTHING, OPTIMIZERS, Execution, OptimizerKernels, Precision, Recipe
from graphcost.training import StepPlan, plan_step

PARAMS = 16 * 32 + 32
SCORES = {"execution": Execution.FUSED, "precision": Precision.AMP_FP16, "half_ops": HALF_EVERYTHING | {"Add", "Div"}}


def layer() -> Model:
    """``[8, 16] -> [8, 32]`` with a bias, GELU, dropout and a sum with another input."""
    b = Builder("hand", 8, BatchSource.OPTION)
    x, other = b.input("x", (8, 16)), b.input("other", (8, 32))
    y = b.pointwise("Gelu", b.linear(x, 32, name="fc"))
    return b.finish(b.add(other, b.dropout(y)))


def plan(**choices: object) -> StepPlan:
    return plan_step(build_graph(layer()), Recipe(**choices))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("precision", "accumulate", "optimizer", "read_bytes", "write_bytes"),
    [
        # gradient 2, weight, m and v 4 each read; weight, m, v and the weight in halves written
        (Precision.BF16, 1, "adam", 2 + 3 * 4, 3 * 4 + 2),
        # the loss scaler's check reads the gradient once more; two sums of micro-batches: read 2 + 2, write 2
        (Precision.AMP_FP16, 3, "adam", 2 * (2 + 2) + 2 + 2 + 3 * 4, 2 * 2 + 3 * 4 + 2),
        (Precision.BF16, 1, "momentum", 2 + 2 * 4, 2 * 4 + 2),
    ],
)
def test_bytes_of_an_update(
    precision: Precision, accumulate: int, optimizer: str, read_bytes: int, write_bytes: int
) -> None:
    found = plan(precision=precision, accumulate=accumulate, optimizer=OPTIMIZERS[optimizer], master_weights=True)
    cost = [op.cost for op in found.updates if op.cost is not None]
    assert sum(one.read_bytes for one in cost) == PARAMS * read_bytes
    assert sum(one.write_bytes for one in cost) == PARAMS * write_bytes


def test_memory_is_sixteen_bytes_a_parameter() -> None:
    memory = plan(precision=Precision.BF16, master_weights=True).memory
    assert memory.weights_bytes == 2 * PARAMS and memory.gradients_bytes == 2 * PARAMS
    assert memory.optimizer_bytes == (4 + 4 + 4) * PARAMS  # master, m, v


def test_weights_in_halves_are_not_cast() -> None:
    def casts(**choices: object) -> int:
        found = plan(precision=Precision.AMP_FP16, **choices)
        return sum(op.op_type == "Cast" and "weight" in op.name for op in found.forward)

    assert casts() == 1 and casts(master_weights=True) == 0
    assert plan(precision=Precision.AMP_FP16, master_weights=True).gradient_bytes == 2 * PARAMS


def test_other_kernels_than_the_fused_one_move_more() -> None:
    fused, plain = (
        plan(precision=Precision.BF16, master_weights=True, kernels=one)
        for one in (OptimizerKernels.FUSED, OptimizerKernels.FOR_LOOP)
    )
    assert sum(op.cost.bytes for op in plain.updates if op.cost) > sum(
        op.cost.bytes for op in fused.updates if op.cost
    )


def test_kernels_fused_by_hand() -> None:
    """The product adds its bias; GELU, dropout and the sum are one kernel that reads twice and writes once."""
    found = plan(precision=Precision.BF16, execution=Execution.FUSED).forward
    x, weight, bias, y = 2 * 8 * 16, 2 * 16 * 32, 2 * 32, 2 * 8 * 32
    assert [op.op_type for op in found] == ["MatMul", "Add", "Gelu", "Dropout", "Add"]
    assert [op.launches for op in found] == [1, 0, 1, 0, 0]
    assert [(op.cost.read_bytes, op.cost.write_bytes) for op in found if op.cost] == [
        (x + weight, 0), (bias, y),  # the product stays on the chip until its bias is added
        (y, 0), (0, 0), (y, y),  # the last reads the other input
    ]  # fmt: skip


def test_a_fused_layer_norm_stays_a_kernel_of_its_own() -> None:
    graph = build_graph(build("gpt2", batch=1, dims={"seq": 64}))
    found = plan_step(graph, Recipe(precision=Precision.BF16, execution=Execution.FUSED))
    norms = [op for op in found.forward if op.op_class is OpClass.NORM]
    assert norms and all(op.launches == 1 for op in norms)
    softmax = [op for op in found.forward if op.op_type == "Softmax"]
    assert softmax and all(op.launches == 0 for op in softmax)  # scale and mask lead its kernel


def test_fusion_by_hand_lies_between_eager_and_a_compiler() -> None:
    graph = build_graph(build("gpt2", batch=1, dims={"seq": 64}))

    def moved(execution: Execution) -> int:
        found = plan_step(graph, Recipe(precision=Precision.BF16, execution=execution))
        return sum(op.cost.bytes for op in (*found.forward, *found.backward) if op.cost is not None)

    assert moved(Execution.COMPILED) < moved(Execution.FUSED) < moved(Execution.EAGER)


@pytest.mark.parametrize(("heads", "batch", "kernels"), [(4, 1, 2), (2, 2, 2), (2, 1, 4)])
def test_megatrons_softmax_wants_batch_times_heads_in_fours(heads: int, batch: int, kernels: int) -> None:
    graph = build_graph(build(f"gpt-h64-l2-a{heads}", batch=batch, dims={"seq": 32, "vocabulary": 128}))
    found = plan_step(graph, Recipe(**SCORES)).forward  # type: ignore[arg-type]
    second = [op for op in found if op.name.startswith("h.1.attn.")]
    ends = next(index for index, op in enumerate(second) if op.op_type == "Softmax")
    begins = next(index for index, op in enumerate(second) if op.op_type == "Div")
    # scale, mask, (cast to fp32,) softmax: the mask is cast to halves after the scale, so the kernel begins there
    chain = second[begins : ends + 1]
    assert sum(op.launches for op in chain) == kernels
    assert chain[-1].dtype == ("float16" if kernels == 2 else "float32")


@pytest.mark.parametrize(("flag", "words"), [(True, "bf16 over fp32 masters, adam"), (False, "bf16, adam")])
def test_masters_are_in_the_headline_and_in_the_json(flag: bool, words: str) -> None:
    how = {"gpus": 8, "batch": 2, "precision": "bf16", "master_weights": flag}
    found = analyze("zoo:mlp", **how)
    assert words in found.report("text").splitlines()[1]
    assert found.to_dict()["training"]["master_weights"] is flag
    for more in ([], ["--best"]):
        text = CliRunner().invoke(cli, ["compare", "zoo:mlp", *more, "--gpus=8", "--batch=2", "--precision=bf16",
                                        *["--master-weights"] * flag]).output  # fmt: skip
        assert ("bf16 over fp32 masters" in text.splitlines()[0]) is flag
