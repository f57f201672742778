"""From a path to a ``ModelProto``: what a file really is, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from graphcost.errors import ModelFileError
from graphcost.frontends.onnx.wire import read_model_bytes

# First bytes of what people hand in by mistake: (prefix, what it is, what would be right).
_LOOKALIKES = (
    (b"version https://git-lfs", "a Git LFS pointer, not the model itself", "run `git lfs pull` to fetch it"),
    (b"\x89PNG", "a PNG image", "give an ONNX file"),
    (b"\xff\xd8\xff", "a JPEG image", "give an ONNX file"),
    (b"GIF8", "a GIF image", "give an ONNX file"),
    (b"%PDF", "a PDF document", "give an ONNX file"),
    (b"PK\x03\x04", "a zip archive", "unpack it, or name a torch .pt2 or Keras .keras file so"),
    (b"\x1f\x8b", "a gzip archive", "unpack it first"),
    (b"BZh", "a bzip2 archive", "unpack it first"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive", "unpack it first"),
    (b"\x89HDF", "an HDF5 file", "name it .h5 if it is a Keras model"),
    (b"\x80\x02", "a Python pickle", "export the model to ONNX; pickles are never opened"),
    (b"<!DOCTYPE", "an HTML page", "the download probably failed; fetch the file again"),
    (b"<html", "an HTML page", "the download probably failed; fetch the file again"),
    (b"ORTM", "an ONNX Runtime flatbuffer", "give the ONNX file it was made from"),
)


def read_model(path: Path) -> onnx.ModelProto:
    """Parse ``path``; large tensors come without their data.

    Raises ``ModelFileError`` naming the file for anything that is not a whole ONNX
    model: missing, a folder, empty, an LFS pointer, another format, truncated.
    """
    if not path.exists():
        raise ModelFileError(f"{path}: no such file")
    if path.is_dir():
        raise ModelFileError(f"{path}: a folder, not an ONNX file")
    try:
        with path.open("rb") as file:
            head = file.read(64)
        if not head:
            raise ModelFileError(f"{path}: the file is empty; was the download or export interrupted?")
        for prefix, what, remedy in _LOOKALIKES:
            if head.startswith(prefix):
                raise ModelFileError(f"{path}: this is {what}; {remedy}")
        if head[4:8] == b"ORTM":
            raise ModelFileError(f"{path}: this is an ONNX Runtime flatbuffer; give the ONNX file it was made from")
        content = read_model_bytes(path)
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read ({error.strerror})") from error
    return parse_model(content, str(path))


def parse_model(content: bytes, source: str) -> onnx.ModelProto:
    """Bytes of a ``ModelProto`` -> the message, checked to hold a graph."""
    try:
        model: onnx.ModelProto = onnx.ModelProto.FromString(content)
    except DecodeError as error:
        raise ModelFileError(f"{source}: not a readable ONNX file; truncated, or not ONNX") from error
    if not model.HasField("graph") or not (model.graph.node or model.graph.output):
        raise ModelFileError(f"{source}: holds no ONNX graph; truncated, or not an ONNX model")
    if not model.graph.output:
        raise ModelFileError(f"{source}: the graph has no outputs; truncated, or not an ONNX model")
    check_names(model, source)
    return model


def check_names(model: onnx.ModelProto, source: str) -> None:
    """Raise ``ModelFileError`` unless every name is text: protobuf hands damaged ones over as bytes."""
    try:
        for function in model.functions:
            "".join((function.name, function.domain, function.overload, *function.input, *function.output))
            _check_nodes(function.node)
        _check_graph(model.graph)
        "".join(opset.domain for opset in model.opset_import)
    except TypeError as error:
        raise ModelFileError(f"{source}: a name in it is not UTF-8 text; damaged, or not an ONNX model") from error


def _check_graph(graph: onnx.GraphProto) -> None:
    """Raise ``TypeError`` where a name is not text. Joining is the cheapest look at many strings."""
    "".join((graph.name, *(sparse.values.name for sparse in graph.sparse_initializer)))
    for tensor in graph.initializer:
        _check_tensor(tensor)
    for info in (*graph.input, *graph.output, *graph.value_info):
        "".join((info.name, *(dim.dim_param for dim in info.type.tensor_type.shape.dim)))
    _check_nodes(graph.node)


def _check_nodes(nodes: Sequence[onnx.NodeProto]) -> None:
    for node in nodes:
        "".join((node.name, node.op_type, node.domain, node.overload, *node.input, *node.output))
        "".join(text for entry in node.metadata_props for text in (entry.key, entry.value))
        for attribute in node.attribute:
            "".join((attribute.name, attribute.ref_attr_name))
            if attribute.HasField("t"):
                _check_tensor(attribute.t)
            if attribute.HasField("g"):
                _check_graph(attribute.g)
            for graph in attribute.graphs:
                _check_graph(graph)


def _check_tensor(tensor: onnx.TensorProto) -> None:
    "".join((tensor.name, *(text for entry in tensor.external_data for text in (entry.key, entry.value))))
