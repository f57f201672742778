"""What changed between two models: operators matched by structure, totals, and one line for nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from project.helpers_project import CLEAR, Folder

from graphcost.analysis import analyze
from graphcost.diffing import diff_models, match_operators, side_of
from graphcost.models_zoo import build
from graphcost.result import OpInfo


def op(op_type: str, flops: int = 8, *, digest: str = "", module: str = "", params: int = 0) -> OpInfo:
    """An operator; its id is its type and costs unless ``digest`` says otherwise."""
    name = digest or f"{flops % 16**8:08x}"
    return OpInfo(
        id=f"{op_type}-{name}", name=f"n{flops}", op_type=op_type, op_class="elementwise", module=module, origin="",
        repeat=1, counted=True, matmul_flops=0, elementwise_flops=flops, read_bytes=4 * flops, write_bytes=4 * flops,
        backward_flops=0, backward_bytes=0, params=params, forward_s=None, backward_s=None, time_s=None,
        bound="memory", efficiency=None, efficiency_source="",
    )  # fmt: skip


def told(base: list[OpInfo], head: list[OpInfo]) -> tuple[list[tuple[str, str, int, Any, Any]], int, int]:
    found = match_operators(base, head)
    changes = [(c.what, c.op_type, c.count, c.base_flops, c.head_flops) for c in found.changes]
    return changes, found.unchanged, found.rewired


A, B = op("Conv", 100), op("Relu", 10)


@pytest.mark.parametrize(
    ("base", "head", "expected"),
    [
        ([A, B], [A, B], ([], 2, 0)),
        ([A, B], [B, A], ([], 2, 0)),  # another order of execution, the same structure
        ([A], [A, B], ([("added", "Relu", 1, None, 10)], 1, 0)),
        ([A, B], [A], ([("removed", "Relu", 1, 10, None)], 1, 0)),
        ([A, B], [A, B, B, B], ([("added", "Relu", 2, None, 10)], 2, 0)),
        ([A], [op("Conv", 200)], ([("changed", "Conv", 1, 100, 200)], 0, 0)),
        # the same costs beside other neighbours
        ([A], [op("Conv", 100, digest="0000abcd")], ([], 1, 1)),
        # the same id with a larger image
        ([op("Conv", 100, digest="0000abcd")], [op("Conv", 400, digest="0000abcd")],
         ([("changed", "Conv", 1, 100, 400)], 0, 0)),
        # of three the one most unlike is the new one
        ([op("Gemm", 100), op("Gemm", 110)], [op("Gemm", 101), op("Gemm", 9000), op("Gemm", 111)],
         ([("added", "Gemm", 1, None, 9000),
           ("changed", "Gemm", 1, 100, 101), ("changed", "Gemm", 1, 110, 111)], 0, 0)),
        ([], [], ([], 0, 0)),
    ],
)  # fmt: skip
def test_operators_are_matched(base: list[OpInfo], head: list[OpInfo], expected: Any) -> None:
    assert told(base, head) == expected


operators = st.lists(
    st.builds(op, st.sampled_from(["Conv", "Relu", "Add"]), st.integers(1, 6), module=st.sampled_from(["", "a"])),
    max_size=12,
)


@given(base=operators, head=operators)
def test_every_operator_is_in_one_answer(base: list[OpInfo], head: list[OpInfo]) -> None:
    found, back = match_operators(base, head), match_operators(head, base)
    kept = found.unchanged + found.count("changed")
    assert kept + found.count("removed") == len(base) and kept + found.count("added") == len(head)
    assert (found.count("added"), found.unchanged) == (back.count("removed"), back.unchanged)
    for what in ("Conv", "Relu", "Add"):  # nothing is both removed and added where a pair would say "changed"
        both = {c.what for c in found.changes if c.op_type == what}
        assert not {"added", "removed"} <= both


@given(ops=operators, order=st.randoms())
def test_names_and_order_are_no_change(ops: list[OpInfo], order: Any) -> None:
    renamed = [replace(one, name=f"export_{index}") for index, one in enumerate(ops)]
    order.shuffle(renamed)
    found = match_operators(ops, renamed)
    assert (found.changes, found.unchanged, found.rewired) == ((), len(ops), 0)


def test_a_deeper_network_is_its_added_layers() -> None:
    (diff,) = diff_models([side_of(analyze("zoo:resnet50", batch=2))], [side_of(analyze("zoo:resnet101", batch=2))])
    assert diff.operators is not None
    # resnet101 has 17 more blocks of 3 convolutions in its third stage
    assert diff.counts["Conv"] == (53, 53 + 17 * 3)
    assert {(c.op_type, c.what) for c in diff.operators.changes} == {
        (kind, "added") for kind in ("Conv", "BatchNormalization", "Relu", "Add")
    }
    assert diff.operators.unchanged == len(build("resnet50", batch=2).nodes)


def test_diff_of_models_graphs_and_results(folder: Folder) -> None:
    folder.copy(CLEAR, "one.onnx")
    assert folder.run("diff", "one.onnx", "one.onnx")[:2] == (0, "nothing changed: one\n")
    folder.run("graph", "one.onnx", "--output", "graph.json")
    code, out, _ = folder.run("diff", "one.onnx", "graph.json")
    assert (code, out) == (0, "nothing changed: one\n")
    folder.run("analyze", "zoo:resnet18", "--batch", "2", "--per-op", "--output", "a.json", "--quiet")
    folder.run("analyze", "zoo:resnet18", "--batch", "4", "--per-op", "--output", "b.json", "--quiet")
    code, out, _ = folder.run("diff", "a.json", "b.json")
    assert code == 0 and "settings: batch_per_gpu 2 -> 4" in out and "+100.0 %" in out
    code, out, _ = folder.run("diff", "a.json", "b.json", "--format", "json")
    (model,) = json.loads(out)["models"]
    assert {d["metric"]: d["change"] for d in model["deltas"]}["flops"] == 1.0
    assert model["counts"] == {} and model["operators"]["unchanged"] < 10
    code, out, _ = folder.run("diff", "a.json", "zoo:resnet34", "--batch", "2", "--format", "markdown", "--quiet")
    assert code == 0 and out.startswith("### resnet34: changed") and "added" in out


def test_results_without_operators_say_so(folder: Folder) -> None:
    folder.run("analyze", "zoo:mlp", "--batch", "2", "--output", "a.json", "--quiet")
    folder.run("count", "zoo:mlp", "--batch", "4", "--format", "json", "--output", "b.json", "--quiet")
    code, out, _ = folder.run("diff", "a.json", "b.json")
    assert code == 0 and "forward FLOP" in out and "write them with --per-op" in out


def test_several_models_by_name(folder: Folder) -> None:
    folder.run("analyze", "zoo:mlp", "zoo:resnet18", "--batch", "2", "--output", "a.json", "--quiet")
    folder.run("analyze", "zoo:mlp", "zoo:resnet34", "--batch", "2", "--output", "b.json", "--quiet")
    code, out, _ = folder.run("diff", "a.json", "b.json", "--format", "json")
    assert code == 0
    assert [(m["name"], m["what"]) for m in json.loads(out)["models"]] == [
        ("mlp", "unchanged"), ("resnet34", "added"), ("resnet18", "removed"),
    ]  # fmt: skip
    folder.write('batch = 2\n[[models]]\nsource = "zoo:mlp"\n[[models]]\nsource = "zoo:resnet18"\n')
    folder.check("--output", "c.json")
    code, out, _ = folder.run("diff", "a.json", "c.json")
    assert (code, out) == (0, "nothing changed: mlp, resnet18\n")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "x.json: not JSON"),
        ("{}", "neither a result nor a saved graph"),
        ('{"schema_version": 7}', "schema version 7, this graphcost reads 1"),
        ('{"schema_version": 1, "command": "analyze"}', "a damaged result (KeyError: 'model')"),
        ('{"schema_version": 1, "model": {"name": "m"}, "ops": [{"id": "Conv"}]}', "a damaged result (KeyError"),
    ],
)
def test_what_is_no_result_is_one_line(folder: Folder, text: str, says: str) -> None:
    folder.write(text, "x.json")
    code, out, err = folder.run("diff", "x.json", "zoo:mlp")
    assert (code, out) == (3, "") and says in err and len(err.splitlines()) == 1
    assert folder.run("diff", "gone.json", "zoo:mlp")[0] == 3
