"""Damaged and mistaken files end in one line that names the file and what is wrong, never in a traceback."""

from __future__ import annotations

import random
import zipfile

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from graphcost.errors import GraphcostError, ModelFileError
from onnx_frontend.onnx_models import find, floats, graph, ints, model, node, one, weight

GOOD = model([node("MatMul", ["x", "w"], ["y"], "mm")], {"x": [4, 8]}, ["y"], {"w": [8, 3]})
BYTES = GOOD.SerializeToString()


def zipped(path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model.onnx", BYTES)


# content of m.onnx, or how it is made: what the message says
FILES = {
    "empty": (b"", "the file is empty; was the download or export interrupted?"),
    "truncated": (BYTES[: len(BYTES) // 2], "not a readable ONNX file; truncated, or not ONNX"),
    "lfs": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
        "a Git LFS pointer, .*git lfs pull",
    ),
    "png": (b"\x89PNG\r\n\x1a\n" + bytes(50), "this is a PNG image; give an ONNX file"),
    "zip": (zipped, "this is a zip archive; unpack it"),
    "gzip": (b"\x1f\x8b\x08" + bytes(50), "this is a gzip archive; unpack it first"),
    "pickle": (b"\x80\x02}q\x00.", "this is a Python pickle; export the model to ONNX; pickles are never opened"),
    "html": (b"<!DOCTYPE html><html></html>", "this is an HTML page; the download probably failed"),
    "ort": (b"\x20\x00\x00\x00ORTM" + bytes(50), "this is an ONNX Runtime flatbuffer"),
    "text": (b"hello, world\n" * 9, "not a readable ONNX file"),
    "random": (random.Random(1).randbytes(4000), "not a readable ONNX file"),
    "random-large": (random.Random(2).randbytes(3 << 20), "not a readable ONNX file"),
    "zeros": (bytes(4000), "not a readable ONNX file"),
    "another-message": (weight("w", [8, 3]).SerializeToString(), "m.onnx: (not a readable|holds no) ONNX"),
    "no-outputs": (
        model([node("Relu", ["x"], ["y"])], {"x": [4]}, []).SerializeToString(),
        "the graph has no outputs",
    ),
    "folder": (lambda path: path.mkdir(), "a folder, not an ONNX file"),
    "missing": (lambda path: None, "no such file"),
}


@pytest.mark.parametrize(("content", "message"), FILES.values(), ids=FILES)
def test_files_that_are_no_model(tmp_path, content, message) -> None:
    path = tmp_path / "m.onnx"
    if callable(content):
        content(path)
    else:
        path.write_bytes(content)
    with pytest.raises(ModelFileError, match=message) as caught:
        find(str(path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_large_file_that_ends_too_early(tmp_path) -> None:
    path = tmp_path / "m.onnx"
    large = model([node("MatMul", ["x", "w"], ["y"])], {"x": [4, 512]}, ["y"], [floats("w", [[0.0] * 1024] * 512)])
    path.write_bytes(large.SerializeToString()[:-100])
    with pytest.raises(ModelFileError, match=r"runs past its end.*; truncated, or not ONNX"):
        find(str(path))


def raw(tensor: TensorProto, size: int) -> TensorProto:
    tensor.raw_data = bytes(size)
    return tensor


def dense(**changes):
    return model(**{"nodes": [node("MatMul", ["x", "w"], ["y"], "mm")], "inputs": {"x": [4, 8]}, "outputs": ["y"],
                    "stored": {"w": [8, 3]}} | changes)  # fmt: skip


def of_type(number: int) -> TensorProto:
    tensor = weight("w", [8, 3])
    tensor.data_type = number
    return tensor


PASS = graph([], {}, ["x"])
LOST = graph([node("Identity", ["c"], ["c2"])], {"i": ("INT64", []), "c": ("BOOL", []), "h": [4, 8]}, ["c2"])

# models that contradict themselves: what the message says
MODELS = {
    "cycle": (
        dense(nodes=[node("Add", ["x", "b"], ["a"], "one"), node("Add", ["a", "x"], ["b"], "two")], outputs=["b"]),
        "operators form a cycle through 'one'; a graph must be acyclic",
    ),
    "self-cycle": (dense(nodes=[node("Add", ["x", "y"], ["y"], "me")]), "operators form a cycle through 'me'"),
    "produced-twice": (
        dense(nodes=[node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["y"])]),
        "value 'y' is produced twice; names must be unique",
    ),
    "undefined-input": (dense(stored={}), "mm reads 'w', which no operator, input or initializer provides"),
    "undefined-output": (dense(outputs=["z"]), "output of g reads 'z', which no operator"),
    "negative-size": (dense(stored=[weight("w", [8, -3])]), r"tensor 'w' has a negative size in \[8, -3\]"),
    "short-tensor": (
        dense(stored=[raw(weight("w", [8, 3]), 40)]),
        r"tensor 'w': its data does not fill shape \[8, 3\] of float32 \(40 bytes of 96\)",
    ),
    "long-tensor": (dense(stored=[raw(weight("w", [8, 3]), 400)]), "tensor 'w': its data does not fill"),
    "short-list": (
        dense(stored=[TensorProto(name="w", dims=[8, 3], data_type=1, float_data=[1.0, 2.0])]),
        r"tensor 'w': its data does not fill shape \[8, 3\] of float32",
    ),
    "no-such-type": (dense(stored=[of_type(99)]), "tensor 'w' has element type 99, which ONNX does not define"),
    "no-type": (dense(stored=[of_type(0)]), "tensor 'w' has element type 0"),
    "empty-constant": (dense(nodes=[node("Constant", [], ["w"]), node("MatMul", ["x", "w"], ["y"])], stored={}),
                       "Constant 'w' has no value attribute|Constant w has no value"),
    "if-without-branches": (
        dense(nodes=[node("If", ["x"], ["y"], "if")]),
        r"if \(If\): needs then_branch and else_branch",
    ),
    "if-without-condition": (
        dense(nodes=[node("If", [], ["y"], "if", then_branch=PASS, else_branch=PASS)]),
        r"if \(If\): an input that the operator needs is missing",
    ),
    "sequence-without-position": (
        dense(nodes=[node("SequenceAt", ["x"], ["y"], "at")]),
        r"at \(SequenceAt\): an input that the operator needs is missing",
    ),
    "loop-with-too-few-results": (
        dense(nodes=[node("Loop", ["n", "", "x"], ["y"], "loop", body=LOST)], stored=[ints("n", 2)]),
        r"loop \(Loop\): its body gives 1 results, not 2",
    ),
    "loop-without-body": (dense(nodes=[node("Loop", ["x"], ["y"], "loop")]), r"loop \(Loop\): has no body"),
    "scan-without-body": (dense(nodes=[node("Scan", ["x"], ["y"], "scan")]), r"scan \(Scan\): has no body"),
    "too-few-inputs": (dense(nodes=[node("MatMul", ["x"], ["y"], "mm")]), r"mm \(MatMul\): no valid operator of"),
    "too-many-inputs": (dense(nodes=[node("Relu", ["x", "w"], ["y"], "r")]), r"r \(Relu\): no valid operator of"),
    "wrong-attribute-type": (
        one("Conv", {"x": [1, 3, 8, 8]}, {"w": [4, 3, 3, 3]}, strides=1.5),
        r"op \(Conv\): no valid operator of opset 21",
    ),
    "missing-attribute": (one("MaxPool", {"x": [1, 3, 8, 8]}), r"op \(MaxPool\): no valid operator of opset 21"),
    "zero-stride": (
        one("Conv", {"x": [1, 3, 8, 8]}, {"w": [4, 3, 3, 3]}, strides=[0, 0]),
        r"op \(Conv\): ",
    ),
    "contradiction": (dense(inputs={"x": [4, 7]}), r"mm \(MatMul\): the input shapes .* contradict the operator"),
    "reshape": (
        dense(nodes=[node("Reshape", ["x", "t"], ["y"], "r")], stored=[ints("t", [5, 5])]),
        r"r \(Reshape\): 32 elements of \[4, 8\] do not fill \[5, 5\]",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("source", "message"), MODELS.values(), ids=MODELS)
def test_models_that_contradict_themselves(tmp_path, source, message) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(source.SerializeToString())
    with pytest.raises(GraphcostError, match=message) as caught:
        find(str(path))
    assert caught.value.exit_code == 3
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_sizes_beyond_any_memory_are_counted_not_allocated() -> None:
    """2^60 elements: stored, made, tiled, spread, enumerated, split."""
    huge = 2**60
    assert (
        find(model([node("MatMul", ["x", "w"], ["y"])], {"x": [1, huge]}, ["y"], {"w": [huge, 2]})).params == 2 * huge
    )
    fill = [node("ConstantOfShape", ["n"], ["c"]), node("Mul", ["x", "c"], ["y"])]
    assert find(model(fill, {"x": [1]}, ["y"], [ints("n", [huge])])).shape("y") == (huge,)
    tile = [node("Tile", ["x", "n"], ["y"])]
    assert find(model(tile, {"x": [2]}, ["y"], [ints("n", [huge // 2])])).shape("y") == (huge,)
    spread = [node("Expand", ["x", "n"], ["y"])]
    assert find(model(spread, {"x": [1]}, ["y"], [ints("n", [huge])])).shape("y") == (huge,)
    count = [node("Range", ["a", "n", "b"], ["r"]), node("Cast", ["r"], ["f"], to=1), node("Mul", ["x", "f"], ["y"])]
    stored = [ints("a", 0), ints("n", huge), ints("b", 1)]
    assert find(model(count, {"x": [1]}, ["y"], stored)).shape("y") == (huge,)
    split = [node("SplitToSequence", ["x"], ["s"], axis=0)]
    assert find(
        model(
            [*split[:1], node("SequenceAt", ["s", "n"], ["p"]), node("Neg", ["p"], ["y"])],
            {"x": [huge]},
            ["y"],
            [ints("n", 5)],
        )
    ).unknown == {"Neg": 1}
    sizes = [node("Size", ["x"], ["n"]), node("Cast", ["n"], ["f"], to=1), node("Mul", ["f", "z"], ["y"])]
    assert find(model(sizes, {"x": [huge, huge], "z": [1]}, ["y"])).shape("y") == (1,)


def test_deeply_nested_subgraphs() -> None:
    """As deep as protobuf itself reads: 100 messages, three for every level."""
    inner = graph([node("Relu", ["x"], ["out"])], {}, ["out"])
    for _ in range(30):
        inner = graph([node("If", ["c"], ["out"], then_branch=inner, else_branch=graph([], {}, ["x"]))], {}, ["out"])
    source = model(list(inner.node), {"x": [4], "c": ("BOOL", [])}, ["out"])
    assert [op.op_type for op in find(source, input_values={"c": (1,)}).ops.values()] == ["Relu"]


def test_functions_that_multiply_are_refused(monkeypatch) -> None:
    """Each of 30 functions calls the next twice: 2^30 operators."""
    from graphcost.frontends.onnx import interpreter

    monkeypatch.setattr(interpreter, "EXPANDED_OPS", 2000)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]
    functions = [
        helper.make_function(
            "local", f"F{at}", ["x"], ["y"],
            [node(f"F{at + 1}", [a], [b], domain="local") for a, b in ("xh", "hy")], imports,
        )
        for at in range(30)
    ]  # fmt: skip
    functions.append(helper.make_function("local", "F30", ["x"], ["y"], [node("Relu", ["x"], ["y"])], imports))
    top = node("F0", ["x"], ["y"], domain="local")
    with pytest.raises(ModelFileError, match="expands to more than 2004 operators"):
        find(model([top], {"x": [4]}, ["y"], functions=functions, domains=["local"]))


SEEDS = [
    BYTES,
    one("Conv", {"x": ["batch", 3, 8, 8]}, {"w": [4, 3, 3, 3], "b": [4]}, pads=[1, 1, 1, 1]).SerializeToString(),
    one("LSTM", {"x": [7, 2, 3]}, {"w": [1, 20, 3], "r": [1, 20, 5]}, hidden_size=5).SerializeToString(),
    model(
        [node("Shape", ["x"], ["s"]), node("Reshape", ["x", "s"], ["r"]), node("Slice", ["r", "a", "b"], ["y"])],
        {"x": [4, 8]}, ["y"], [ints("a", [0]), ints("b", [2])],
    ).SerializeToString(),
    model(
        [node("Loop", ["n", "", "x"], ["y"], body=graph(
            [node("Identity", ["c"], ["c2"]), node("MatMul", ["h", "w"], ["h2"])],
            {"i": ("INT64", []), "c": ("BOOL", []), "h": [4, 8]}, ["c2", "h2"]))],
        {"x": [4, 8]}, ["y"], [ints("n", 3), weight("w", [8, 8])],
    ).SerializeToString(),
]  # fmt: skip


@settings(max_examples=300, derandomize=True)
@given(st.sampled_from(SEEDS), st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=4))
def test_flipped_bytes_never_escape(content, changes) -> None:
    """Whatever a damaged file decodes to, it is counted or refused."""
    damaged = bytearray(content)
    for at, byte in changes:
        damaged[at % len(damaged)] = byte
    try:
        source = onnx.ModelProto.FromString(bytes(damaged))
    except Exception:
        return
    try:
        find(source)
    except GraphcostError as error:
        assert str(error)
