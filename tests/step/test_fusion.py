"""Groups that a compiler runs as one kernel, on graphs drawn by hand, and laws over the zoo."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcost.graph import build_graph
from graphcost.ir import BatchSource, Model, Phase
from graphcost.models_zoo import build
from graphcost.models_zoo._builder import Builder
from graphcost.recipe import OPTIMIZERS, Execution, Precision, Recipe
from graphcost.training import PlannedOp, StepPlan, plan_step
from graphcost.training.fusion import MAX_MEMBERS, fusion_of
from graphcost.training.views import lay_out

X = (8, 16)


def drawn(draw: Callable[[Builder, str], str]) -> Model:
    b = Builder("hand", X[0], BatchSource.OPTION)
    return b.finish(draw(b, b.input("x", X)))


def groups(model: Model) -> list[list[int]]:
    """Members of every group, in order of beginning."""
    fusion = fusion_of(list(lay_out(model.nodes)), model.outputs, Execution.COMPILED)
    found = {id(group): group.members for group in fusion.group_of if group is not None}
    return list(found.values())


def plans(model: Model, **choices: object) -> tuple[StepPlan, StepPlan]:
    graph = build_graph(model)
    return tuple(plan_step(graph, Recipe(execution=one, **choices)) for one in (Execution.EAGER, Execution.COMPILED))  # type: ignore


def launches(ops: tuple[PlannedOp, ...]) -> int:
    return sum(op.launches * op.repeat for op in ops)


def pointwise_chain(b: Builder, x: str, count: int = 3) -> str:
    for _ in range(count):
        x = b.relu(x)
    return x


def two_readers(b: Builder, x: str) -> str:
    y = b.gemm(x, 32)
    return b.pointwise("Mul", b.relu(y), b.pointwise("Sigmoid", y))


def around_a_product(b: Builder, x: str) -> str:
    """exp, product, tanh of exp, sum: the sum must not pull tanh's kernel behind the product's."""
    a = b.pointwise("Exp", x)
    product = b.op("MatMul", [a, b.param("w", (16, 16))], X)
    return b.pointwise("Add", b.pointwise("Tanh", a), product)


def normalised(b: Builder, x: str) -> str:
    """A layer norm's rows fuse with what precedes them, a batch norm's statistics do not."""
    return b.relu(b.batch_norm(b.layer_norm(b.relu(x))))


GROUPS: dict[str, tuple[Callable[[Builder, str], str], list[list[int]]]] = {
    "chain": (pointwise_chain, [[0, 1, 2]]),
    "epilogue": (lambda b, x: b.relu(b.gemm(x, 32)), [[0, 1]]),
    "two readers take no epilogue": (two_readers, [[0], [1], [2, 3]]),
    "product before reduction": (lambda b, x: b.op("ReduceSum", [b.gemm(x, 32)], (8,)), [[0], [1]]),
    "softmax": (lambda b, x: b.pointwise("Softmax", b.pointwise("Neg", x), axis=-1), [[0, 1]]),
    "around a product": (around_a_product, [[0, 2], [1], [3]]),
    "norms": (normalised, [[0, 1], [2, 3]]),
    "another space": (lambda b, x: b.relu(b.op("ReduceSum", [b.relu(x)], (8,))), [[0, 1], [2]]),
    "a view between": (lambda b, x: b.relu(b.reshape(b.relu(x), (16, 8))), [[0, 2]]),
    "pooling stands alone": (lambda b, x: b.relu(b.max_pool(b.reshape(x, (1, 1, 8, 16)), 2, 2)), [[1], [2]]),
}


@pytest.mark.parametrize("name", GROUPS)
def test_groups(name: str) -> None:
    draw, members = GROUPS[name]
    assert groups(drawn(draw)) == members


def test_a_group_has_an_end() -> None:
    sizes = [len(members) for members in groups(drawn(lambda b, x: pointwise_chain(b, x, MAX_MEMBERS + 6)))]
    assert sizes == [MAX_MEMBERS, 6]


def test_an_epilogue_saves_writing_and_reading_the_product() -> None:
    eager, compiled = plans(drawn(lambda b, x: b.relu(b.gemm(x, 32))))
    product = 4 * (8 * 16 + 32 * 16 + 32) + 4 * 8 * 32  # x, weight, bias; y
    relu = 2 * 4 * 8 * 32
    assert eager.bytes.eager_bytes == compiled.bytes.eager_bytes == product + relu
    assert eager.bytes.fused_bytes == compiled.bytes.fused_bytes == product + relu - 2 * 4 * 8 * 32
    assert eager.bytes.weights_bytes == 4 * (32 * 16 + 32)
    assert eager.total(Phase.FORWARD).bytes == eager.bytes.eager_bytes
    assert compiled.total(Phase.FORWARD).bytes == compiled.bytes.fused_bytes
    assert (launches(eager.forward), launches(compiled.forward)) == (2, 1)


def test_a_chain_reads_and_writes_once() -> None:
    eager, compiled = plans(drawn(pointwise_chain))
    assert eager.bytes.eager_bytes == 3 * 2 * 4 * 128 and compiled.bytes.fused_bytes == 2 * 4 * 128
    assert eager.total(Phase.FORWARD).flops == compiled.total(Phase.FORWARD).flops == 3 * 128


def test_a_tensor_that_two_members_read_is_fetched_once() -> None:
    """exp(x) * x: eager reads x, exp, x and writes exp and the product; one kernel reads x and writes the product."""
    eager, compiled = plans(drawn(lambda b, x: b.pointwise("Mul", b.pointwise("Exp", x), x)))
    assert eager.bytes.eager_bytes == 5 * 4 * 128 and compiled.bytes.fused_bytes == 2 * 4 * 128


def test_what_the_caller_reads_is_written() -> None:
    """The first result is an output too: x in, both results out, and the first is not read again."""
    b = Builder("hand", 8, BatchSource.OPTION)
    first = b.relu(b.input("x", X))
    eager, compiled = plans(b.finish(b.relu(first), first))
    assert eager.bytes.eager_bytes == 4 * 4 * 128 and compiled.bytes.fused_bytes == 3 * 4 * 128


def test_lookups_read_rows_not_tables() -> None:
    """Four ids of a table of 1 000 x 16: 4 rows, twice; the classifier's weight whole."""
    b = Builder("hand", 4, BatchSource.OPTION)
    x = b.embedding(b.input("ids", (4,), "int64"), 1000, 16, name="table")
    eager, _ = plans(b.finish(b.gemm(x, 3)))
    assert eager.bytes.weights_bytes == 4 * (4 * 16 + 16 * 3 + 3) <= eager.bytes.fused_bytes


