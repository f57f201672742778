"""aten names that are one neutral operator, one line each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from graphcost.frontends.torch.lower import HANDLERS, Handler, Lowering, handles
from graphcost.frontends.torch.records import Ref, TorchOp

# aten name -> ONNX operator; in-place forms (a trailing underscore) are added below.
POINTWISE: Mapping[str, str] = {
    "add": "Add", "sub": "Sub", "rsub": "Sub", "mul": "Mul", "div": "Div", "true_divide": "Div",
    "floor_divide": "Div",
    "remainder": "Mod", "fmod": "Mod", "pow": "Pow", "maximum": "Max", "minimum": "Min", "max.other": "Max",
    "relu": "Relu", "relu6": "Clip", "gelu": "Gelu", "silu": "Swish", "sigmoid": "Sigmoid", "tanh": "Tanh",
    "hardtanh": "Clip", "hardswish": "HardSwish", "hardsigmoid": "HardSigmoid", "leaky_relu": "LeakyRelu",
    "elu": "Elu", "selu": "Selu", "celu": "Celu", "mish": "Mish", "softplus": "Softplus", "softsign": "Softsign",
    "log_sigmoid": "Softplus", "threshold": "ThresholdedRelu",
    "exp": "Exp", "exp2": "Exp", "expm1": "Exp", "log": "Log", "log2": "Log", "log10": "Log", "log1p": "Log",
    "sqrt": "Sqrt", "rsqrt": "Sqrt", "reciprocal": "Reciprocal", "square": "Mul", "abs": "Abs", "neg": "Neg",
    "sign": "Sign", "ceil": "Ceil", "floor": "Floor", "round": "Round", "trunc": "Floor", "erf": "Erf",
    "sin": "Sin", "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos", "atan": "Atan", "atan2": "Atan",
    "sinh": "Sinh", "cosh": "Cosh", "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh",
    "clamp": "Clip", "clamp_min": "Clip", "clamp_max": "Clip", "clip": "Clip", "lerp": "Add",
    "eq": "Equal", "ne": "Equal", "gt": "Greater", "ge": "GreaterOrEqual", "lt": "Less",
    "le": "LessOrEqual", "logical_and": "And", "logical_or": "Or", "logical_xor": "Xor", "logical_not": "Not",
    "bitwise_and": "BitwiseAnd", "bitwise_or": "BitwiseOr", "bitwise_xor": "BitwiseXor", "bitwise_not": "BitwiseNot",
    "__and__": "And", "__or__": "Or", "isnan": "IsNaN", "isinf": "IsInf", "where": "Where", "masked_fill": "Where",
    "nan_to_num": "Where", "prelu": "PRelu", "_prelu_kernel": "PRelu", "outer": "Mul",
}  # fmt: skip

REDUCE: Mapping[str, str] = {
    "sum": "ReduceSum", "mean": "ReduceMean", "amax": "ReduceMax", "amin": "ReduceMin", "max": "ReduceMax",
    "min": "ReduceMin", "prod": "ReduceProd", "argmax": "ArgMax", "argmin": "ArgMin", "cumsum": "CumSum",
    "cumprod": "CumProd", "topk": "TopK", "sort": "TopK", "argsort": "TopK", "logsumexp": "ReduceLogSumExp",
    "norm": "ReduceL2", "linalg_vector_norm": "ReduceL2", "var": "ReduceSumSquare", "std": "ReduceSumSquare",
    "var_mean": "ReduceSumSquare", "histc": "ReduceSum", "bincount": "ReduceSum", "any": "ReduceMax",
    "all": "ReduceMin", "nonzero": "NonZero",
    "softmax": "Softmax", "_softmax": "Softmax", "log_softmax": "LogSoftmax", "_log_softmax": "LogSoftmax",
}  # fmt: skip

COPY: Mapping[str, str] = {
    "repeat": "Tile", "tile": "Tile", "repeat_interleave": "Tile", "constant_pad_nd": "Pad", "pad": "Pad",
    "reflection_pad1d": "Pad", "reflection_pad2d": "Pad", "replication_pad2d": "Pad", "roll": "ReverseSequence",
    "flip": "ReverseSequence", "pixel_shuffle": "DepthToSpace", "pixel_unshuffle": "SpaceToDepth", "tril": "Trilu",
    "triu": "Trilu", "grid_sampler": "GridSample", "grid_sampler_2d": "GridSample", "unfold": "Slice",
    "upsample_nearest1d": "Resize", "upsample_nearest2d": "Resize", "upsample_nearest3d": "Resize",
    "upsample_bilinear2d": "Resize", "upsample_bicubic2d": "Resize", "upsample_linear1d": "Resize",
    "upsample_trilinear3d": "Resize", "_upsample_bilinear2d_aa": "Resize", "clone": "Cast", "copy": "Cast",
    "index_select": "GatherElements", "gather": "GatherElements", "take_along_dim": "GatherElements",
    "zeros_like": "ConstantOfShape", "ones_like": "ConstantOfShape", "full_like": "ConstantOfShape",
    "new_zeros": "ConstantOfShape", "new_empty": "ConstantOfShape",
    "new_ones": "ConstantOfShape", "new_full": "ConstantOfShape",
    "empty_like": "ConstantOfShape", "rand_like": "RandomUniformLike", "randn_like": "RandomNormalLike",
    "bernoulli": "Bernoulli", "complex": "Concat",
}  # fmt: skip


def _source(op: TorchOp) -> object:
    return next(iter(op.args.values()), None)


def _one(op_type: str, *, slots: bool) -> Handler:
    def handler(walk: Lowering, op: TorchOp) -> None:
        inputs = [value for value in op.args.values() if isinstance(value, Ref)]
        walk.emit(op, op_type, inputs, slots=None if slots else (), outputs=[walk.out(op)], names=op.outputs[:1])

    return handler


for _table, _slots in ((POINTWISE, True), (REDUCE, False), (COPY, False)):
    for _name, _op_type in _table.items():
        HANDLERS[f"aten.{_name}"] = _one(_op_type, slots=_slots)
        if _table is POINTWISE:
            HANDLERS.setdefault(f"aten.{_name}_", HANDLERS[f"aten.{_name}"])


@handles(
    "aten.to", "aten._to_copy", "aten.type_as", "aten.float", "aten.half", "aten.bfloat16", "aten.long", "aten.int"
)
def _cast(walk: Lowering, op: TorchOp) -> None:
    """A conversion that changes nothing is a view."""
    source = _source(op)
    before, after = walk.spec(source), walk.out(op)
    if before == after:
        walk.view(op, source)
    else:
        walk.emit(op, "Cast", [source])


@handles("aten.addcmul", "aten.addcmul_", "aten.addcdiv", "aten.addcdiv_")
def _add_product(walk: Lowering, op: TorchOp) -> None:
    """``self + a * b`` in one kernel; ``product``: its gradients are those of a product."""
    walk.emit(op, "Add", [op.args[name] for name in ("self", "tensor1", "tensor2")], product=1)


@handles("aten.copy_")
def _copy_into(walk: Lowering, op: TorchOp) -> None:
    """The source is read and written into storage that is there already."""
    walk.emit(op, "Cast", [op.args["src"]])


@handles("aten.dropout", "aten.dropout_", "aten.feature_dropout", "aten.native_dropout", "aten.alpha_dropout")
def _dropout(walk: Lowering, op: TorchOp) -> None:
    """Kept from modules exported for evaluation too: a training step runs it, inference makes it a view."""
    rate = op.args.get("p")
    if rate in (0, 0.0):
        walk.view(op, _source(op))
    else:
        walk.emit(op, "Dropout", [_source(op)], **({} if rate is None else {"ratio": rate}))


@handles("aten.cat", "aten.concat", "aten.stack", "aten.hstack", "aten.vstack")
def _cat(walk: Lowering, op: TorchOp) -> None:
    tensors = op.args.get("tensors", ())
    walk.emit(op, "Concat", list(tensors), slots=tuple(range(len(tensors))), axis=op.args.get("dim", 0))


@handles("aten.index", "aten.index_put", "aten.index_put_", "aten._unsafe_index", "aten._index_put_impl_")
def _index(walk: Lowering, op: TorchOp) -> None:
    indices = [value for value in op.args.get("indices", ()) if isinstance(value, Ref)]
    values = [op.args["values"]] if "values" in op.args else []
    walk.emit(op, "ScatterElements" if values else "GatherElements", [_source(op), *indices[:1], *values])


@handles("aten.scatter", "aten.scatter_add", "aten.scatter_", "aten.scatter_add_", "aten.index_add",
         "aten.scatter_reduce", "aten.masked_scatter", "aten.index_copy", "aten.slice_scatter",
         "aten.select_scatter")  # fmt: skip
def _scatter(walk: Lowering, op: TorchOp) -> None:
    """ONNX order: data, indices, updates."""
    data = _source(op)
    index = op.args.get("index")
    source = next((op.args[name] for name in ("src", "source", "value") if isinstance(op.args.get(name), Ref)), None)
    walk.emit(op, "ScatterElements", [data, index if isinstance(index, Ref) else source, source])


@handles("aten.broadcast_tensors", "aten.meshgrid")
def _each_a_view(walk: Lowering, op: TorchOp) -> None:
    """One result a tensor, each a view of its own."""
    for name, tensor in zip(op.outputs, op.args["tensors"], strict=False):
        walk.view(replace(op, outputs=(name,)), tensor)


@handles("<built-in function getitem>", "operator.getitem", "_operator.getitem")
def _getitem(walk: Lowering, op: TorchOp) -> None:
    walk.view(op, _source(op))
