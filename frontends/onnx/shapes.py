"""Output shapes of one operator from the sizes and small values of its inputs.

Two libraries of the onnx project do the work, asked operator by operator so that
values computed on the way are at hand: onnx's own C++ inference (30 us a call, no
import beyond onnx itself), and where it has no answer (com.microsoft operators)
``onnx-shape-inference``, whose import costs 0.7 s and is paid only then. Equal
operators on equal inputs are asked once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import NodeProto, TypeProto, checker, defs, helper, numpy_helper, shape_inference

from graphcost.errors import ModelFileError, ShapeError
from graphcost.frontends.onnx.contrib import stand_in
from graphcost.frontends.onnx.dtypes import DTYPE_NAMES, DTYPE_NUMBERS
from graphcost.frontends.onnx.einsum import einsum_shape
from graphcost.frontends.onnx.evaluate import canonical
from graphcost.frontends.onnx.limits import check_limits
from graphcost.frontends.onnx.values import Value
from graphcost.ir import TensorSpec

# Operators whose first version onnx does not infer, though a later one has the same outputs.
_INFERRED_SINCE: Mapping[str, int] = {"LSTM": 7, "GRU": 7, "RNN": 7}

Inferred = tuple[TensorSpec | None, str | None]
"""(spec, dtype): spec None where the shape stays open; dtype None where not even that is known."""

# Inputs whose content decides an output's shape, by operator (ONNX standard, all versions).
VALUE_INPUTS: Mapping[str, tuple[int, ...]] = {
    "AffineGrid": (1,), "BlackmanWindow": (0,), "CenterCropPad": (1,), "Col2Im": (1, 2),
    "Compress": (1,), "ConstantOfShape": (0,), "DFT": (1, 2), "Expand": (1,), "HammingWindow": (0,),
    "HannWindow": (0,), "MaxUnpool": (2,), "MelWeightMatrix": (0, 1, 2, 3, 4), "OneHot": (1,),
    "Pad": (1, 3), "Range": (0, 1, 2), "Reshape": (1,), "Resize": (1, 2, 3), "STFT": (1, 3),
    "Slice": (1, 2, 3, 4), "Split": (1,), "SplitToSequence": (1,), "Squeeze": (1,), "Tile": (1,),
    "TopK": (1,), "Unsqueeze": (1,), "Upsample": (1,),
    "ReduceL1": (1,), "ReduceL2": (1,), "ReduceLogSum": (1,), "ReduceLogSumExp": (1,),
    "ReduceMax": (1,), "ReduceMean": (1,), "ReduceMin": (1,), "ReduceProd": (1,), "ReduceSum": (1,),
    "ReduceSumSquare": (1,), "GroupQueryAttention": (5, 6),
}  # fmt: skip


class ShapeInference:
    """Asks the libraries, remembers the answers. One per model."""

    def __init__(self, ir_version: int) -> None:
        self._ir_version = ir_version
        self._known: dict[tuple[Any, ...], tuple[Inferred, ...]] = {}

    def infer(
        self, node: NodeProto, domain: str, opsets: Mapping[str, int], inputs: Sequence[Value | None]
    ) -> tuple[Inferred, ...]:
        """One ``(spec, dtype)`` per output of ``node``.

        Raises ``ShapeError`` where onnx says that the inputs contradict the operator.
        """
        data = {
            index: inputs[index]
            for index in VALUE_INPUTS.get(node.op_type, ())
            if index < len(inputs) and inputs[index] is not None and inputs[index].data is not None  # type: ignore[union-attr]
        }
        key = (
            domain,
            node.op_type,
            opsets.get(domain, 1),
            b"".join(sorted(a.SerializeToString() for a in node.attribute)),
            tuple(_key_of(value) for value in inputs),
            tuple((i, v.data.tobytes()) for i, v in data.items() if v is not None and v.data is not None),
            tuple(bool(name) for name in node.output),
        )
        found = self._known.get(key)
        if found is None:
            if domain == "":
                check_limits(node, inputs)
            found = self._known[key] = self._ask(node, domain, opsets, inputs, data)
        return found

    def _ask(
        self,
        node: NodeProto,
        domain: str,
        opsets: Mapping[str, int],
        inputs: Sequence[Value | None],
        data: Mapping[int, Value | None],
    ) -> tuple[Inferred, ...]:
        made = canonical(node, [v is not None for v in inputs], [bool(name) for name in node.output])
        made.domain = domain
        if node.op_type == "Einsum" and domain == "":
            return _einsum(node, inputs)
        if node.op_type == "STFT" and not any(a.name == "onesided" for a in node.attribute):
            made.attribute.append(helper.make_attribute("onesided", 1))  # the default, which onnx's inference forgets
        like = stand_in(made, domain, inputs)
        if like is not None:
            other = like.node(made)
            answers = self._ask_libraries(other, like.domain, opsets, like.inputs(inputs), data, node)
            spec = answers[0][0]
            if spec is None:
                return answers
            first = like.first(spec, inputs)
            return ((first, first.dtype), *answers[1:])
        return self._ask_libraries(made, domain, opsets, inputs, data, node)

    def _ask_libraries(
        self,
        made: NodeProto,
        domain: str,
        opsets: Mapping[str, int],
        inputs: Sequence[Value | None],
        data: Mapping[int, Value | None],
        node: NodeProto,
    ) -> tuple[Inferred, ...]:
        answers: tuple[Inferred, ...] = ((None, None),) * len(node.output)
        if defs.has(made.op_type, domain):
            answers = _ask_onnx(made, domain, opsets, inputs, data, self._ir_version, node.name)
        if any(spec is None for (spec, _), name in zip(answers, node.output, strict=True) if name):
            fallback = _ask_symbolic(made, domain, opsets, inputs)
            answers = tuple(
                (spec or other_spec, dtype or other_dtype)
                for (spec, dtype), (other_spec, other_dtype) in zip(answers, fallback, strict=True)
            )
        return answers


def _einsum(node: NodeProto, inputs: Sequence[Value | None]) -> tuple[Inferred, ...]:
    specs = [value.spec for value in inputs if value is not None and value.spec is not None]
    if not specs or len(specs) < len(inputs):
        return ((None, None),) * len(node.output)
    equation = next((a.s.decode("utf-8", "replace") for a in node.attribute if a.name == "equation"), "")
    shape = einsum_shape(node.name or node.output[0], equation, [spec.shape for spec in specs])
    return ((TensorSpec(shape, specs[0].dtype), specs[0].dtype),) + ((None, None),) * (len(node.output) - 1)


def _key_of(value: Value | None) -> Any:
    if value is None:
        return None
    return value.spec if value.spec is not None else value.dtype


def _ask_onnx(
    made: NodeProto,
    domain: str,
    opsets: Mapping[str, int],
    inputs: Sequence[Value | None],
    data: Mapping[int, Value | None],
    ir_version: int,
    name: str,
) -> tuple[Inferred, ...]:
    unknown: tuple[Inferred, ...] = ((None, None),) * len(made.output)
    types: dict[str, TypeProto] = {}
    for index, value in enumerate(inputs):
        if value is not None:
            proto = _type_proto(value)
            if proto is None:
                return unknown
            types[f"i{index}"] = proto
    stated = opsets.get(domain, 1)
    contents = {
        f"i{index}": numpy_helper.from_array(np.asarray(value.data, order="C"), f"i{index}")
        for index, value in data.items()
        if value is not None and value.data is not None
    }
    imports = [helper.make_opsetid(d, v) for d, v in opsets.items()]

    def ask(version: int) -> Mapping[str, TypeProto]:
        schema = defs.get_schema(made.op_type, version, domain)
        answer: Mapping[str, TypeProto] = shape_inference.infer_node_outputs(
            schema, made, types, input_data=contents, opset_imports=imports, ir_version=ir_version
        )
        return answer

    try:
        outputs = ask(max(stated, _INFERRED_SINCE.get(made.op_type, 1)))
    except shape_inference.InferenceError as error:
        if any(value is not None and value.spec is None for value in inputs):
            return unknown
        shapes = [list(v.spec.shape) if v is not None and v.spec is not None else None for v in inputs]
        raise ShapeError(
            f"{name or made.op_type} ({made.op_type}): the input shapes {shapes} contradict the "
            f"operator: {_reason(error)}"
        ) from error
    except checker.ValidationError as error:  # exporters run ahead: Resize-11 without a roi is Resize-13
        try:
            outputs = ask(defs.onnx_opset_version())
        except Exception:  # what the newest opset says of it does not matter: the stated one refused it
            raise ModelFileError(
                f"{name or made.op_type} ({made.op_type}): no valid operator of opset {stated}: {_reason(error)}"
            ) from error
    except (defs.SchemaError, ValueError, RuntimeError, TypeError):
        return unknown
    answers = tuple(_inferred(outputs.get(name)) if name else (None, None) for name in made.output)
    if made.op_type == "Reshape":  # onnx's inference does not compare when no size is left to it
        _check_same_numel(inputs[0], answers[0][0], name)
    return answers


def _check_same_numel(data: Value | None, result: TensorSpec | None, name: str) -> None:
    if data is not None and data.spec is not None and result is not None and data.spec.numel != result.numel:
        raise ShapeError(
            f"{name or 'Reshape'} (Reshape): {data.spec.numel} elements of {list(data.spec.shape)} do not fill "
            f"{list(result.shape)}"
        )


def _ask_symbolic(
    made: NodeProto, domain: str, opsets: Mapping[str, int], inputs: Sequence[Value | None]
) -> tuple[Inferred, ...]:
    """The second library, on its own light IR; open sizes it would name stay None here."""
    import onnx_ir as ir
    from onnx_shape_inference import ShapeInferenceContext, registry

    unknown: tuple[Inferred, ...] = ((None, None),) * len(made.output)
    registry.collect()
    infer = registry.get(domain, made.op_type, version=opsets.get(domain, 1))
    if infer is None:
        return unknown
    values: list[ir.Value | None] = []
    for index, value in enumerate(inputs):
        if value is None:
            values.append(None)
            continue
        made_value = ir.Value(name=f"i{index}")
        if value.dtype is not None:
            made_value.dtype = ir.DataType(DTYPE_NUMBERS[value.dtype])
        if value.spec is not None:
            made_value.shape = ir.Shape(value.spec.shape)
        if value.data is not None:
            made_value.const_value = ir.tensor(value.data)
        values.append(made_value)
    try:
        attributes = [ir.serde.deserialize_attribute(attribute) for attribute in made.attribute]
        node = ir.Node(domain, made.op_type, values, attributes, num_outputs=len(made.output))
        context = ShapeInferenceContext(dict(opsets), policy="override")
        infer(context, node)
    except Exception:  # a malformed contrib operator: its shape stays unknown and is reported
        return unknown
    return tuple(_from_ir(output) for output in node.outputs)


def _from_ir(output: Any) -> Inferred:
    dtype = DTYPE_NAMES.get(int(output.dtype)) if output.dtype is not None else None
    if output.shape is None or dtype is None or not all(isinstance(d, int) and d >= 0 for d in output.shape):
        return None, dtype
    return TensorSpec(tuple(output.shape), dtype), dtype


def _type_proto(value: Value) -> TypeProto | None:
    if value.items is not None:
        first = _type_proto(value.items[0]) if value.items else None
        return helper.make_sequence_type_proto(first) if first is not None else None
    if value.dtype is None:
        return None
    proto = TypeProto()
    proto.tensor_type.elem_type = DTYPE_NUMBERS[value.dtype]
    if value.spec is not None:
        proto.tensor_type.shape.SetInParent()  # a scalar's empty shape is a shape, an absent one is unknown
        for size in value.spec.shape:
            proto.tensor_type.shape.dim.add().dim_value = size
    return proto


def _inferred(proto: TypeProto | None) -> Inferred:
    if proto is None or not proto.HasField("tensor_type"):
        return None, None
    tensor = proto.tensor_type
    dtype = DTYPE_NAMES.get(tensor.elem_type)
    if dtype is None or not tensor.HasField("shape"):
        return None, dtype
    dims = tensor.shape.dim
    if not all(dim.HasField("dim_value") and dim.dim_value >= 0 for dim in dims):
        return None, dtype
    return TensorSpec(tuple(dim.dim_value for dim in dims), dtype), dtype


def _reason(error: Exception) -> str:
    """onnx's message without its C++ location prefix."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else "no reason given"
    marker = "[ShapeInferenceError]"
    return text.split(marker)[-1].strip() if marker in text else text