MODELS = {
    "mlp": {}, "resnet18": {"image": 64}, "mobilenet-v2": {"image": 64}, "bert-base": {"seq": 8}, "gpt2": {"seq": 32},
    "vit-base-16": {"image": 64}, "vgg16": {"image": 64},
}  # fmt: skip


@settings(max_examples=25)
@given(
    st.sampled_from(sorted(MODELS)), st.integers(1, 5), st.sampled_from(list(Precision)),
    st.sampled_from(["adam", "none"]),
)  # fmt: skip
def test_fusing_never_adds(model: str, batch: int, precision: Precision, optimizer: str) -> None:
    made = build(model, batch=batch, dims=MODELS[model])
    eager, compiled = plans(made, precision=precision, optimizer=OPTIMIZERS[optimizer])
    assert eager.bytes == compiled.bytes
    assert eager.bytes.weights_bytes <= eager.bytes.fused_bytes <= eager.bytes.eager_bytes
    for phase in (Phase.FORWARD, Phase.BACKWARD):
        assert compiled.total(phase).bytes <= eager.total(phase).bytes
        assert compiled.total(phase).matmul_flops == eager.total(phase).matmul_flops
        assert compiled.total(phase).elementwise_flops == eager.total(phase).elementwise_flops
    assert launches(compiled.forward) <= launches(eager.forward)
    assert launches(compiled.backward) <= launches(eager.backward)
    assert compiled.memory.activations_bytes <= eager.memory.activations_bytes
    assert [g.bytes for g in compiled.gradients] == [g.bytes for g in eager.gradients]
