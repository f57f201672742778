"""An fx graph as records: operators by name, arguments by schema, sizes of every tensor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphcost.frontends.torch.archive import origin
from graphcost.frontends.torch.records import Ref, TensorMeta, TorchGraph, TorchOp

_DTYPES = {"float8_e4m3fn": "float8e4m3fn", "float8_e5m2": "float8e5m2", "float8_e4m3fnuz": "float8e4m3fnuz",
           "float8_e5m2fnuz": "float8e5m2fnuz"}  # fmt: skip


def graph_records(torch: Any, module: Any, trained: Mapping[str, str]) -> TorchGraph:
    """An fx graph as records; multi-output operators are split by the ``getitem`` calls that follow."""
    tensors: dict[str, TensorMeta] = {}
    ops: list[TorchOp] = []
    inputs: list[str] = []
    outputs: tuple[str, ...] = ()
    parts: dict[Any, dict[int, str]] = {}
    for node in module.graph.nodes:
        if node.op == "call_function" and getattr(node.target, "__name__", "") == "getitem":
            parts.setdefault(node.args[0], {})[node.args[1]] = node.name
    for node in module.graph.nodes:
        value = node.meta.get("val", node.meta.get("tensor_meta"))
        if isinstance(value, torch.Tensor):
            tensors[node.name] = _meta(value, node.name in trained)
        if node.op == "placeholder":
            inputs.append(node.name)
        elif node.op == "output":
            outputs = tuple(arg.name for arg in _flat(node.args) if isinstance(arg, torch.fx.Node))
        elif node.op == "get_attr":
            attribute = _attribute(module, node.target)
            if isinstance(attribute, torch.Tensor):
                tensors[node.name] = _meta(attribute, False)
                ops.append(TorchOp(node.name, "constant", {}, (node.name,)))
        elif node.op == "call_function":
            made = _op(torch, module, node, parts.get(node), tensors)
            if made is not None:
                ops.append(made)
    return TorchGraph(tuple(inputs), outputs, tuple(ops), tensors)


def _op(
    torch: Any, module: Any, node: Any, parts: dict[int, str] | None, tensors: dict[str, TensorMeta]
) -> TorchOp | None:
    target = node.target
    is_item = getattr(target, "__name__", "") == "getitem" and isinstance(node.args[0], torch.fx.Node)
    if is_item and isinstance(node.args[0].meta.get("val"), (tuple, list)):
        return None  # a result of the operator before it
    value = node.meta.get("val")
    if isinstance(value, (tuple, list)):
        names = []
        for index, item in enumerate(value):
            name = (parts or {}).get(index, f"{node.name}.{index}")
            if isinstance(item, torch.Tensor):
                tensors[name] = _meta(item, False)
            names.append(name)
        outputs = tuple(names)
    else:
        outputs = (node.name,) if isinstance(value, torch.Tensor) else ()
    graphs: dict[str, TorchGraph] = {}
    args = {name: _value(torch, module, arg, name, graphs) for name, arg in _named(target, node).items()}
    stack = node.meta.get("nn_module_stack") or {}
    path = [entry[0] for entry in stack.values() if entry and entry[0]]
    name = _target_name(target)
    return TorchOp(
        node.name,
        name,
        args,
        outputs,
        _clean(path[-1]) if path else "",
        origin(node.meta.get("stack_trace") or "", name),
        graphs,
    )


def _clean(path: str) -> str:
    """``L['self'].layers.3.attn`` -> ``layers.3.attn``."""
    return path.removeprefix("L['self'].").removeprefix("L__self__.").strip(".")


def _target_name(target: Any) -> str:
    """``aten.linear.default`` whatever kind of callable the target is."""
    text = str(target)
    namespace = getattr(target, "namespace", None)
    if namespace == "higher_order" or text.startswith("<torch._higher_order"):
        return getattr(target, "_name", getattr(target, "__name__", text))
    if hasattr(target, "_schema"):
        return text.removeprefix("torch.ops.")
    module = getattr(target, "__module__", "") or ""
    return (
        f"{module}.{getattr(target, '__name__', text)}".removeprefix("_operator.")
        if "getitem" not in text
        else "operator.getitem"
    )


def _named(target: Any, node: Any) -> dict[str, Any]:
    """Arguments by schema name, schema defaults left out."""
    schema = getattr(target, "_schema", None)
    if schema is None:
        return {**{str(index): arg for index, arg in enumerate(node.args)}, **node.kwargs}
    names = [argument.name for argument in schema.arguments]
    return {**dict(zip(names, node.args, strict=False)), **node.kwargs}


def _value(torch: Any, module: Any, arg: Any, name: str, graphs: dict[str, TorchGraph]) -> Any:
    if isinstance(arg, torch.fx.Node):
        if arg.op == "get_attr":
            body = _attribute(module, arg.target)
            if isinstance(body, torch.fx.GraphModule):
                graphs[name] = graph_records(torch, body, {})
                return None
        return Ref(arg.name) if isinstance(arg.meta.get("val"), torch.Tensor) or arg.op == "get_attr" else None
    if isinstance(arg, (tuple, list)):
        return tuple(_value(torch, module, item, f"{name}.{index}", graphs) for index, item in enumerate(arg))
    if isinstance(arg, torch.dtype):
        return _dtype(arg)
    return arg if isinstance(arg, (int, float, bool, str, type(None))) else str(arg)


def _attribute(module: Any, target: str) -> Any:
    value = module
    for part in target.split("."):
        value = getattr(value, part)
    return value


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in _flat(item)]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in _flat(item)]
    return [value]


def _meta(value: Any, requires_grad: bool) -> TensorMeta:
    sizes = tuple(int(size) if isinstance(size, int) else str(size.node.expr) for size in value.shape)
    return TensorMeta(sizes, _dtype(value.dtype), requires_grad)


def _dtype(dtype: Any) -> str:
    name = str(dtype).removeprefix("torch.")
    return _DTYPES.get(name, name)
