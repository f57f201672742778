"""What the optimizer, clipping, the scaler, lookups, freezing, recomputation and accumulation add to a step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcost.graph import build_graph
from graphcost.ir import BatchSource, Model, Phase
from graphcost.models_zoo import build
from graphcost.models_zoo._builder import Builder
from graphcost.recipe import OPTIMIZERS, Execution, Lookups, OptimizerKernels, Precision, Recipe
from graphcost.training import StepPlan, plan_step

VALUES = 669_706
"""Parameters of the MLP: 784 x 512 + 512 + 512 x 512 + 512 + 512 x 10 + 10, six tensors."""


def mlp(**choices: object) -> StepPlan:
    return plan_step(build_graph(build("mlp", batch=4)), Recipe(**choices))  # type: ignore[arg-type]


def by_name(optimizer: str, kernels: str = "fused", **choices: object) -> StepPlan:
    return mlp(optimizer=OPTIMIZERS[optimizer], kernels=OptimizerKernels(kernels), **choices)


# Values read and written per parameter: fused reads p, g and state once and writes p and state once;
# the others are torch.optim's pointwise kernels one after another.
TRAFFIC = {
    ("sgd", "fused"): 2 + 1,
    ("sgd", "foreach"): 2 + 1,
    ("momentum", "fused"): 3 + 2,
    ("momentum", "foreach"): (1 + 1) + (2 + 1) + (2 + 1),
    ("adam", "fused"): 4 + 3,
    # lerp m, scale v, v += g^2, root, bias, epsilon, p += m / root
    ("adam", "foreach"): (2 + 1) + (1 + 1) + (2 + 1) + (1 + 1) + (1 + 1) + (1 + 1) + (3 + 1),
    ("adam", "for-loop"): 18,
    ("adamw", "fused"): 4 + 3,
    ("adamw", "foreach"): (1 + 1) + 18,  # the decay first
    ("lamb", "fused"): 8 + 4,
}


@pytest.mark.parametrize(("optimizer", "kernels"), TRAFFIC, ids=lambda value: value)
@pytest.mark.parametrize("precision", ["fp32", "bf16", "amp-bf16"])
def test_update_traffic(optimizer: str, kernels: str, precision: str) -> None:
    plan = by_name(optimizer, kernels, precision=Precision(precision))
    width = 2 if precision == "bf16" else 4  # AMP keeps weights, gradients and state in fp32
    assert plan.update.bytes == TRAFFIC[optimizer, kernels] * width * VALUES


def test_adafactor_and_lamb_have_no_fused_kernel_in_torch_or_move_more_without() -> None:
    plain = {name: by_name(name, "foreach").update.bytes for name in ("adafactor", "lamb")}
    assert by_name("adafactor", "fused").update.bytes == plain["adafactor"]
    assert by_name("lamb", "fused").update.bytes < plain["lamb"]


# Values kept: Adafactor keeps a row and a column sum of each matrix and all of each vector.
MATRICES = (512, 784), (512, 512), (10, 512)
VECTORS = 512 + 512 + 10
STATE = {
    "none": 0, "sgd": 0, "momentum": VALUES, "nesterov": VALUES, "adam": 2 * VALUES,
    "adamw": 2 * VALUES, "lamb": 2 * VALUES,
    "adafactor": sum(rows + columns for rows, columns in MATRICES) + VECTORS,
}  # fmt: skip


def test_state_of_every_optimizer() -> None:
    assert {name: by_name(name).memory.optimizer_bytes // 4 for name in OPTIMIZERS} == STATE


def test_adafactor_keeps_sums_of_the_last_two_axes() -> None:
    """A convolution of 64 x 32 x 3 x 5: row sums 64 x 32 x 3, column sums 64 x 32 x 5."""
    shape = (64, 32, 3, 5)
    assert OPTIMIZERS["adafactor"].state_numel(shape, 64 * 32 * 15) == 64 * 32 * 3 + 64 * 32 * 5


def test_torch_keeps_as_much() -> None:
    """The second oracle: torch's own optimizers after one step, their step counters left out."""
    torch = pytest.importorskip("torch")
    made = {"momentum": (torch.optim.SGD, {"momentum": 0.9}), "adam": (torch.optim.Adam, {}),
            "adamw": (torch.optim.AdamW, {}), "sgd": (torch.optim.SGD, {}),
            "adafactor": (torch.optim.Adafactor, {})}  # fmt: skip
    for name, (kind, options) in made.items():
        for shape in ((6, 4), (5,), (3, 2, 3, 5)):
            parameter = torch.nn.Parameter(torch.zeros(shape))
            parameter.grad = torch.ones(shape)
            optimizer = kind([parameter], **options)
            optimizer.step()
            state = optimizer.state[parameter]
            kept = sum(value.numel() for key, value in state.items() if key != "step" and torch.is_tensor(value))
            assert OPTIMIZERS[name].state_numel(shape, parameter.numel()) == kept, (name, shape)


