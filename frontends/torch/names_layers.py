"""aten names of layers: products, convolutions, attention, normalisation, recurrence, tables, pooling."""

from __future__ import annotations

from math import prod
from typing import Any

from graphcost.frontends.torch.lower import Lowering, handles
from graphcost.frontends.torch.records import Ref, TorchOp
from graphcost.ir import ParamKind, TensorSpec


def _flat(spec: TensorSpec) -> TensorSpec:
    """All leading axes as one: how torch hands a batch of rows to its matrix product."""
    return TensorSpec((prod(spec.shape[:-1]), spec.shape[-1]), spec.dtype)


@handles("aten.linear")
def _linear(walk: Lowering, op: TorchOp) -> None:
    """``x [..., K] @ W[N, K]^T + b``: one addmm over all rows."""
    x, out = walk.need(op, op.args["input"]), walk.out(op)
    bias = op.args.get("bias")
    inputs = [op.args["input"], op.args["weight"], *([bias] if bias is not None else [])]
    rows = None if out is None else _flat(out)
    walk.emit(op, "Gemm", inputs, specs={0: _flat(x)}, outputs=[rows], transB=1)


@handles("aten.addmm")
def _addmm(walk: Lowering, op: TorchOp) -> None:
    walk.emit(op, "Gemm", [op.args["mat1"], op.args["mat2"], op.args["self"]])


@handles("aten.mm", "aten.bmm", "aten.matmul", "aten.mv", "aten.dot", "aten._int_mm")
def _matmul(walk: Lowering, op: TorchOp) -> None:
    left, right = [value for value in op.args.values() if isinstance(value, Ref)][:2]
    walk.emit(op, "MatMul", [left, right])


@handles("aten.baddbmm", "aten.addbmm", "aten.addmv")
def _baddbmm(walk: Lowering, op: TorchOp) -> None:
    """The product, then the addend."""
    tensors = [value for name, value in op.args.items() if isinstance(value, Ref) and name != "self"]
    product = f"{op.outputs[0]}.product"
    walk.emit(op, "MatMul", tensors[:2], suffix=".product", names=[product])
    walk.frame.specs[product] = walk.out(op)
    walk.emit(op, "Add", [Ref(product), op.args["self"]])


@handles("aten._grouped_mm", "aten.grouped_mm", "transformers.grouped_mm_fallback")
def _grouped(walk: Lowering, op: TorchOp) -> None:
    """Rows sorted by expert, ``[T, K]`` with ``[E, K, N]``: every row meets one expert's matrix."""
    left, right = [value for value in op.args.values() if isinstance(value, Ref)][:2]
    rows, table = walk.need(op, left), walk.need(op, right)
    experts = table.shape[0]
    one = TensorSpec(table.shape[1:] if table.shape[-2] == rows.shape[-1] else table.shape[:0:-1], table.dtype)
    if len(rows.shape) != 2:
        raise LookupError(f"{op.name}: grouped rows of rank {len(rows.shape)}")
    walk.emit(op, "MatMul", [left, right], specs={1: one}, experts=experts)


@handles("aten.einsum")
def _einsum(walk: Lowering, op: TorchOp) -> None:
    walk.emit(op, "Einsum", list(op.args["tensors"]), equation=op.args["equation"])


_TRANSPOSED = {"aten.conv_transpose1d", "aten.conv_transpose2d", "aten.conv_transpose3d"}


@handles("aten.conv1d", "aten.conv2d", "aten.conv3d", "aten.convolution", "aten._convolution", *sorted(_TRANSPOSED))
def _conv(walk: Lowering, op: TorchOp) -> None:
    """Weights ``[Cout, Cin/g, ...]``, transposed ``[Cin, Cout/g, ...]``: ONNX's own layouts."""
    inputs = [op.args.get("input", op.args.get("self")), op.args["weight"]]
    if op.args.get("bias") is not None:
        inputs.append(op.args["bias"])
    weight = walk.need(op, op.args["weight"])
    rank = len(weight.shape) - 2
    transposed = bool(op.args.get("transposed")) or op.target.rpartition(".")[0] in _TRANSPOSED
    padding = op.args.get("padding", (0,) * rank)
    attrs: dict[str, Any] = {"auto_pad": "SAME_UPPER"} if padding == "same" else {}
    if not isinstance(padding, str):
        attrs["pads"] = _each(padding, rank) * 2
    walk.emit(
        op, "ConvTranspose" if transposed else "Conv", inputs, kernel_shape=weight.shape[2:],
        strides=_each(op.args.get("stride", 1), rank), dilations=_each(op.args.get("dilation", 1), rank),
        group=op.args.get("groups", 1), **attrs,
    )  # fmt: skip


def _each(value: Any, rank: int) -> tuple[int, ...]:
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    return values * rank if len(values) == 1 else values


@handles("aten.scaled_dot_product_attention", "aten._scaled_dot_product_flash_attention_for_cpu",
         "aten._scaled_dot_product_flash_attention", "aten._scaled_dot_product_efficient_attention",
         "aten._scaled_dot_product_attention_math")  # fmt: skip
