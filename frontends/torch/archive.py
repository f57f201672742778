"""Read a ``torch.export`` archive (``.pt2``) without torch: the graph is JSON inside a zip.

Weights and sample inputs are never opened (they may hold pickles); sizes are evaluated
without executing them. Source: torch/_export/serde/schema.py, schema version 8.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphcost.errors import ModelFileError
from graphcost.frontends.torch.expressions import plain
from graphcost.frontends.torch.records import Exported, Ref, Size, TensorMeta, TorchGraph, TorchOp

MAX_JSON_BYTES = 1 << 30

# torch/_export/serde/schema.py, ScalarType
DTYPES: Mapping[int, str] = {
    1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32", 8: "float64",
    10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16", 28: "uint16", 29: "float8e4m3fn",
    30: "float8e5m2", 31: "float8e4m3fnuz", 32: "float8e5m2fnuz",
}  # fmt: skip

_GRAPH_MEMBERS = ("models/model.json", "serialized_exported_program.json")


def read_archive(path: Path) -> Exported:
    """The export in ``path``; raises ``ModelFileError`` for anything else."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            member = next((n for n in names if n.endswith(_GRAPH_MEMBERS)), None)
            if member is None:
                if any(n.endswith("data.pkl") for n in names):
                    raise ModelFileError(
                        f"{path}: a pickled torch file, which can run code and is never opened; "
                        "save the model with torch.export.save, or export it to ONNX"
                    )
                raise ModelFileError(f"{path}: a zip archive, but not one of torch.export (no models/*.json in it)")
            if archive.getinfo(member).file_size > MAX_JSON_BYTES:
                raise ModelFileError(f"{path}: the graph takes more than {MAX_JSON_BYTES} bytes; it is refused")
            data = json.loads(archive.read(member))
            storage = _shared_storage(archive, names)
    except FileNotFoundError:
        raise ModelFileError(f"{path}: no such file") from None
    except (zipfile.BadZipFile, OSError, ValueError, RecursionError) as error:
        raise ModelFileError(f"{path}: not a readable torch.export archive ({error}); truncated?") from error
    try:
        return _exported(data, storage)
    except (KeyError, TypeError, IndexError, AttributeError, StopIteration) as error:
        raise ModelFileError(f"{path}: a torch.export archive this version cannot read ({error!r})") from error


def _shared_storage(archive: zipfile.ZipFile, names: list[str]) -> dict[str, str]:
    """State-dict names that point into the same stored file."""
    member = next((n for n in names if n.endswith("model_weights_config.json")), None)
    if member is None:
        return {}
    first: dict[str, str] = {}
    shared: dict[str, str] = {}
    for name, entry in json.loads(archive.read(member)).get("config", {}).items():
        shared[name] = first.setdefault(str(entry.get("path_name", name)), name)
    return shared


def _exported(data: dict[str, Any], storage: dict[str, str]) -> Exported:
    module = data["graph_module"]
    params: dict[str, str] = {}
    buffers: dict[str, str] = {}
    user: list[str] = []
    for spec in module["signature"]["input_specs"]:
        (kind, body), = spec.items()  # fmt: skip
        if kind == "parameter":
            params[body["arg"]["name"]] = body["parameter_name"]
        elif kind == "buffer":
            buffers[body["arg"]["name"]] = body["buffer_name"]
        elif kind == "tensor_constant":
            buffers[body["arg"]["name"]] = body["tensor_constant_name"]
        elif kind == "user_input" and "as_tensor" in body["arg"]:
            user.append(body["arg"]["as_tensor"]["name"])
    wanted = [
        spec["user_output"]["arg"]["as_tensor"]["name"]
        for spec in module["signature"]["output_specs"]
        if "user_output" in spec and "as_tensor" in spec["user_output"]["arg"]
    ]
    return Exported(_graph(module["graph"], tuple(wanted)), tuple(user), params, buffers, storage)


def _graph(data: dict[str, Any], outputs: tuple[str, ...] | None = None) -> TorchGraph:
    tensors = {name: _meta(meta) for name, meta in data["tensor_values"].items()}
    if outputs is None:
        outputs = tuple(name for argument in data["outputs"] for name in _names(argument))
    inputs = tuple(name for argument in data["inputs"] for name in _names(argument))
    return TorchGraph(inputs, outputs, tuple(_op(node) for node in data["nodes"]), tensors)


def _meta(data: dict[str, Any]) -> TensorMeta:
    dtype = DTYPES.get(data["dtype"])
    if dtype is None:
        raise ModelFileError(f"element type {data['dtype']} of torch's schema is not known")
    return TensorMeta(tuple(_size(size) for size in data["sizes"]), dtype, bool(data.get("requires_grad")))


def _size(data: dict[str, Any]) -> Size:
    if "as_int" in data:
        return int(data["as_int"])
    return plain(data["as_expr"]["expr_str"])


def _op(node: dict[str, Any]) -> TorchOp:
    metadata = node.get("metadata", {})
    graphs: dict[str, TorchGraph] = {}
    args: dict[str, Any] = {}
    for index, item in enumerate(node["inputs"]):
        name = item.get("name") or str(index)
        args[name] = _argument(item["arg"], name, graphs)
    outputs = tuple(name for argument in node["outputs"] for name in _names(argument))
    target = node["target"].removeprefix("torch.ops.")
    return TorchOp(
        node.get("name") or (outputs[0] if outputs else target), target, args, outputs,
        module_path(metadata.get("nn_module_stack", "")), origin(metadata.get("stack_trace", ""), target), graphs,
    )  # fmt: skip


def _argument(arg: dict[str, Any], name: str, graphs: dict[str, TorchGraph]) -> Any:
    (kind, value), = arg.items()  # fmt: skip
    match kind:
        case "as_none":
            return None
        case "as_tensor":
            return Ref(value["name"])
        case "as_tensors":
            return tuple(Ref(item["name"]) for item in value)
        case "as_optional_tensors":
            return tuple(Ref(item["as_tensor"]["name"]) if "as_tensor" in item else None for item in value)
        case "as_graph":
            graphs[name] = _graph(value["graph"])
            return None
        case "as_sym_int" | "as_sym_float" | "as_sym_bool":
            return next(iter(value.values()))
        case "as_sym_ints":
            return tuple(next(iter(item.values())) for item in value)
        case "as_ints" | "as_floats" | "as_bools" | "as_strings":
            return tuple(value)
        case "as_scalar_type":
            return DTYPES.get(value, value)
    return value


def _names(argument: dict[str, Any]) -> list[str]:
    (kind, value), = argument.items()  # fmt: skip
    if kind == "as_tensor":
        return [value["name"]]
    if kind == "as_tensors":
        return [item["name"] for item in value]
    return []


def module_path(stack: str) -> str:
    """The innermost module of torch's ``nn_module_stack`` text: ``key,path,class`` joined by semicolons."""
    entries = [entry.split(",") for entry in stack.split(";") if entry]
    paths = [entry[1] for entry in entries if len(entry) > 1 and entry[1]]
    return paths[-1] if paths else ""


def origin(trace: str, target: str) -> str:
    """``aten.linear.default at model.py:41``: the user's innermost line, not torch's own."""
    files = [line.strip() for line in trace.splitlines() if line.strip().startswith("File ")]
    own = [line for line in files if "/site-packages/" not in line and "/torch/" not in line]
    for line in reversed(own or files):
        parts = line.split('"')
        number = line.partition(", line ")[2].split(",")[0]
        if len(parts) > 1 and number:
            return f"{target} at {parts[1]}:{number}"
    return target
