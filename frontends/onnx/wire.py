"""Read an ONNX file without reading its weights.

The file is mapped, the protobuf wire format is walked, and tensor payloads above a
few kilobytes are skipped: their pages are never touched. What is left is a valid,
small ``ModelProto`` whose large tensors have shape and dtype but no data. Files over
2 GB, which protobuf itself refuses, work the same way.

Source: protobuf encoding (protobuf.dev/programming-guides/encoding); field numbers
from onnx.proto3 (ONNX IR version 13).
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from pathlib import Path

from graphcost.errors import ModelFileError

PAYLOAD_KEPT_BYTES = 32 * 1024
"""Payloads up to this size stay: they may be shapes, axes or small weights."""

DIRECT_PARSE_BYTES = 1 << 20
"""Files up to this size are parsed as they are: nothing to gain by skipping."""

_MOSTLY_WEIGHTS_BYTES = 32 << 20
"""assumed: larger files are mostly payloads, and what the disk reads ahead of a page is thrown away."""

_RELEASED_BYTES = 1 << 30
"""Looked back over when releasing; assumed: more than the kernel maps around the fields of one payload."""

_DROP = "payload"

# message -> field number -> message it holds, or _DROP for tensor payloads.
_NESTED: Mapping[str, Mapping[int, str]] = {
    "ModelProto": {7: "GraphProto", 25: "FunctionProto"},
    "GraphProto": {1: "NodeProto", 5: "TensorProto", 15: "SparseTensorProto"},
    "FunctionProto": {7: "NodeProto"},
    "NodeProto": {5: "AttributeProto"},
    "AttributeProto": {
        5: "TensorProto", 6: "GraphProto", 10: "TensorProto", 11: "GraphProto",
        22: "SparseTensorProto", 23: "SparseTensorProto",
    },
    "SparseTensorProto": {1: "TensorProto", 2: "TensorProto"},
    # float_data, int32_data, string_data, int64_data, raw_data, double_data, uint64_data
    "TensorProto": dict.fromkeys((4, 5, 6, 7, 9, 10, 11), _DROP),
}  # fmt: skip

_MAX_DEPTH = 200  # nesting of subgraphs; protobuf's own parser stops at 100 messages


class _WireError(Exception):
    """The bytes are not a protobuf message; the caller names the file."""


def read_model_bytes(path: Path) -> bytes:
    """The file's ``ModelProto`` bytes without large tensor payloads.

    Raises ``ModelFileError`` where the file ends inside a field or is no protobuf.
    """
    size = path.stat().st_size
    if size <= DIRECT_PARSE_BYTES:
        return path.read_bytes()
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        if size > _MOSTLY_WEIGHTS_BYTES and hasattr(mmap, "MADV_RANDOM"):
            mapped.madvise(mmap.MADV_RANDOM)  # 20 times faster where the file is not cached yet
        try:
            return b"".join(_skim(mapped, 0, size, "ModelProto", 0))
        except _WireError as error:
            raise ModelFileError(f"{path}: not a readable ONNX file ({error}); truncated, or not ONNX") from error


def _skim(data: mmap.mmap, start: int, end: int, message: str, depth: int) -> list[bytes]:
    """Chunks of ``data[start:end]``, a ``message``, with payloads left out.

    Runs of fields that stay as they are become one slice.
    """
    if depth > _MAX_DEPTH:
        raise _WireError(f"messages nested deeper than {_MAX_DEPTH}")
    nested = _NESTED[message]
    chunks: list[bytes] = []
    kept_from = position = start
    while position < end:
        field_start = position
        tag, position = _varint(data, position, end)
        wire_type = tag & 7
        if wire_type == 2:
            length, body = _varint(data, position, end)
            position = body + length
            child = nested.get(tag >> 3)
            if child is not None and length > PAYLOAD_KEPT_BYTES and position <= end:
                chunks.append(data[kept_from:field_start])
                kept_from = position
                if child is _DROP:
                    _release(data, position)
                else:
                    inner = _skim(data, body, position, child, depth + 1)
                    chunks.append(data[field_start : field_start + _varint_size(tag)])
                    chunks.append(_encode_varint(sum(map(len, inner))))
                    chunks.extend(inner)
        elif wire_type == 0:
            _, position = _varint(data, position, end)
        elif wire_type == 1:
            position += 8
        elif wire_type == 5:
            position += 4
        else:
            raise _WireError(f"wire type {wire_type} at byte {field_start}")
        if position > end:
            raise _WireError(f"a field at byte {field_start} runs past its end")
    chunks.append(data[kept_from:end])
    return chunks


def _release(data: mmap.mmap, end: int) -> None:
    """Unmap what lies before ``end``, a payload at its end.

    Reading the few bytes before a payload may map megabytes around them (large folios of
    the page cache), which would count as this process's memory: 150 MB for a model of
    440 MB. What is needed again is mapped again.
    """
    if hasattr(mmap, "MADV_DONTNEED"):
        first = max(0, end - _RELEASED_BYTES) // mmap.PAGESIZE * mmap.PAGESIZE
        data.madvise(mmap.MADV_DONTNEED, first, end - first)


def _varint(data: mmap.mmap, position: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while position < end:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 63:
            raise _WireError(f"a number at byte {position} is longer than 64 bits")
    raise _WireError("the file ends inside a number")


def _varint_size(value: int) -> int:
    return len(_encode_varint(value))


def _encode_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