def _attention(walk: Lowering, op: TorchOp) -> None:
    """``[..., heads, S, D]``; the full square, whatever ``is_causal`` says."""
    mask = op.args.get("attn_mask")
    causal = int(bool(op.args.get("is_causal")))
    parts = [op.args[name] for name in ("query", "key", "value")]
    emit_attention(walk, op, parts, [mask] if mask is not None else [], is_causal=causal)


def emit_attention(walk: Lowering, op: TorchOp, parts: list[Any], added: list[Any], **attrs: Any) -> None:
    """Query, key, value and what is added to their scores; where that is several tensors, they share a slot."""
    specs = {index: _four(walk.need(op, part)) for index, part in enumerate(parts)}
    out = walk.out(op)
    walk.emit(
        op, "Attention", [*parts, *added[:1]], specs=specs, outputs=[_four(out) if out is not None else None],
        names=op.outputs[:1], **attrs,
    )  # fmt: skip
    for value in added[1:]:
        walk.add_params(3, value)


def _four(spec: TensorSpec) -> TensorSpec:
    """Rank 4: missing axes in front are 1, extra ones count as batch."""
    shape = (1,) * (4 - len(spec.shape)) + spec.shape
    return TensorSpec((prod(shape[:-3]), *shape[-3:]), spec.dtype)


_NORM_BUFFERS = {3: ParamKind.BUFFER, 4: ParamKind.BUFFER}


@handles("aten.batch_norm", "aten._native_batch_norm_legit_no_training", "aten._native_batch_norm_legit",
         "aten.native_batch_norm", "aten.cudnn_batch_norm")  # fmt: skip
def _batch_norm(walk: Lowering, op: TorchOp) -> None:
    """Running statistics are buffers."""
    inputs = [op.args.get(name) for name in ("input", "weight", "bias", "running_mean", "running_var")]
    walk.emit(op, "BatchNormalization", inputs, outputs=[walk.out(op)], names=op.outputs[:1], kinds=_NORM_BUFFERS)


@handles("aten.layer_norm", "aten.native_layer_norm")
def _layer_norm(walk: Lowering, op: TorchOp) -> None:
    shape = op.args.get("normalized_shape", (1,))
    inputs = [op.args["input"], op.args.get("weight"), op.args.get("bias")]
    walk.emit(
        op, "LayerNormalization", _trimmed(inputs), outputs=[walk.out(op)], names=op.outputs[:1], axis=-len(shape)
    )


@handles("aten.rms_norm", "aten._fused_rms_norm")
def _rms_norm(walk: Lowering, op: TorchOp) -> None:
    shape = op.args.get("normalized_shape", (1,))
    inputs = _trimmed([op.args["input"], op.args.get("weight")])
    walk.emit(op, "RMSNormalization", inputs, outputs=[walk.out(op)], names=op.outputs[:1], axis=-len(shape))


@handles("aten.group_norm", "aten.native_group_norm", "aten.instance_norm")
def _group_norm(walk: Lowering, op: TorchOp) -> None:
    inputs = _trimmed([op.args["input"], op.args.get("weight"), op.args.get("bias")])
    groups = op.args.get("num_groups", op.args.get("group", 1))
    kind = "InstanceNormalization" if "instance" in op.target else "GroupNormalization"
    walk.emit(op, kind, inputs, outputs=[walk.out(op)], names=op.outputs[:1], num_groups=groups)


def _trimmed(inputs: list[Any]) -> list[Any]:
    while inputs and inputs[-1] is None:
        inputs = inputs[:-1]
    return inputs


@handles("aten.embedding")
def _embedding(walk: Lowering, op: TorchOp) -> None:
    walk.emit(op, "Gather", [op.args["weight"], op.args["indices"]], slots=(0,), axis=0)


@handles("aten.embedding_bag", "aten._embedding_bag", "aten._embedding_bag_forward_only")
def _embedding_bag(walk: Lowering, op: TorchOp) -> None:
    """A lookup of every index, its weight where it has one, then a sum by bag."""
    table, indices = walk.need(op, op.args["weight"]), walk.need(op, op.args["indices"])
    rows = TensorSpec((indices.numel, table.shape[1]), table.dtype)
    name = f"{op.outputs[0]}.rows"
    walk.emit(op, "Gather", [op.args["weight"], op.args["indices"]], outputs=[rows], names=[name], slots=(0,),
              suffix=".rows", axis=0)  # fmt: skip
    walk.frame.specs[name] = rows
    weights = op.args.get("per_sample_weights")
    if isinstance(weights, Ref):
        each = {1: TensorSpec((indices.numel, 1), rows.dtype)}
        walk.emit(op, "Mul", [Ref(name), weights], specs=each, outputs=[rows], names=[f"{name}.weighed"],
                  suffix=".weighed")  # fmt: skip
        name = f"{name}.weighed"
        walk.frame.specs[name] = rows
    walk.emit(op, "ReduceSum", [Ref(name)], outputs=[walk.out(op)], names=op.outputs[:1])


