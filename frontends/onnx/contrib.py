"""com.microsoft operators whose outputs are shaped like those of another operator that has inference.

Source: ContribOperators.md of ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from onnx import NodeProto, defs, helper

from graphcost.frontends.onnx.values import Value
from graphcost.ir import TensorSpec

Shape = tuple[int, ...]
Reshape = Callable[[Shape], Shape]


@dataclass(frozen=True, slots=True)
class StandIn:
    """``op_type`` of ``domain`` on the inputs ``take`` has outputs of the same shapes.

    ``before`` changes the shapes of some inputs, ``after`` those of the first output.
    ``dtype`` is the first output's element type, or the index of the input that has it.
    """

    op_type: str
    take: tuple[int, ...]
    domain: str = ""
    before: Mapping[int, Reshape] | None = None
    after: Reshape | None = None
    dtype: str | int | None = None
    as_floats: bool = False
    renamed: tuple[str, str] | None = None

    def node(self, made: NodeProto) -> NodeProto:
        """The other operator, with ``made``'s attributes."""
        names = [made.input[i] if i < len(made.input) else "" for i in self.take]
        other = helper.make_node(self.op_type, names, made.output, domain=self.domain)
        known = defs.get_schema(self.op_type).attributes if not self.domain else None
        for attribute in made.attribute:
            name = self.renamed[1] if self.renamed and attribute.name == self.renamed[0] else attribute.name
            if known is not None and name not in known:
                continue
            kept = other.attribute.add()
            kept.CopyFrom(attribute)
            kept.name = name
        return other

    def inputs(self, values: Sequence[Value | None]) -> list[Value | None]:
        """``values`` as the other operator would see them, at their old places."""
        changed = list(values)
        for index in self.take if self.as_floats else ():  # operands of several types, which the other refuses
            value = changed[index] if index < len(changed) else None
            if value is not None and value.spec is not None:
                changed[index] = replace(value, spec=TensorSpec(value.spec.shape), dtype="float32")
        for index, reshape in (self.before or {}).items():
            value = changed[index] if index < len(changed) else None
            if value is not None and value.spec is not None:
                changed[index] = replace(value, spec=TensorSpec(reshape(value.spec.shape), value.spec.dtype))
        return changed

    def first(self, spec: TensorSpec, values: Sequence[Value | None]) -> TensorSpec:
        """The first output, from the other operator's."""
        shape = spec.shape if self.after is None else self.after(spec.shape)
        dtype: str | None = self.dtype if isinstance(self.dtype, str) else spec.dtype
        if isinstance(self.dtype, int):
            source = values[self.dtype] if self.dtype < len(values) else None
            dtype = source.dtype if source is not None else None
        return TensorSpec(shape, dtype or spec.dtype)


def stand_in(made: NodeProto, domain: str, values: Sequence[Value | None]) -> StandIn | None:
    """What to ask in place of ``made``, or None: it has inference of its own, or nothing is like it."""
    if domain != "com.microsoft":
        return None
    if made.op_type == "GatherBlockQuantized":
        return _gather_quantized(made, values)
    if made.op_type == "QuantizeLinear" and (len(values) < 3 or values[2] is None):
        return replace(_LIKE[made.op_type], dtype="uint8")
    return _LIKE.get(made.op_type)


def _channels_first(shape: Shape) -> Shape:
    return (shape[0], shape[-1], *shape[1:-1]) if len(shape) > 2 else shape


def _channels_last(shape: Shape) -> Shape:
    return (shape[0], *shape[2:], shape[1]) if len(shape) > 2 else shape


def _swapped(shape: Shape) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2]) if len(shape) > 1 else shape


def _gather_quantized(made: NodeProto, values: Sequence[Value | None]) -> StandIn:
    """A Gather whose packed rows (``bits`` each, in bytes) come out unpacked."""
    like = StandIn("Gather", (0, 1), dtype=2, renamed=("gather_axis", "axis"))
    bits = next((a.i for a in made.attribute if a.name == "bits"), 4)
    if values and values[0] is not None and values[0].dtype == "uint8" and bits in (1, 2, 4):
        return replace(like, before={0: lambda shape: (*shape[:-1], shape[-1] * 8 // bits) if shape else shape})
    return like


_NHWC = StandIn("Conv", (0, 1, 2), before={0: _channels_first}, after=_channels_last)
_SAME = StandIn("Identity", (0,))
_PRODUCT = StandIn("MatMul", (0, 1), dtype=0, as_floats=True)
_MS = "com.microsoft"

_LIKE: Mapping[str, StandIn] = {
    "FusedGemm": StandIn("Gemm", (0, 1, 2)),
    "FusedConv": StandIn("Conv", (0, 1, 2)),
    "NhwcConv": _NHWC,
    "NhwcFusedConv": _NHWC,
    "FusedMatMulActivation": StandIn("FusedMatMul", (0, 1), _MS),
    "MatMulBnb4": StandIn("MatMulNBits", (0, 1, 2), _MS),
    "MatMulInteger16": replace(_PRODUCT, dtype="int32"),
    "MatMulIntegerToFloat": replace(_PRODUCT, dtype=2),
    "DynamicQuantizeMatMul": _PRODUCT,
    "DynamicQuantizeLSTM": StandIn("LSTM", (0, 1, 2), before={1: _swapped, 2: _swapped}, as_floats=True),
    "DecoderMaskedSelfAttention": StandIn("Attention", (0, 1, 2, 3, 4), _MS),
    "MulInteger": StandIn("Mul", (0, 2), dtype="int32", as_floats=True),
    "QuantizeLinear": replace(_SAME, dtype=2),
    "DequantizeLinear": replace(_SAME, dtype=1),
    "BiasSoftmax": _SAME,
    "BiasDropout": StandIn("Dropout", (0,)),
    "BitmaskDropout": _SAME,
    "BitmaskBiasDropout": _SAME,
    "TorchEmbedding": StandIn("Gather", (0, 1)),
    "GatherND": StandIn("GatherND", (0, 1)),
    "GridSample": StandIn("GridSample", (0, 1)),
    "Pad": StandIn("Pad", (0, 1, 2)),
    "Range": StandIn("Range", (0, 1, 2)),
    "Trilu": _SAME,
}
