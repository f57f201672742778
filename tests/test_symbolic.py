"""Expressions in open sizes equal the bound result wherever they claim to hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from graphcost.cli.main import main
from graphcost.errors import UsageError
from graphcost.frontends.options import LoadOptions
from graphcost.graph import build_graph, operators, totals
from graphcost.sources import load_model, open_sizes
from graphcost.symbolic import SymbolicCost, symbolic_cost, symbolic_of


@cache
def found(source: str) -> SymbolicCost:
    return symbolic_of(source, LoadOptions())


def evaluated(text: str, sizes: Mapping[str, int]) -> int:
    return int(sympy.sympify(text).subs({sympy.Symbol(name): value for name, value in sizes.items()}))


@settings(max_examples=12)
@given(batch=st.integers(1, 40), seq=st.integers(1, 300))
@pytest.mark.parametrize("source", ["zoo:bert-base", "zoo:gpt2"])
def test_transformers(source: str, batch: int, seq: int) -> None:
    sizes = {"batch": batch, "seq": seq}
    graph = build_graph(load_model(source, LoadOptions(dims=sizes)))
    symbolic = found(source)
    assert symbolic.named == {} and symbolic.conditions == ()
    cost = totals(graph).cost
    for name in ("matmul_flops", "elementwise_flops", "read_bytes", "write_bytes"):
        assert evaluated(symbolic.totals[name], sizes) == getattr(cost, name)


@settings(max_examples=6)
@given(batch=st.integers(1, 9), tiles=st.integers(1, 12))
def test_a_strided_network_holds_on_multiples_of_its_stride(batch: int, tiles: int) -> None:
    symbolic = found("zoo:resnet18")
    assert symbolic.conditions == ("image % 32 == 0",)
    sizes = {"batch": batch, "image": 32 * tiles}
    graph = build_graph(load_model("zoo:resnet18", LoadOptions(dims=sizes)))
    assert evaluated(symbolic.totals["matmul_flops"], sizes) == totals(graph).cost.matmul_flops
    for node_id, _, cost in operators(graph):
        assert cost is not None
        assert evaluated(symbolic.ops[node_id]["matmul_flops"], sizes) == cost.matmul_flops


def test_bert_by_hand() -> None:
    """Twelve layers of 12 d^2 a token and two products of d seq^2, and the pooler: MACs times two."""
    b, s = sympy.symbols("batch seq")
    by_hand = 2 * b * (12 * (12 * 768**2 * s + 2 * 768 * s**2) + 768**2)
    assert sympy.expand(sympy.sympify(found("zoo:bert-base").totals["matmul_flops"]) - by_hand) == 0


def matmul_file(tmp_path: Path, dims: list[object], repeats: list[int] | None = None) -> Path:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"], name="mm")]
    if repeats is not None:
        nodes = [helper.make_node("Resize", ["x", "", "s"], ["r"], name="resize"), *nodes]
        nodes[1].input[0] = "r"
    weights = [helper.make_tensor("w", TensorProto.FLOAT, [8, 4], [0.0] * 32)]
    if repeats is not None:
        weights.append(helper.make_tensor("s", TensorProto.FLOAT, [2], [float(r) / 3 for r in repeats]))
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
        [helper.make_tensor_value_info("h", TensorProto.FLOAT, None)], weights,
    )  # fmt: skip
    path = tmp_path / "m.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    return path


def test_nameless_sizes_have_a_name_for_dim(tmp_path: Path) -> None:
    path = matmul_file(tmp_path, [None, None, 8])
    assert open_sizes(path) == ("batch", "x.1")
    symbolic = symbolic_of(str(path), LoadOptions())
    assert symbolic.totals["matmul_flops"] == "64*batch*x.1"  # 2 * 8 * 4 a row
    bound = build_graph(load_model(path, LoadOptions(batch=3, dims={"x.1": 5})))
    assert totals(bound).cost.matmul_flops == 2 * 3 * 5 * 8 * 4


def test_what_is_no_polynomial_is_named(tmp_path: Path) -> None:
    """Rows scaled by 5/3 and rounded down: a staircase. Every third row count is on a line, not every one."""
    path = matmul_file(tmp_path, ["rows", 8], repeats=[5, 3])
    symbolic = symbolic_of(str(path), LoadOptions())
    assert "matmul_flops" in symbolic.named and "matmul_flops" not in symbolic.totals
    assert "no polynomial" in symbolic.named["matmul_flops"]


def test_too_many_open_sizes_are_refused() -> None:
    with pytest.raises(UsageError, match=r"5 sizes are open \(a, b, c, d, e\)"):
        symbolic_cost(lambda sizes: build_graph(load_model("zoo:mlp", LoadOptions())), list("abcde"))


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", "zoo:bert-base", "--dim", "batch=2", "--symbolic", "--quiet"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["symbolic"]["sizes"] == ["seq"]
    assert {"matmul_flops", "read_bytes", "activation_bytes", "not_polynomial"} <= set(data["symbolic"])
    assert all("symbolic" in node for node in data["nodes"])
    assert main(["analyze", "zoo:mlp", "--symbolic", "--format", "json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["symbolic"]["matmul_flops"] == "1337344*batch"
    assert main(["graph", "zoo:mlp", "--symbolic", "--format", "dot"]) == 2
