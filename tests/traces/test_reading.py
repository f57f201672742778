"""Traces written by hand: devices and NCCL, which no CPU records, and files that do not hold together."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphcost.errors import DataFileError
from graphcost.traces import is_trace, read_trace, trace_features
from graphcost.traces.communication import Collective

FLOAT = "float"


def call(name: str, start: float = 1, length: float = 1, category: str = "cpu_op", **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": start, "dur": length, "args": args}


def tensors(*shapes: list[int], kinds: tuple[str, ...] = (), texts: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "Input Dims": list(shapes),
        "Input type": list(kinds) or [FLOAT] * len(shapes),
        "Concrete Inputs": list(texts) or [""] * len(shapes),
    }


def step(number: int, start: float, length: float) -> dict[str, Any]:
    return call(f"ProfilerStep#{number}", start, length, "user_annotation")


def written(folder: Path, *events: Any, **head: Any) -> str:
    path = folder / "t.json"
    path.write_text(json.dumps({"schemaVersion": 1, **head, "traceEvents": list(events)}))
    return str(path)


MM = call("aten::mm", 2, 1, **tensors([4, 8], [8, 16]))


def test_steps_are_averaged(tmp_path: Path) -> None:
    """Two steps, three products inside, one before and one after them."""
    products = [{**MM, "ts": start} for start in (1, 11, 14, 25, 41)]
    found = trace_features(written(tmp_path, step(7, 10, 10), step(8, 20, 10), *products))
    assert found.steps == 2
    assert found.features.flops == 3 * 2 * 4 * 8 * 16 / 2


def test_copies_to_the_device(tmp_path: Path) -> None:
    copies = [
        call("Memcpy HtoD (Pinned -> Device)", 3, 1, "gpu_memcpy", bytes=3000),
        call("Memcpy HtoD (Pageable -> Device)", 4, 1, "gpu_memcpy", bytes=1000),
        call("Memcpy DtoH (Device -> Pageable)", 5, 1, "gpu_memcpy", bytes=64),
    ]
    found = trace_features(written(tmp_path, step(0, 0, 10), step(1, 10, 10), MM, *copies))
    assert found.features.input_bytes == 4000 / 2
    del copies[0]["args"]["bytes"]
    unsized = trace_features(written(tmp_path, step(0, 0, 10), MM, *copies))
    assert unsized.features.input_bytes is None
    assert any("1 of 2 have no size" in note for note in unsized.notes)


def comms(name: str, into: int, out: int, dtype: str = "Float", size: int = 8) -> dict[str, Any]:
    args = {"Collective name": name, "In msg nelems": into, "Out msg nelems": out, "dtype": dtype, "Group size": size}
    return call("record_param_comms", 4, 1, **args)


@pytest.mark.parametrize(
    ("event", "traffic_bytes"),
    [
        (comms("allreduce", 1000, 1000), 4 * 7 / 8 * 4000),
        (comms("allreduce", 1000, 1000, "BFloat16"), 4 * 7 / 8 * 2000),
        (comms("_allgather_base", 1000, 8000), 2 * 7 / 8 * 32000),
        (comms("_reduce_scatter_base", 8000, 1000), 2 * 7 / 8 * 32000),
        (comms("all_to_allv", 1000, 1000), 2 * 7 / 8 * 4000),
        (comms("allreduce", 1000, 1000, size=2), 4 * 1 / 2 * 4000),  # a group of its own
        (comms("send", 1000, 0), 4000),
        (comms("barrier", 0, 0), None),
    ],
)
def test_collectives_of_nccl(tmp_path: Path, event: dict[str, Any], traffic_bytes: float | None) -> None:
    """Bytes sent and received by the study's conventions; the backend's own marks of the same call count once."""
    mark = call("nccl:all_reduce", 4, 1, "user_annotation", **tensors([5]))
    on_device = {**mark, "cat": "gpu_user_annotation"}
    marks = (mark, on_device) if traffic_bytes else ()
    source = written(tmp_path, step(0, 0, 10), MM, event, *marks, distributedInfo={"world_size": 8, "rank": 3})
    found = trace_features(source)
    assert (found.features.arch, found.features.cnodes) == ("allreduce", 8)
    assert found.features.dense_weight_bytes == traffic_bytes
    assert found.features.sparse_weight_bytes == (None if traffic_bytes is None else 0)


def test_sizes_that_were_not_recorded(tmp_path: Path) -> None:
    bare = call("c10d::allreduce_", 4, 1, **{"Input Dims": [[[100]]], "Input type": ["TensorList"]})
    found = trace_features(written(tmp_path, step(0, 0, 10), MM, bare, distributedInfo={"world_size": 2}))
    assert found.features.dense_weight_bytes is None
    assert "weight traffic is not known: sizes of 1 all-reduce were not recorded" in found.notes


def test_the_caller_s_word_counts(tmp_path: Path) -> None:
    source = written(
        tmp_path, step(0, 0, 10), MM, comms("allreduce", 1000, 1000, size=0), distributedInfo={"world_size": 2}
    )
    found = trace_features(source, arch="ps", gpus=4)
    assert (found.features.arch, found.features.cnodes) == ("ps", 4)
    assert found.features.dense_weight_bytes == 4 * 3 / 4 * 4000
    assert "4 GPUs were given, the trace was recorded with 2 ranks; 4 count" in found.notes


def test_inner_operators_are_the_outer_one_s_work(tmp_path: Path) -> None:
    """A convolution that runs a product inside counts once; the same product beside it counts too."""
    dims = tensors([2, 3, 8, 8], [4, 3, 3, 3], [4], [], [], [], [], [], [], kinds=(FLOAT,) * 3 + ("ScalarList",) * 6,
                   texts=("", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"))  # fmt: skip
    outer, inner = call("aten::convolution", 1, 5, **dims), {**MM, "ts": 2}
    convolution = 2 * 2 * 8 * 8 * 4 * 3 * 9
    assert trace_features(written(tmp_path, outer, inner)).features.flops == convolution
    beside = trace_features(written(tmp_path, outer, {**MM, "ts": 7}))
    assert beside.features.flops == convolution + 2 * 4 * 8 * 16


@pytest.mark.parametrize(
    ("event", "moved_bytes"),
    [
        (call("aten::add", **tensors([4, 8], [8])), (32 + 8 + 32) * 4),
        (call("aten::relu", **tensors([10], kinds=("c10::Half",))), 2 * 10 * 2),
        (call("aten::sum", **tensors([4, 8])), 32 * 4),
        (call("aten::zero_", **tensors([4, 8])), 32 * 4),
        (call("aten::copy_", **tensors([10], [10], kinds=("c10::Half", FLOAT))), 10 * (2 + 4)),
        (call("aten::embedding", **tensors([100, 16], [5], kinds=(FLOAT, "long int"))), 2 * 5 * 16 * 4 + 5 * 8),
        (call("aten::cat", **{"Input Dims": [[[4], [6]], []], "Input type": ["TensorList", "Scalar"]}), 2 * 10 * 4),
        (call("aten::expand", **tensors([4, 1])), 0),
    ],
)
def test_bytes_by_hand(tmp_path: Path, event: dict[str, Any], moved_bytes: int) -> None:
    found = trace_features(written(tmp_path, event))
    assert found.features.mem_bytes == moved_bytes
    assert not any("lower bound" in note for note in found.notes)


def test_broadcast_values_are_read_once(tmp_path: Path) -> None:
    event = call("aten::mul", **tensors([4, 8], [4, 8]), **{"Input Strides": [[8, 1], [0, 0]]})
    assert trace_features(written(tmp_path, event)).features.mem_bytes == (32 + 1 + 32) * 4


def test_operators_without_a_rule_are_named(tmp_path: Path) -> None:
    events = [call("mine::scan", start, **tensors([4, 8])) for start in (1, 3)]
    odd = call("aten::mm", 5, **tensors([4, 8]))  # another signature
    found = trace_features(written(tmp_path, *events, odd))
    assert "memory traffic is a lower bound: no rule for mine::scan (2), aten::mm (1)" in found.notes


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"traceEvents": [', "not a JSON file, or cut off"),
        (gzip.compress(b'{"traceEvents": []}')[:-9], "damaged or cut off as gzip"),
        (b'{"nodes": []}', "has no 'traceEvents'"),
        (b'{"traceEvents": [{"ph": "X", "name": "a", "ts": "soon"}, 3]}', "holds no operators"),
    ],
    ids=["json", "gzip", "graph", "events"],
)
def test_files_that_do_not_hold_together(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(content)
    with pytest.raises(DataFileError, match=message):
        read_trace(str(path))


def test_what_is_a_trace(tmp_path: Path) -> None:
    graph = tmp_path / "graph.json"
    graph.write_text('{"schema_version": 1, "nodes": []}')
    assert not is_trace(str(graph)) and not is_trace(str(tmp_path / "none.json")) and not is_trace("zoo:mlp")
    assert is_trace(written(tmp_path, MM))
    with pytest.raises(DataFileError, match="cannot be read"):
        read_trace(str(tmp_path / "none.json"))


@given(size_bytes=st.floats(0, 1e12), ranks=st.integers(2, 1024))
def test_an_all_reduce_is_a_scatter_and_a_gather(size_bytes: float, ranks: int) -> None:
    both = sum(Collective(kind, size_bytes, None).traffic_bytes(ranks) for kind in ("reduce-scatter", "all-gather"))
    assert Collective("all-reduce", size_bytes, None).traffic_bytes(ranks) == pytest.approx(both)
    assert Collective("all-reduce", None, None).traffic_bytes(ranks) == 0
