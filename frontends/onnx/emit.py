"""From an ONNX operator with settled shapes to the neutral ``OpNode``."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from onnx import AttributeProto, NodeProto, helper

from graphcost.frontends.onnx.scope import Scope
from graphcost.frontends.onnx.shapes import VALUE_INPUTS
from graphcost.frontends.onnx.values import Value
from graphcost.frontends.onnx.weights import nbits_param, slot_params
from graphcost.ir import OpNode, Param

_TORCH_SCOPES = "pkg.torch.onnx.name_scopes"
_TORCH_STACK = "pkg.torch.onnx.stack_trace"
_SKIPPED = frozenset(
    {AttributeProto.TENSOR, AttributeProto.GRAPH, AttributeProto.SPARSE_TENSOR, AttributeProto.TENSORS,
     AttributeProto.GRAPHS, AttributeProto.SPARSE_TENSORS, AttributeProto.TYPE_PROTO, AttributeProto.TYPE_PROTOS}
)  # fmt: skip
_VALUES_KEPT = 64  # elements of a small known input that a rule may look at


def normal_domain(domain: str) -> str:
    """The standard's domain has two spellings."""
    return "" if domain == "ai.onnx" else domain


def make_node(node: NodeProto, domain: str, inputs: list[Value | None], results: list[Value], scope: Scope) -> OpNode:
    """The operator as rules and reports see it."""
    label = node.name or next((name for name in node.output if name), node.op_type)
    attrs = _attrs(node)
    return OpNode(
        name=scope.path + label,
        op_type=node.op_type,
        domain=domain,
        inputs=tuple(value.spec if value is not None else None for value in inputs),
        outputs=tuple(value.spec for value in results),
        attrs=attrs,
        input_names=tuple(value.name if value is not None else "" for value in inputs),
        output_names=tuple(value.name for value in results),
        params=_params(node.op_type, domain, attrs, inputs),
        values=_values(node.op_type, inputs),
        repeat=scope.repeat,
        module=_module(node, scope),
        origin=_origin(node, label),
    )


_NO_ATTRS: Mapping[str, Any] = MappingProxyType({})


def _attrs(node: NodeProto) -> Mapping[str, Any]:
    """Plain attributes; operators without any share one mapping, which lets equal ones be told by identity."""
    if not node.attribute:
        return _NO_ATTRS
    return {a.name: _plain(a) for a in node.attribute if a.type not in _SKIPPED}


def _params(
    op_type: str, domain: str, attrs: Mapping[str, Any], inputs: list[Value | None]
) -> tuple[tuple[int, Param], ...]:
    found: list[tuple[int, Param]] = []
    for index, value in enumerate(inputs):
        if value is None or not value.leaves:
            continue
        if op_type in ("MatMulNBits", "MatMulBnb4") and index == 1 and _has_ints(attrs, "K", "N"):
            found += [(1, nbits_param(leaf, attrs["K"], attrs["N"])) for leaf in value.leaves]
        else:
            found += [(index, param) for param in slot_params(op_type, domain, index, value)]
    return tuple(found)


def _has_ints(attrs: Mapping[str, Any], *names: str) -> bool:
    return all(isinstance(attrs.get(name), int) for name in names)


def _values(op_type: str, inputs: list[Value | None]) -> dict[int, tuple[int | float, ...]]:
    known: dict[int, tuple[int | float, ...]] = {}
    for index in VALUE_INPUTS.get(op_type, ()):
        value = inputs[index] if index < len(inputs) else None
        if value is not None and value.data is not None and value.data.size <= _VALUES_KEPT:
            known[index] = tuple(value.data.reshape(-1).tolist())
    return known


def _plain(attribute: AttributeProto) -> Any:
    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if attribute.type == AttributeProto.STRINGS:
        return tuple(item.decode("utf-8", "replace") for item in value)
    if attribute.type in (AttributeProto.INTS, AttributeProto.FLOATS):
        return tuple(value)
    return value


def _module(node: NodeProto, scope: Scope) -> str:
    """Dotted path of the enclosing block: torch's scopes, else slashes in the name."""
    for entry in node.metadata_props:
        if entry.key == _TORCH_SCOPES and len(entry.value) < 4096:
            try:
                scopes = ast.literal_eval(entry.value)  # a Python list literal; nothing is executed
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                break
            names = [str(item) for item in scopes if item] if isinstance(scopes, list) else []
            if len(names) > 1:
                return names[-2]
    prefix = scope.path.strip("/").replace("/", ".")
    own = ".".join(part for part in node.name.strip("/").split("/")[:-1] if part)
    return ".".join(part for part in (prefix, own) if part)


def _origin(node: NodeProto, label: str) -> str:
    for entry in node.metadata_props:
        if entry.key == _TORCH_STACK:
            files: list[str] = [line.strip() for line in entry.value.splitlines() if line.strip().startswith("File ")]
            if files:
                return files[-1]
    return f"{node.op_type} {label}"
