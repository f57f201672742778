"""Content that is no ONNX model, or half of one: one line that names the file, and no other error."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import ModelProto, TensorProto

from graphcost.errors import ModelFileError, UnreadableError

from .build import BOOL, count, graph, model, op, tensor, zeros

X = tensor("x", [2, 3])


def _linear() -> ModelProto:
    return model([op("MatMul", ["x", "w"], ["y"], "product")], [X], stored=[zeros("w", 3, 4)])


def _written(tmp_path: Path, content: bytes, name: str = "net.onnx") -> Path:
    path = tmp_path / name
    path.write_bytes(content)
    return path


# what is in the file -> words of the message
CONTENTS: dict[str, tuple[bytes, tuple[str, ...]]] = {
    "empty": (b"", ("net.onnx", "empty")),
    "text": (b"hello, this is no model at all\n", ("net.onnx", "not")),
    "zeros": (bytes(1000), ("net.onnx", "not a readable ONNX file")),
    "truncated": (_linear().SerializeToString()[:-20], ("net.onnx", "truncated")),
    "no-graph": (ModelProto(ir_version=8).SerializeToString(), ("net.onnx", "no ONNX graph")),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", ("net.onnx", "LFS", "git lfs pull")),
    "zip": (b"PK\x03\x04 and so on", ("net.onnx", "zip archive")),
    "hdf5": (b"\x89HDF\r\n\x1a\n", ("net.onnx", "HDF5")),
    "pickle": (b"\x80\x02}q\x00.", ("net.onnx", "pickle", "never opened")),
    "html": (b"<!DOCTYPE html><html>", ("net.onnx", "HTML", "download")),
    "png": (b"\x89PNG\r\n", ("net.onnx", "PNG")),
    "ort": (b"\x18\x00\x00\x00ORTM", ("net.onnx", "flatbuffer")),
}


@pytest.mark.parametrize("kind", CONTENTS)
def test_content_that_is_no_model(kind: str, tmp_path: Path) -> None:
    content, words = CONTENTS[kind]
    with pytest.raises(ModelFileError) as caught:
        count(_written(tmp_path, content))
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"absent\.onnx: no such file"):
        count(tmp_path / "absent.onnx")
    (tmp_path / "folder.onnx").mkdir()
    with pytest.raises(ModelFileError, match=r"folder\.onnx: a folder"):
        count(tmp_path / "folder.onnx")


def test_every_truncation_is_refused_or_whole(tmp_path: Path) -> None:
    """A file cut anywhere gives an error, or, cut between fields, a graph that cannot be complete."""
    whole = _linear().SerializeToString()
    full = count(_written(tmp_path, whole)).found
    for length in range(len(whole)):
        path = _written(tmp_path, whole[:length])
        try:
            found = count(path)
        except UnreadableError as error:
            assert "net.onnx" in str(error)
        else:
            assert found.found == full  # only the opset imports, which follow the graph, were cut off


def test_a_large_file_cut_short(tmp_path: Path) -> None:
    """Over a megabyte the wire format is walked, not parsed."""
    big = model([op("MatMul", ["x", "w"], ["y"])], [tensor("x", [1, 600])], stored=[zeros("w", 600, 600)])
    content = big.SerializeToString()
    assert len(content) > 1_000_000
    assert count(_written(tmp_path, content)).found == (2 * 600 * 600, 360_000, 1_440_000)
    for length in (len(content) - 1, len(content) // 2, 1_050_000):
        with pytest.raises(ModelFileError, match=r"net\.onnx: .*truncated"):
            count(_written(tmp_path, content[:length]))


def test_bytes_that_are_no_text_stand_in_no_name(tmp_path: Path) -> None:
    """protobuf hands a damaged string over as bytes: every place of a name is tried."""
    weight = zeros("weight", 3, 4)
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="sidefile")
    product = op("MatMul", ["input", "weight"], ["result"], "product")
    product.metadata_props.add(key="pkg.torch.onnx.stack_trace", value="File stack")
    branch = graph([product], [], ["result"], [weight], "branch")
    made = model(
        [op("If", ["condition"], ["output"], "choice", then_branch=branch, else_branch=branch)],
        [tensor("input", ["batch", 3]), tensor("condition", [], BOOL)],
        ["output"],
    )
    content = made.SerializeToString()
    words = ("weight", "sidefile", "input", "result", "product", "branch", "condition", "output", "choice", "batch",
             "location", "MatMul", "pkg.torch", "File stack", "then_branch")  # fmt: skip
    for word in words:
        damaged = content.replace(word.encode(), b"\xff" + word.encode()[1:])
        assert damaged != content
        with pytest.raises(ModelFileError, match=r"net\.onnx"):
            count(_written(tmp_path, damaged))