def test_multi_tensor_kernels_launch_once_and_loops_once_a_parameter() -> None:
    launches = {
        kernels: [update.launches for update in by_name("adam", kernels).updates] for kernels in OptimizerKernels
    }
    assert launches == {"fused": [1, 0, 0, 0, 0, 0], "foreach": [7, 0, 0, 0, 0, 0], "for-loop": [7] * 6}


@pytest.mark.parametrize(
    ("choices", "passes"),
    [
        ({}, 4 + 3),
        ({"clip": True}, (1 + 0) + (1 + 1) + 7),  # the norm reads, the scaling reads and writes
        ({"precision": Precision.AMP_FP16}, (1 + 1) + 7),  # GradScaler's unscale_
        ({"precision": Precision.AMP_BF16}, 7),  # bfloat16 needs no scaler
        ({"accumulate": 4}, 3 * (2 + 1) + 7),  # three sums of micro-batches
        ({"accumulate": 2, "clip": True, "precision": Precision.AMP_FP16}, 3 + 2 + 1 + 2 + 7),
    ],
    ids=["plain", "clip", "scaler", "bfloat16", "accumulate", "all"],
)
def test_passes_over_the_gradients(choices: dict[str, object], passes: int) -> None:
    assert mlp(**choices).update.bytes == passes * 4 * VALUES


def table(rows: int, lookups: int, *, tied: bool = False) -> Model:
    """A sparse table of ``rows`` x 8; tied, it is the classifier's weight too."""
    b = Builder("table", lookups, BatchSource.OPTION)
    ids = b.input("ids", (lookups,), "int64")
    x = b.embedding(ids, rows, 8, name="table", sparse=True)
    if not tied:
        return b.finish(b.gemm(x, 2, name="head"))
    return b.finish(b.op("Gemm", [x, "table.weight"], (lookups, rows), transB=1))


