"""The dtypes that operators run in under a precision, and the casts between them.

Under AMP torch casts the inputs of contractions to the half format and those of
operators that need range or accuracy to fp32; everything else runs in the widest of its
inputs. Weights are cast once a step (autocast caches them), activations for every reader.
Source: torch.amp, "Autocast Op Reference" (CUDA lists), torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from graphcost.ir import OpNode, ParamKind, TensorSpec
from graphcost.ops import OpClass, op_class_of
from graphcost.recipe import Precision

_HALF_CLASSES = frozenset({OpClass.MATMUL, OpClass.CONV, OpClass.DEPTHWISE, OpClass.ATTENTION, OpClass.RECURRENT})
_HALF_OPS = frozenset({"PRelu"})
_FP32_OPS = frozenset(
    {
        # The fp32 list, by ONNX's names: softmax and layer norm, powers and exponentials, sums, losses.
        "Softmax", "LogSoftmax", "LayerNormalization", "GroupNormalization", "SkipLayerNormalization",
        "EmbedLayerNormalization", "GroupNorm", "SkipGroupNorm", "RMSNormalization", "Pow", "Exp", "Log",
        "Reciprocal", "ReduceSum", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "CumSum", "CumProd",
        "Softplus", "Tan", "Sinh", "Cosh", "Acos", "Asin", "SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss",
    }
)  # fmt: skip
_FLOATS = ("float16", "bfloat16", "float32")
"""Formats that a precision overrides; double precision and eight-bit formats stay as the file has them."""


@dataclass(frozen=True, slots=True)
class TypedOp:
    """An operator with the specs it runs with. ``owner``: the graph operator it is, or that a cast is put in for."""

    owner: str
    node: OpNode


def under(
    operators: Iterable[tuple[str, OpNode]],
    precision: Precision,
    *,
    half_ops: frozenset[str] = frozenset(),
    half_weights: bool = False,
    full: frozenset[str] = frozenset(),
) -> Iterator[TypedOp]:
    """``operators`` as ``precision`` runs them, casts before their reader.

    fp32, tf32 and bf16 run everything in one format, whatever the file stores.
    ``half_ops``: what else AMP runs in the half format. ``half_weights``: what weights are stored in,
    so that none is cast on its way into an operator that runs in that format. ``full``: names of
    operators that stay in fp32 in spite of both lists.
    """
    if precision.is_amp:
        half = precision.half_dtype
        assert half is not None
        yield from _Autocast(half, half_ops, half_weights, full).run(operators)
        return
    one = precision.half_dtype or "float32"
    formats = _Formats()
    for node_id, node in operators:
        yield TypedOp(node_id, formats.node(node, dict.fromkeys(_FLOATS, one)))


class _Formats:
    """Specs in another dtype, the same object for the same question: rules are asked once for equal objects."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, str], tuple[TensorSpec, TensorSpec]] = {}

    def spec(self, spec: TensorSpec | None, dtype: str) -> TensorSpec | None:
        """``spec`` in ``dtype``."""
        if spec is None or spec.dtype == dtype:
            return spec
        key = (id(spec), dtype)
        if key not in self._made:
            self._made[key] = (spec, replace(spec, dtype=dtype))  # holding the first keeps its id its own
        return self._made[key][1]

    def node(self, node: OpNode, to: Mapping[str, str]) -> OpNode:
        """``node`` with every dtype in ``to`` replaced; itself where nothing changes."""
        inputs = tuple(s if s is None else self.spec(s, to.get(s.dtype, s.dtype)) for s in node.inputs)
        outputs = tuple(s if s is None else self.spec(s, to.get(s.dtype, s.dtype)) for s in node.outputs)
        if all(a is b for a, b in zip((*inputs, *outputs), (*node.inputs, *node.outputs), strict=True)):
            return node
        return replace(node, inputs=inputs, outputs=outputs)


