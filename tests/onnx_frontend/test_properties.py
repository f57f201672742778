"""Laws of the ONNX frontend, on generated networks with an open batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from graphcost.graph import stable_ids

from .build import Counted, bare, count, graph, ints, model, op, scalar, tensor


@dataclass
class _Grower:
    """Grows a network of values ``[batch, width]``, node by node."""

    choose: Random
    nodes: list[NodeProto] = field(default_factory=list)
    stored: list[TensorProto] = field(default_factory=list)
    values: list[tuple[str, int]] = field(default_factory=list)

    def fresh(self) -> str:
        return f"v{len(self.nodes)}"

    def add(self, made: NodeProto, width: int) -> None:
        made.name = f"n{len(self.nodes)}"
        self.nodes.append(made)
        self.values.append((made.output[0], width))

    def weight(self, *shape: int) -> str:
        name = f"w{len(self.stored)}"
        self.stored.append(bare(name, *shape))
        return name

    def step(self) -> None:
        getattr(self, self.choose.choice(STEPS))(*self.choose.choice(self.values))

    def matmul(self, x: str, width: int) -> None:
        columns = self.choose.randint(1, 5)
        self.add(op("MatMul", [x, self.weight(width, columns)], [self.fresh()]), columns)

    def gemm(self, x: str, width: int) -> None:
        columns = self.choose.randint(1, 5)
        weights = [self.weight(columns, width), self.weight(columns)]
        self.add(op("Gemm", [x, *weights], [self.fresh()], transB=1), columns)

    def relu(self, x: str, width: int) -> None:
        self.add(op("Relu", [x], [self.fresh()]), width)

    def softmax(self, x: str, width: int) -> None:
        self.add(op("Softmax", [x], [self.fresh()], axis=-1), width)

    def add_bias(self, x: str, width: int) -> None:
        self.add(op("Add", [x, self.weight(width)], [self.fresh()]), width)

    def concat(self, x: str, width: int) -> None:
        other, more = self.choose.choice(self.values)
        self.add(op("Concat", [x, other], [self.fresh()], axis=1), width + more)

    def outer(self, x: str, width: int) -> None:
        """``x x^T`` of each sample, summed over rows: both operands have the batch."""
        column, row, square = (f"{self.fresh()}{part}" for part in "abc")
        self.stored += [ints(f"{column}.axes", 2), ints(f"{row}.axes", 1)]
        self.add(op("Unsqueeze", [x, f"{column}.axes"], [column]), width)
        self.add(op("Unsqueeze", [x, f"{row}.axes"], [row]), width)
        self.add(op("MatMul", [column, row], [square]), width)
        self.add(op("ReduceSum", [square, f"{row}.axes"], [self.fresh()], keepdims=0), width)
        del self.values[-4:-1]  # of these, only the sum has two axes

    def reshaped(self, x: str, width: int) -> None:
        """A Reshape whose target is computed from the shape, as exporters write it."""
        sizes, target = f"{self.fresh()}s", f"{self.fresh()}t"
        self.stored.append(ints(f"{sizes}.rest", width, 1))
        self.add(op("Shape", [x], [sizes], start=0, end=1), 0)
        self.add(op("Concat", [sizes, f"{sizes}.rest"], [target], axis=0), 0)
        del self.values[-2:]
        split = self.fresh()
        self.add(op("Reshape", [x, target], [split]), width)
        self.values.pop()
        self.add(op("Flatten", [split], [self.fresh()]), width)

    def looped(self, x: str, width: int) -> None:
        """A square product, three times over."""
        weight, prefix = self.weight(width, width), self.fresh()
        body = graph(
            [
                op("MatMul", [f"{prefix}.in", weight], [f"{prefix}.out"], f"{prefix}.product"),
                op("Identity", [f"{prefix}.on"], [f"{prefix}.more"], f"{prefix}.pass"),
            ],
            [tensor(f"{prefix}.i", [], TensorProto.INT64), tensor(f"{prefix}.on", [], TensorProto.BOOL),
             tensor(f"{prefix}.in", None)],
            [f"{prefix}.more", f"{prefix}.out"],
        )  # fmt: skip
        self.stored += [scalar(f"{prefix}.trips", 3), scalar(f"{prefix}.go", True)]
        self.add(op("Loop", [f"{prefix}.trips", f"{prefix}.go", x], [prefix], body=body), width)


STEPS = ("matmul", "gemm", "relu", "softmax", "add_bias", "concat", "outer", "reshaped", "looped")


def _network(seed: int, steps: int) -> ModelProto:
    grower = _Grower(Random(seed), values=[("x", 4)])
    for _ in range(steps):
        grower.step()
    ends = dict.fromkeys(name for name, _ in grower.values[1:])
    return model(grower.nodes, [tensor("x", ["batch", 4])], list(ends), grower.stored)


networks = st.builds(_network, st.integers(0, 2**32), st.integers(1, 12))
few = settings(max_examples=60, derandomize=True)


@few
@given(networks, st.integers(1, 64))
def test_contractions_are_linear_in_the_batch(network: ModelProto, batch: int) -> None:
    single = count(network, batch=1)
    many = count(network, batch=batch)
    assert many.model.batch == batch
    assert many.flops == batch * single.flops
    assert (many.totals.params, many.totals.param_bytes) == (single.totals.params, single.totals.param_bytes)


@few
@given(networks)
def test_a_size_by_name_and_the_batch_say_the_same(network: ModelProto) -> None:
    assert count(network, batch=7).totals == count(network, dims={"batch": 7}).totals
    assert count(network, batch=7).totals == count(network, input_shapes={"x": (7, 4)}).totals


@few
@given(networks, st.integers(0, 2**32))
def test_names_do_not_matter(network: ModelProto, seed: int) -> None:
    renamed = ModelProto.FromString(network.SerializeToString())
    _rename(renamed.graph, {}, Random(seed))
    before, after = count(network, batch=3), count(renamed, batch=3)
    assert after.totals == before.totals
    assert stable_ids(after.model.nodes) == stable_ids(before.model.nodes)


def _rename(inner: GraphProto, names: dict[str, str], choose: Random) -> None:
    """New names for every value and operator; ``names`` holds those of the graphs around."""

    def new(name: str) -> str:
        return names.setdefault(name, f"{choose.getrandbits(48):x}") if name else ""

    for held in (*inner.input, *inner.initializer, *inner.output):
        held.name = new(held.name)
    for node in inner.node:
        node.name = f"{choose.getrandbits(48):x}"
        node.input[:] = [new(name) for name in node.input]
        node.output[:] = [new(name) for name in node.output]
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _rename(attribute.g, names, choose)


@few
@given(networks, st.integers(0, 2**32))
def test_the_order_of_the_file_does_not_matter(network: ModelProto, seed: int) -> None:
    shuffled = ModelProto.FromString(network.SerializeToString())
    nodes = list(shuffled.graph.node)
    Random(seed).shuffle(nodes)
    del shuffled.graph.node[:]
    shuffled.graph.node.extend(nodes)
    before, after = count(network, batch=3), count(shuffled, batch=3)
    assert after.totals == before.totals
    assert set(after.weights) == set(before.weights)
    _is_in_execution_order(after)


def _is_in_execution_order(found: Counted) -> None:
    made: set[str] = set()
    produced = {name for node in found.model.nodes for name in node.output_names}
    for node in found.model.nodes:
        assert all(name in made or name not in produced for name in node.input_names)
        made.update(node.output_names)


@few
@given(networks)
def test_loading_twice_gives_the_same(network: ModelProto) -> None:
    first, second = count(network, batch=2), count(network, batch=2)
    assert first.model == second.model