def test_a_sparse_table_sends_and_updates_touched_rows() -> None:
    """1 000 lookups drawn alike among 1 000 rows touch 1000 (1 - e^-1) = 633 of them."""
    plan = plan_step(build_graph(table(1000, 1000)), Recipe(lookups=Lookups("uniform")))
    gradient = next(g for g in plan.gradients if g.param == "table.weight")
    assert gradient.bytes == 4 * 8000 and gradient.sent_bytes == 633 * (4 * 8 + 8)  # values and an int64 index
    update = next(u for u in plan.updates if u.id == "table.weight")
    assert update.cost is not None
    assert update.cost.bytes == 7 * 4 * -(-8000 * 633 * 40 // 32_000)


def test_rows_of_several_lookups_are_put_behind_one_another() -> None:
    """Three lookups of 10 rows of 8: torch copies 20, then 30 rows, whatever the table's size."""
    b = Builder("three", 10, BatchSource.OPTION)
    ids = b.input("ids", (10,), "int64")
    x = b.embedding(ids, 1_000_000, 8, name="table", sparse=True)
    again = [b.op("Gather", ["table.weight", ids], (10, 8)) for _ in range(2)]
    total = b.op("Add", [b.op("Add", [x, again[0]], (10, 8)), again[1]], (10, 8))
    plan = plan_step(build_graph(b.finish(total)))
    sums = [op.cost for op in plan.backward if op.name == "gradient sum of table.weight"]
    assert [(cost.read_bytes, cost.write_bytes, cost.flops) for cost in sums if cost] == [
        (20 * 8 * 4, 20 * 8 * 4, 0), (30 * 8 * 4, 30 * 8 * 4, 0),
    ]  # fmt: skip


def test_a_tied_weight_counts_once_and_is_dense() -> None:
    plan = plan_step(build_graph(table(1000, 10, tied=True)), Recipe(lookups=Lookups("uniform")))
    (gradient,) = plan.gradients
    assert gradient.bytes == gradient.sent_bytes == 4 * 8000  # the product's gradient touches every row
    assert plan.memory.weights_bytes == 4 * 8000 and plan.bytes.weights_bytes == 4 * 8000
    assert len(plan.updates) == 1 and plan.update.bytes == 7 * 4 * 8000
    assert gradient.ready_index == len(plan.backward) - 1  # the lookup's part comes last, then the sum
    assert [op.name for op in plan.backward if op.op_type == "Add"] == ["gradient sum of table.weight"]


@settings(max_examples=30)
@given(st.integers(1, 400), st.integers(1, 600), st.sampled_from([0.5, 1.0, 1.6, 3.0]), st.integers(0, 2**32 - 1))
def test_expected_rows_against_draws(rows: int, lookups: int, exponent: float, seed: int) -> None:
    """The mean of 300 draws lies within five standard errors of the closed form, which is rounded up."""
    chances = np.arange(1, rows + 1, dtype=float) ** -exponent
    random = np.random.default_rng(seed)
    for kind, shares in (("zipf", chances / chances.sum()), ("uniform", np.full(rows, 1 / rows))):
        draws = [np.unique(random.choice(rows, lookups, p=shares)).size for _ in range(300)]
        error = 5 * np.std(draws) / np.sqrt(len(draws)) + 0.05
        found = Lookups(kind, exponent).rows(lookups, rows)
        assert found - 1 - error <= np.mean(draws) <= found + error


@given(st.integers(0, 10**7), st.integers(0, 10**7), st.sampled_from(["all", "uniform", "zipf"]))
def test_rows_are_at_most_lookups_and_table(lookups: int, rows: int, kind: str) -> None:
    found = Lookups(kind, 1.05).rows(lookups, rows)
    assert 0 <= found <= min(lookups, rows)
    assert found <= Lookups("all").rows(lookups, rows) == min(lookups, rows)
    assert (found > 0) == (lookups > 0 and rows > 0)


def test_the_tail_of_a_large_table_in_bins_is_as_good_as_all_of_it() -> None:
    rows, lookups, exponent = 3_000_000, 500_000, 1.1
    weights = np.arange(1, rows + 1, dtype=float) ** -exponent
    exact = -np.expm1(lookups * np.log1p(-weights / weights.sum())).sum()
    assert Lookups("zipf", exponent).rows(lookups, rows) == pytest.approx(exact, rel=1e-4)


def test_frozen_parameters_are_not_trained() -> None:
    """Without fc1: the first layer has no backward pass, and the second needs no gradient of its input."""
    everything, head = mlp(), mlp(freeze=("fc1.*",))
    frozen = 784 * 512 + 512
    assert head.gradient_bytes == 4 * (VALUES - frozen)
    assert head.memory.optimizer_bytes == 8 * (VALUES - frozen)
    assert head.memory.weights_bytes == everything.memory.weights_bytes
    forward = head.total(Phase.FORWARD).matmul_flops
    assert forward == everything.total(Phase.FORWARD).matmul_flops == 2 * 4 * (784 * 512 + 512 * 512 + 512 * 10)
    back = 2 * 4 * (512 * 512 + 2 * 512 * 10)  # dW of fc2; dW and dX of fc3
    assert head.total(Phase.BACKWARD).matmul_flops == back


@pytest.mark.parametrize("execution", ["eager", "compiled"])
@pytest.mark.parametrize("model", ["mlp", "resnet18", "bert-base"])
def test_recomputation_adds_exactly_a_forward_pass(model: str, execution: str) -> None:
    dims = {"resnet18": {"image": 64}, "bert-base": {"seq": 32}}.get(model, {})
    graph = build_graph(build(model, batch=2, dims=dims))
    plain, again = (plan_step(graph, Recipe(recompute=r, execution=Execution(execution))) for r in (False, True))
    assert again.total(Phase.BACKWARD) == plain.total(Phase.BACKWARD) + plain.total(Phase.FORWARD)
    assert again.total(Phase.FORWARD) == plain.total(Phase.FORWARD)
    assert again.update == plain.update
    assert again.memory.activations_bytes < plain.memory.activations_bytes or model == "mlp"


def test_accumulation_repeats_passes_and_sums_gradients() -> None:
    once, four = mlp(), mlp(accumulate=4)
    for phase in (Phase.FORWARD, Phase.BACKWARD):
        assert four.total(phase) == once.total(phase)  # a plan is of one micro-batch
    assert four.update.bytes - once.update.bytes == 3 * 3 * 4 * VALUES
    assert four.gradient_bytes == once.gradient_bytes