class _Autocast:
    """One pass over a graph in execution order; ``dtype`` of every value that is not fp32."""

    def __init__(self, half: str, half_ops: frozenset[str], half_weights: bool, full: frozenset[str]) -> None:
        self._half = half
        self._full = full
        self._stored = half if half_weights else "float32"
        self._half_ops = _HALF_OPS | half_ops
        self._dtype: dict[str, str] = {}
        self._cast_params: set[str] = set()
        self._formats = _Formats()

    def run(self, operators: Iterable[tuple[str, OpNode]]) -> Iterator[TypedOp]:
        for node_id, node in operators:
            stored = {slot for slot, param in node.params if param.kind is ParamKind.WEIGHT}
            held = tuple(self._held(node, index, index in stored) for index in range(len(node.inputs)))
            wanted = self._wanted(node)
            inputs, names, params = list(node.inputs), list(node.input_names), node.params
            for index, spec in enumerate(node.inputs):
                if spec is None or spec.dtype not in _FLOATS:
                    continue
                dtype = wanted or held[index]
                inputs[index] = self._formats.spec(spec, dtype)
                if dtype != held[index] and spec.shape:
                    cast, name = self._cast(node_id, node, index, held[index], dtype)
                    if cast is not None:
                        yield cast
                    if index < len(names):
                        names[index] = name
                    params = tuple(entry for entry in params if entry[0] != index)  # the cast has it
            result = wanted or self._widest(node, held)
            outputs = tuple(
                self._formats.spec(s, self._cast_to(node, result)) if s is not None and s.dtype in _FLOATS else s
                for s in node.outputs
            )
            for name, out in zip(node.output_names, outputs, strict=False):
                if out is not None and out.dtype in _FLOATS:
                    self._dtype[name] = out.dtype
            typed = replace(node, inputs=tuple(inputs), outputs=outputs, input_names=tuple(names), params=params)
            yield TypedOp(node_id, typed)

    def _held(self, node: OpNode, index: int, stored: bool) -> str:
        """What an input is kept in: graph inputs in fp32, weights as they are stored."""
        if stored:
            return self._stored
        name = node.input_names[index] if index < len(node.input_names) else ""
        return self._dtype.get(name, "float32")

    def _wanted(self, node: OpNode) -> str | None:
        """The format of the list the operator is on; None: the widest of its inputs."""
        if node.name in self._full:
            return "float32"
        if (
            op_class_of(node) in _HALF_CLASSES
            or node.op_type in self._half_ops
            or node.attrs.get("autocast") == "half"
        ):
            return self._half
        return "float32" if node.op_type in _FP32_OPS else None

    def _widest(self, node: OpNode, held: tuple[str, ...]) -> str:
        """Type promotion: scalars do not count; a normalisation keeps its data's format."""
        if op_class_of(node) is OpClass.NORM:
            return held[0] if held else "float32"
        floats = [
            held[index] for index, spec in enumerate(node.inputs) if spec is not None and spec.is_float and spec.shape
        ]
        return self._half if floats and all(dtype == self._half for dtype in floats) else "float32"

    def _cast_to(self, node: OpNode, result: str) -> str:
        """A Cast in the graph says what it makes, unless it makes the fp32 that the file is in anyway."""
        out = node.outputs[0] if node.outputs else None
        return out.dtype if node.op_type == "Cast" and out is not None and out.dtype in _FLOATS else result

    def _cast(self, node_id: str, node: OpNode, index: int, held: str, dtype: str) -> tuple[TypedOp | None, str]:
        """The cast of one input and its result's name; None where a weight was cast before in this step."""
        spec = node.inputs[index]
        source = node.input_names[index] if index < len(node.input_names) else ""
        params = tuple(param for slot, param in node.params if slot == index)
        stored = "+".join(param.name for param in params)  # a stored tensor need not be a named value
        result = f"parameter {stored}:{dtype}" if params else f"{node_id}.{index}:{dtype}"
        if params:
            if result in self._cast_params:
                return None, result
            self._cast_params.add(result)
        made = OpNode(
            name=f"{source or stored} to {dtype}",
            op_type="Cast",
            inputs=(self._formats.spec(spec, held),),
            outputs=(self._formats.spec(spec, dtype),),
            input_names=(source,),
            output_names=(result,),
            params=tuple((0, param) for param in params),
            repeat=1 if params else node.repeat,
            module=node.module,
            origin=node.origin,
        )
        return TypedOp(node_id, made), result
