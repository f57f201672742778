"""What counts as a parameter, wherever and however the file stores it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save

from onnx_frontend.onnx_models import MS, find, floats, ints, model, node, one, value, weight

DENSE = [node("MatMul", ["x", "w"], ["y"], "mm")]
X = {"x": [4, 8]}

# Every way a Constant can hold a tensor: (attributes, its shape, whether it is a weight of Mul)
CONSTANTS = {
    "value": ({"value": floats("w", [1.0] * 8)}, (8,), 8),
    "value_float": ({"value_float": 2.0}, (), 0),  # one factor, not a weight
    "value_floats": ({"value_floats": [1.0] * 8}, (8,), 8),
    "value_int": ({"value_int": 2}, (), 0),
    "value_ints": ({"value_ints": [1] * 8}, (8,), 0),  # integers are sizes or indices
}


@pytest.mark.parametrize(("attributes", "shape", "params"), CONSTANTS.values(), ids=CONSTANTS)
def test_constant_operators(attributes, shape, params) -> None:
    integer = next(iter(attributes)).startswith("value_int")
    inputs = {"x": ("INT64" if integer else "FLOAT", [4, 8])}
    steps = [node("Constant", [], ["w"], **attributes), node("Mul", ["x", "w"], ["y"], "mul")]
    found = find(model(steps, inputs, ["y"]))
    assert found.ops["mul"].inputs[1].shape == shape
    assert (found.params, found.model.folded) == (params, 1)


@pytest.mark.parametrize("attributes", [{"value_string": "a"}, {"value_strings": ["a", "b"]}], ids=str)
def test_constant_strings_are_read_over(attributes) -> None:
    steps = [node("Constant", [], ["s"], **attributes), node("Equal", ["t", "s"], ["y"])]
    found = find(model(steps, {"t": ("STRING", [2])}, ["y"]))
    assert (found.params, found.shape("y")) == (0, (2,))


def test_a_constant_sparse_weight() -> None:
    sparse = helper.make_sparse_tensor(floats("", [1.0, 2.0, 3.0]), ints("", [0, 5, 9]), [8, 3])
    steps = [node("Constant", [], ["w"], sparse_value=sparse), *DENSE]
    found = find(model(steps, X, ["y"]))
    assert (found.params, found.param_bytes) == (24, 3 * 4 + 3 * 8)


def test_a_sparse_initializer_counts_dense_elements_and_stored_bytes() -> None:
    sparse = helper.make_sparse_tensor(floats("w", [1.0, 2.0, 3.0]), ints("", [0, 5, 9]), [8, 3])
    found = find(model(DENSE, X, ["y"], [sparse]))
    assert (found.flops, found.params, found.param_bytes) == (2 * 4 * 3 * 8, 24, 3 * 4 + 3 * 8)


def test_a_weight_used_six_times_counts_once() -> None:
    names = [f"h{i}" for i in range(7)]
    steps = [node("MatMul", [a, "w"], [b]) for a, b in pairwise(names)]
    found = find(model(steps, {"h0": [4, 8]}, ["h6"], {"w": [8, 8]}))
    assert (found.flops, found.params) == (6 * 2 * 4 * 8 * 8, 64)


def test_copies_by_identity_are_the_same_weight() -> None:
    steps = [
        node("Identity", ["w"], ["w2"]),
        node("MatMul", ["x", "w"], ["h"]),
        node("MatMul", ["h", "w2"], ["y"]),
    ]
    assert find(model(steps, X, ["y"], {"w": [8, 8]})).params == 64


def test_a_tied_table() -> None:
    """One table looked up by Gather and, transposed, multiplied by at the end."""
    steps = [
        node("Gather", ["table", "ids"], ["x"]),
        node("Transpose", ["table"], ["t"], perm=[1, 0]),
        node("MatMul", ["x", "t"], ["y"]),
    ]
    found = find(model(steps, {"ids": ("INT64", [2, 5])}, ["y"], {"table": [100, 8]}))
    assert (found.flops, found.params) == (2 * (2 * 5) * 100 * 8, 800)


def test_batch_norm_statistics_are_buffers() -> None:
    found = find(one("BatchNormalization", {"x": [2, 8, 4, 4]}, {key: [8] for key in "sbmv"}))
    assert (found.params, found.buffers) == (16, 16)


def test_initializers_listed_as_inputs_are_not_asked_for() -> None:
    """IR 3 lists every initializer among the inputs."""
    source = model(DENSE, X, ["y"], {"w": [8, 3]}, opset=8, domains=(), ir_version=3)
    source.graph.input.append(value("w", [8, 3]))
    found = find(source)
    assert (found.params, list(found.model.inputs)) == (24, ["x"])


def test_weights_made_by_constant_of_shape() -> None:
    """Light test models store only the sizes of their weights."""
    steps = [node("ConstantOfShape", ["size"], ["w"], value=floats("", [0.1])), *DENSE]
    found = find(model(steps, X, ["y"], [ints("size", [8, 3])]))
    assert (found.params, found.param_bytes, found.model.folded) == (24, 96, 1)


# dtype: bytes of 8 x 3 stored weights
STORED_BYTES = {
    "DOUBLE": 24 * 8, "FLOAT": 24 * 4, "FLOAT16": 24 * 2, "BFLOAT16": 24 * 2, "FLOAT8E4M3FN": 24, "FLOAT8E5M2": 24,
    "INT8": 24, "UINT8": 24, "INT4": 12, "UINT4": 12, "FLOAT4E2M1": 12,
}  # fmt: skip


@pytest.mark.parametrize(("dtype", "stored_bytes"), STORED_BYTES.items(), ids=STORED_BYTES)
def test_low_precision_weights_cast_before_use(dtype, stored_bytes) -> None:
    steps = [node("Cast", ["q"], ["w"], to=TensorProto.FLOAT), *DENSE]
    found = find(model(steps, X, ["y"], [weight("q", [8, 3], dtype)], opset=23))
    assert (found.flops, found.params, found.param_bytes) == (2 * 4 * 3 * 8, 24, stored_bytes)


@pytest.mark.parametrize("dtype", ["INT8", "UINT8", "INT4", "FLOAT8E4M3FN"])
def test_dequantized_weights(dtype) -> None:
    """Scale and zero point of a weight are neither weights nor buffers."""
    steps = [node("DequantizeLinear", ["q", "s", "z"], ["w"], axis=1), *DENSE]
    stored = [weight("q", [8, 3], dtype), weight("s", [3]), weight("z", [3], dtype)]
    found = find(model(steps, X, ["y"], stored, opset=23))
    assert (found.params, found.flops) == (24, 2 * 4 * 3 * 8)


def test_quantize_dequantize_around_a_convolution() -> None:
    steps = [
        node("QuantizeLinear", ["x", "sx", "zx"], ["xq"]),
        node("DequantizeLinear", ["xq", "sx", "zx"], ["xd"]),
        node("DequantizeLinear", ["wq", "sw", "zw"], ["wd"], axis=0),
        node("DequantizeLinear", ["bq", "sb"], ["bd"], axis=0),
        node("Conv", ["xd", "wd", "bd"], ["c"]),
        node("QuantizeLinear", ["c", "sx", "zx"], ["cq"]),
        node("DequantizeLinear", ["cq", "sx", "zx"], ["y"]),
    ]
    stored = [
        floats("sx", 0.1), weight("zx", [], "UINT8"), weight("wq", [4, 3, 3, 3], "INT8"), weight("sw", [4]),
        weight("zw", [4], "INT8"), weight("bq", [4], "INT32"), weight("sb", [4]),
    ]  # fmt: skip
    found = find(model(steps, {"x": [1, 3, 8, 8]}, ["y"], stored))
    assert found.flops == 2 * (4 * 6 * 6) * (3 * 9)
    assert (found.params, found.param_bytes) == (4 * 27 + 4, 4 * 27 + 4 * 4)


def test_qlinear_operators() -> None:
    steps = [
        node("QLinearConv", ["x", "s", "z", "w", "s", "wz", "s", "z", "b"], ["c"]),
        node("Reshape", ["c", "flat"], ["f"]),
        node("QLinearMatMul", ["f", "s", "z", "m", "s", "wz", "s", "z"], ["y"]),
    ]
    stored = [
        floats("s", 0.1), weight("z", [], "UINT8"), weight("wz", [], "INT8"), weight("w", [4, 3, 3, 3], "INT8"),
        weight("b", [4], "INT32"), ints("flat", [1, -1]), weight("m", [144, 10], "INT8"),
    ]  # fmt: skip
    found = find(model(steps, {"x": ("UINT8", [1, 3, 8, 8])}, ["y"], stored))
    assert found.flops == 2 * (4 * 36) * 27 + 2 * 10 * 144
    assert found.params == 4 * 27 + 4 + 144 * 10


def test_dynamic_quantization() -> None:
    """As quantizers write it: quantise the activation on the fly, multiply integers, scale."""
    steps = [
        node("DynamicQuantizeLinear", ["x"], ["xq", "xs", "xz"]),
        node("MatMulInteger", ["xq", "w", "xz", "wz"], ["acc"]),
        node("Cast", ["acc"], ["f"], to=TensorProto.FLOAT),
        node("Mul", ["xs", "ws"], ["scale"]),
        node("Mul", ["f", "scale"], ["scaled"]),
        node("Add", ["scaled", "b"], ["y"]),
    ]
    stored = [weight("w", [8, 3], "INT8"), weight("wz", [], "INT8"), floats("ws", 0.02), weight("b", [3])]
    found = find(model(steps, X, ["y"], stored))
    assert (found.flops, found.params, found.param_bytes) == (2 * 4 * 3 * 8, 24 + 3, 24 + 12)


def test_integers_cast_and_scaled_are_the_weight() -> None:
    """A dequantisation written out: the scale is no parameter."""
    steps = [
        node("Cast", ["q"], ["f"], to=TensorProto.FLOAT),
        node("Mul", ["f", "scale"], ["w"]),
        *DENSE,
    ]
    found = find(model(steps, X, ["y"], [weight("q", [8, 3], "INT8"), weight("scale", [3])]))
    assert (found.params, found.param_bytes) == (24, 24)


def test_four_bit_weights_count_one_each() -> None:
    matmul = node("MatMulNBits", ["x", "w", "s", "z"], ["y"], domain=MS, K=64, N=24, bits=4, block_size=32)
    stored = [weight("w", [24, 2, 16], "UINT8"), weight("s", [48]), weight("z", [24], "UINT8")]
    found = find(model([matmul], {"x": [4, 64]}, ["y"], stored))
    assert (found.params, found.param_bytes) == (64 * 24, 64 * 24 // 2)


# -- weights in side files


def external(name: str, shape, file: str, offset: int | None = None, dtype: str = "FLOAT") -> TensorProto:
    tensor = weight(name, shape, dtype)
    tensor.data_location = TensorProto.EXTERNAL
    size = int(np.prod(shape)) * (8 if dtype == "INT64" else 4)
    entries = {"location": file, "length": str(size), **({} if offset is None else {"offset": str(offset)})}
    for key, text in entries.items():
        tensor.external_data.add(key=key, value=text)
    return tensor


def saved(folder, stored, steps=None, inputs=None):
    path = folder / "model.onnx"
    save(model(steps or DENSE, inputs or X, ["y"], stored), path)
    return path


def test_external_weights_are_not_needed(tmp_path) -> None:
    found = find(saved(tmp_path, [external("w", [8, 3], "gone.bin")]))
    assert (found.flops, found.params) == (2 * 4 * 3 * 8, 24)
    assert found.notes == "external data gone.bin is absent; sizes are those the graph states"


def test_external_weights_that_are_there(tmp_path) -> None:
    (tmp_path / "here.bin").write_bytes(bytes(96))
    found = find(saved(tmp_path, [external("w", [8, 3], "here.bin")]))
    assert (found.params, found.notes) == (24, "")


def test_external_sizes_are_read_from_several_files_at_their_offsets(tmp_path) -> None:
    """A Reshape target in the second file, behind 16 other bytes."""
    (tmp_path / "a.bin").write_bytes(bytes(96))
    (tmp_path / "b.bin").write_bytes(bytes(16) + np.array([2, 2, 8], np.int64).tobytes())
    steps = [node("Reshape", ["x", "target"], ["r"]), node("MatMul", ["r", "w"], ["y"])]
    stored = [external("w", [8, 3], "a.bin"), external("target", [3], "b.bin", 16, "INT64")]
    found = find(saved(tmp_path, stored, steps))
    assert found.shape("y") == (2, 2, 3)


def test_a_side_file_that_ends_too_early(tmp_path) -> None:
    from graphcost.errors import ModelFileError

    (tmp_path / "b.bin").write_bytes(bytes(20))
    steps = [node("Reshape", ["x", "target"], ["y"])]
    with pytest.raises(ModelFileError, match=r"tensor 'target': its data does not fill shape \[3\] of int64"):
        find(saved(tmp_path, [external("target", [3], "b.bin", 0, "INT64")], steps))


@pytest.mark.parametrize("escape", ["../secret.bin", "{folder}/secret.bin", "link.bin"])
def test_files_outside_the_model_s_folder_are_never_opened(tmp_path, escape) -> None:
    """Neither by a relative path, nor an absolute one, nor a link: reading it would make y [2, 2, 8]."""
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "secret.bin").write_bytes(np.array([2, 2, 8], np.int64).tobytes())
    (home / "link.bin").symlink_to(tmp_path / "secret.bin")
    location = escape.format(folder=tmp_path)
    path = saved(home, [external("target", [3], location, 0, "INT64")], [node("Reshape", ["x", "target"], ["y"])])
    found = find(path)
    assert found.shape("y") is None
    assert "lies outside the model's folder and was not opened" in found.notes


@pytest.mark.parametrize(
    "entries", [{"location": "a\0b"}, {"location": "x" * 5000}, {}, {"location": "."}], ids=range(4)
)
def test_locations_that_are_no_file_names(tmp_path, entries) -> None:
    tensor = weight("w", [8, 3])
    tensor.data_location = TensorProto.EXTERNAL
    for key, text in entries.items():
        tensor.external_data.add(key=key, value=text)
    assert find(saved(tmp_path, [tensor])).params == 24


@pytest.mark.parametrize("key", ["offset", "length"])
def test_offsets_that_are_no_numbers(tmp_path, key) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(96))
    tensor = external("w", [8, 3], "w.bin")
    tensor.external_data.add(key=key, value="twelve")
    assert find(saved(tmp_path, [tensor])).params == 24


def test_a_message_has_no_folder_for_side_files() -> None:
    found = find(model(DENSE, X, ["y"], [external("w", [8, 3], "w.bin")]))
    assert (found.params, "w.bin is absent" in found.notes) == (24, True)


def test_large_files_are_read_without_their_weights(tmp_path) -> None:
    """Two MiB of weights inside the file: sizes come out the same, with and without the payload."""
    inside = numpy_helper.from_array(np.zeros((512, 1024), np.float32), "w")
    path = saved(tmp_path, [inside], inputs={"x": [4, 512]})
    assert path.stat().st_size > 2 * 1024 * 1024
    found = find(path)
    assert (found.flops, found.params) == (2 * 4 * 1024 * 512, 512 * 1024)