@handles("aten.max_pool1d", "aten.max_pool2d", "aten.max_pool3d", "aten.max_pool2d_with_indices",
         "aten.max_pool3d_with_indices")  # fmt: skip
def _max_pool(walk: Lowering, op: TorchOp) -> None:
    _pool(walk, op, "MaxPool", op.args["kernel_size"])


@handles("aten.avg_pool1d", "aten.avg_pool2d", "aten.avg_pool3d")
def _average_pool(walk: Lowering, op: TorchOp) -> None:
    _pool(walk, op, "AveragePool", op.args["kernel_size"])


@handles("aten.adaptive_avg_pool1d", "aten.adaptive_avg_pool2d", "aten.adaptive_avg_pool3d",
         "aten._adaptive_avg_pool2d", "aten.adaptive_max_pool1d", "aten.adaptive_max_pool2d")  # fmt: skip
def _adaptive_pool(walk: Lowering, op: TorchOp) -> None:
    """A window of ceil(in / out) along each axis; the whole image where one element is left."""
    x, out = walk.need(op, next(iter(op.args.values()))), walk.out(op)
    maximum = "max_pool" in op.target
    if out is None:
        raise LookupError(op.name)
    sizes = op.args["output_size"]
    rank = len(sizes) if isinstance(sizes, (tuple, list)) else 1
    window = tuple(-(-a // b) for a, b in zip(x.shape[-rank:], out.shape[-rank:], strict=True))
    if all(size == 1 for size in out.shape[-rank:]):
        kind = "GlobalMaxPool" if maximum else "GlobalAveragePool"
        walk.emit(op, kind, [next(iter(op.args.values()))], outputs=[out], names=op.outputs[:1])
    else:
        _pool(walk, op, "MaxPool" if maximum else "AveragePool", window)


def _pool(walk: Lowering, op: TorchOp, kind: str, window: Any) -> None:
    source = next(iter(op.args.values()))
    rank = len(walk.need(op, source).shape) - 2
    walk.emit(
        op, kind, [source], outputs=[walk.out(op)], names=op.outputs[:1], kernel_shape=_each(window, max(rank, 1))
    )


_GATES = {"lstm": ("LSTM", 4), "gru": ("GRU", 3), "rnn_tanh": ("RNN", 1), "rnn_relu": ("RNN", 1)}


@handles("aten.lstm", "aten.gru", "aten.rnn_tanh", "aten.rnn_relu")
def _recurrent(walk: Lowering, op: TorchOp) -> None:
    """One ONNX operator a layer: X ``[T, B, I]``, W ``[dirs, gates H, I]``, R ``[dirs, gates H, "
    "H]``, B ``[dirs, 2 gates H]``."""
    kind, gates = _GATES[op.target.split(".")[1]]
    if not op.target.endswith(".input"):
        raise LookupError("packed sequences")
    x = walk.need(op, op.args["input"])
    time, batch = (x.shape[1], x.shape[0]) if op.args.get("batch_first") else x.shape[:2]
    weights = list(op.args["params"])
    dirs = 2 if op.args.get("bidirectional") else 1
    biased = bool(op.args.get("has_biases", True))
    per_direction = 4 if biased else 2
    states = _initial_states(walk, op)
    source: Any = op.args["input"]
    width = x.shape[2]
    layers = int(op.args["num_layers"])
    for layer in range(layers):
        parts = [
            weights[(layer * dirs + d) * per_direction : (layer * dirs + d + 1) * per_direction] for d in range(dirs)
        ]
        hidden = walk.need(op, parts[0][1]).shape[1]
        name = op.outputs[0] if layer == layers - 1 else f"{op.outputs[0]}.{layer}"
        out = TensorSpec((time, dirs, batch, hidden), x.dtype)
        specs = {
            0: TensorSpec((time, batch, width), x.dtype),
            1: TensorSpec((dirs, gates * hidden, width), x.dtype),
            2: TensorSpec((dirs, gates * hidden, hidden), x.dtype),
            **({3: TensorSpec((dirs, 2 * gates * hidden), x.dtype)} if biased else {}),
            **{5 + i: TensorSpec((dirs, *walk.need(op, state).shape[1:]), x.dtype) for i, state in enumerate(states)},
        }
        made: dict[str, TensorSpec | None] = {name: out}
        if layer == layers - 1:  # the last states of all layers
            made |= {state: walk.out(op, 1 + i) for i, state in enumerate(op.outputs[1:])}
        walk.emit_recurrent(op, kind, source, parts, specs, states, made, f".{layer}", hidden, dirs)
        source, width = Ref(name), dirs * hidden
        walk.frame.specs.setdefault(name, out)


def _initial_states(walk: Lowering, op: TorchOp) -> list[Any]:
    """Initial states ``[layers * dirs, B, H]`` that are learned or computed; zeros are none."""
    given = op.args.get("hx", ())
    states = [value for value in (given if isinstance(given, tuple) else (given,)) if isinstance(value, Ref)]
    return [] if all(walk.is_constant(state) for state in states) else states
