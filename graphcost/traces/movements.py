"""Bytes that recorded operators move, from the shapes and types of their arguments.

Every argument is read once and every result written once; a trace records no results, so a result's size must follow
from the arguments. Values broadcast with stride 0 count once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import Any

from graphcost.traces.reading import Event

_WIDTHS: Mapping[str, int] = MappingProxyType(
    {
        "float": 4, "double": 8, "c10::Half": 2, "c10::BFloat16": 2, "long int": 8, "long": 8, "long long": 8,
        "int": 4, "short int": 2, "short": 2, "signed char": 1, "unsigned char": 1, "bool": 1,
        "c10::complex<float>": 8, "c10::complex<double>": 16, "c10::Float8_e4m3fn": 1, "c10::Float8_e5m2": 1,
    }
)  # fmt: skip
"""Bytes of a value by the profiler's name of its type."""

LIST_WIDTH = 4
"""assumed: values of tensors in lists are fp32; the trace names no type for them."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """An argument: its shape, the values stored of it, bytes a value."""

    shape: tuple[int, ...]
    stored: int
    width: int

    @property
    def numel(self) -> int:
        """Values of the shape, broadcast ones too."""
        return prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """What is stored, and read."""
        return self.stored * self.width


def width_of(kind: str) -> int | None:
    """Bytes of a value of the profiler's type ``kind``; None for what is no tensor's."""
    return _WIDTHS.get(kind)


def arguments(event: Event) -> list[Tensor | list[Tensor] | None]:
    """An entry an argument: a tensor, a list of them, None for anything else."""
    dims = event.dims() or []
    types, strides = event.texts("Input type"), event.args.get("Input Strides")
    steps = strides if isinstance(strides, list) and len(strides) == len(dims) else [None] * len(dims)
    found: list[Tensor | list[Tensor] | None] = []
    for shape, kind, step in zip(dims, types, steps, strict=False):
        width = width_of(kind)
        if kind == "TensorList" or (shape and isinstance(shape[0], list)):
            found.append([_tensor(each, None, LIST_WIDTH) for each in shape])
        else:
            found.append(None if width is None else _tensor(shape, step, width))
    return found


def _tensor(shape: Sequence[int], strides: Any, width: int) -> Tensor:
    known = strides if isinstance(strides, list) and len(strides) == len(shape) else [1] * len(shape)
    stored = prod(side for side, step in zip(shape, known, strict=True) if step != 0)
    return Tensor(tuple(shape), stored, width)


def _flat(given: Sequence[Tensor | list[Tensor] | None]) -> Iterator[Tensor]:
    for each in given:
        if isinstance(each, list):
            yield from each
        elif each is not None:
            yield each


Rule = Callable[[Sequence[Any], Sequence[str]], int]
"""(arguments, concrete arguments) -> bytes."""


def _read(given: Sequence[Any]) -> int:
    return sum(tensor.size_bytes for tensor in _flat(given))


def _pointwise(given: Sequence[Any], _: Sequence[str]) -> int:
    """Reads all, writes as much as the arguments span together, in the widest type."""
    tensors = list(_flat(given))
    if not tensors:
        return 0
    return _read(given) + _spanned(tensors) * max(tensor.width for tensor in tensors)


def _spanned(tensors: Sequence[Tensor]) -> int:
    """Values of the broadcast shape; of the largest argument where shapes do not broadcast (norms)."""
    sides: list[int] = []
    for axis in range(max(len(tensor.shape) for tensor in tensors)):
        here = {t.shape[-1 - axis] for t in tensors if axis < len(t.shape)} - {1}
        if len(here) > 1:
            return max(tensor.numel for tensor in tensors)
        sides.append(here.pop() if here else 1)
    return prod(sides)


def _reading(given: Sequence[Any], _: Sequence[str]) -> int:
    """Reads all; the result is smaller, its size unrecorded, and left out."""
    return _read(given)


def _writing(given: Sequence[Any], _: Sequence[str]) -> int:
    """Writes its first argument, reads nothing."""
    return next((tensor.size_bytes for tensor in _flat(given)), 0)


def _copy(given: Sequence[Any], _: Sequence[str]) -> int:
    """Target, source."""
    target, source = list(_flat(given))[:2]
    return target.size_bytes + source.size_bytes


def _joining(given: Sequence[Any], _: Sequence[str]) -> int:
    """Reads a list of tensors, writes them one after another."""
    return 2 * _read(given)


def _rows(given: Sequence[Any], _: Sequence[str]) -> int:
    """Table and indices: rows read and written."""
    table, indices = list(_flat(given))[:2]
    row_bytes = table.width * prod(table.shape[1:])
    return 2 * indices.numel * row_bytes + indices.size_bytes


def _selected(given: Sequence[Any], texts: Sequence[str]) -> int:
    """Data, axis, indices: what they pick is read and written."""
    data, indices = list(_flat(given))[:2]
    axis_size = data.shape[int(texts[1])] if data.shape else 1
    picked = data.numel // max(1, axis_size) * indices.numel
    return 2 * picked * data.width + indices.size_bytes


def _rows_backward(given: Sequence[Any], texts: Sequence[str]) -> int:
    """Gradient, indices, rows of the table: a whole dense gradient is written."""
    gradient, indices = list(_flat(given))[:2]
    return gradient.size_bytes + indices.size_bytes + int(texts[2]) * gradient.shape[-1] * gradient.width


def _listed(reads: Sequence[int], writes: Sequence[int]) -> Rule:
    """Lists of tensors, told by their positions among the arguments."""

    def moved(given: Sequence[Any], _: Sequence[str]) -> int:
        def of(position: int) -> int:
            return _read([given[position]]) if position < len(given) else 0

        return sum(map(of, reads)) + sum(map(of, writes))

    return moved


_POINTWISE = (
    "add", "sub", "rsub", "mul", "div", "neg", "abs", "exp", "exp2", "expm1", "log", "log1p", "log2", "sqrt", "rsqrt",
    "pow", "square", "reciprocal", "sign", "sgn", "tanh", "sigmoid", "erf", "relu", "relu6", "clamp", "clamp_min",
    "clamp_max", "hardtanh", "hardsigmoid", "hardswish", "gelu", "silu", "mish", "elu", "leaky_relu", "softplus",
    "log_sigmoid_forward", "where", "masked_fill", "maximum", "minimum", "addcmul", "addcdiv", "lerp", "sin", "cos",
    "floor", "ceil", "round",
    "trunc", "remainder", "fmod", "atan2", "eq", "ne", "lt", "le", "gt", "ge", "logical_not",
    "logical_and", "logical_or", "logical_xor", "bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor", "isnan",
    "isinf", "cumsum", "cumprod", "tril", "triu", "roll", "flip", "glu", "_softmax", "_log_softmax",
    "_softmax_backward_data", "_log_softmax_backward_data", "threshold_backward", "gelu_backward", "silu_backward",
    "sigmoid_backward", "tanh_backward", "hardtanh_backward", "hardswish_backward", "hardsigmoid_backward",
    "elu_backward", "leaky_relu_backward", "softplus_backward", "mish_backward", "native_dropout",
    "native_dropout_backward", "_fused_dropout", "native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm",
    "_native_batch_norm_legit", "_batch_norm_with_update", "native_layer_norm", "native_group_norm",
    "_fused_rms_norm",
    "native_batch_norm_backward", "cudnn_batch_norm_backward", "batch_norm_backward", "miopen_batch_norm_backward",
    "native_layer_norm_backward", "native_group_norm_backward", "mse_loss_backward", "smooth_l1_loss_backward",
    "binary_cross_entropy", "binary_cross_entropy_backward", "_thnn_fused_lstm_cell", "_thnn_fused_gru_cell",
)  # fmt: skip
_READING = (
    "sum", "mean", "prod", "amax", "amin", "aminmax", "max", "min", "argmax", "argmin", "norm", "linalg_vector_norm",
    "std", "var", "var_mean", "all", "any", "count_nonzero", "topk", "logsumexp", "nll_loss_forward",
    "nll_loss2d_forward", "mse_loss", "smooth_l1_loss", "huber_loss", "max_pool2d_with_indices", "avg_pool2d",
    "max_pool3d_with_indices", "avg_pool3d", "_adaptive_avg_pool2d", "adaptive_max_pool2d", "equal",
    "_foreach_norm",
)  # fmt: skip
_WRITING = ("fill_", "zero_", "normal_", "uniform_", "random_", "bernoulli_", "exponential_")
_BACKWARD = (
    "max_pool2d_with_indices_backward", "avg_pool2d_backward", "max_pool3d_with_indices_backward",
    "avg_pool3d_backward", "_adaptive_avg_pool2d_backward", "nll_loss_backward", "nll_loss2d_backward",
)  # fmt: skip
_ADAM, _SGD = _listed((0, 1, 2, 3), (0, 2, 3)), _listed((0, 1, 2), (0, 2))

MOVEMENTS: Mapping[str, Rule] = MappingProxyType(
    {
        **{f"aten::{name}": _pointwise for name in _POINTWISE},
        **{f"aten::{name}_": _pointwise for name in _POINTWISE if not name.startswith("_")},
        **{f"aten::{name}": _reading for name in _READING},
        **{f"aten::{name}": _writing for name in _WRITING},
        # The image that a pooling or a loss read is an argument of its backward, unread, and as large as the result.
        **{f"aten::{name}": _reading for name in _BACKWARD},
        "aten::copy_": _copy,
        "aten::cat": _joining,
        "aten::embedding": _rows,
        "aten::index_select": _selected,
        "aten::embedding_dense_backward": _rows_backward,
        "aten::_fused_adam_": _ADAM,
        "aten::_fused_adamw_": _ADAM,
        "aten::_fused_sgd_": _SGD,
    }
)
"""Operator -> bytes. Normalisations count their input once, although a kernel may pass over it twice."""


def foreach_bytes(given: Sequence[Any], texts: Sequence[str]) -> int:
    """``_foreach_*``: all lists read, one as long as the first written."""
    return _read(given) + _read(given[:1])


FREE = frozenset(
    f"aten::{name}"
    for name in (
        "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "as_strided", "as_strided_", "view",
        "_unsafe_view", "reshape", "_reshape_alias", "view_as", "t", "transpose", "permute", "movedim", "expand",
        "expand_as", "broadcast_to", "slice", "select", "narrow", "split", "split_with_sizes", "chunk", "unbind",
        "unsqueeze", "squeeze", "squeeze_", "unsqueeze_", "detach", "detach_", "alias", "resolve_conj", "resolve_neg",
        "result_type", "item", "_local_scalar_dense", "is_nonzero", "lift_fresh", "resize_", "resize_as_", "set_",
        "unflatten", "flatten", "contiguous", "to", "_to_copy", "requires_grad_", "is_same_size", "sym_size", "size",
        "numel", "record_stream", "is_pinned", "_has_compatible_shallow_copy_type", "diagonal", "unfold", "T", "mT",
        "dropout", "can_cast", "promote_types", "_nested_tensor_size", "is_complex", "is_floating_point",
        "cudnn_is_acceptable",
    )
)  # fmt: skip
"""Views, allocations and questions: nothing moves."""
