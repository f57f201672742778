"""Files: signatures, sizes, what is missing, what is broken."""

from __future__ import annotations

import json
import shutil
import zipfile

import pytest

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")
h5py = pytest.importorskip("h5py")

from tf_models import RAMP, frozen, load, saved_model, total, traced  # noqa: E402

from graphcost.errors import MissingSizeError, ModelFileError, UnknownNameError, UsageError  # noqa: E402
from graphcost.frontends.tensorflow import is_saved_model, open_sizes_tensorflow  # noqa: E402
from graphcost.ir import BatchSource  # noqa: E402


def test_saved_model_without_its_variables(tmp_path):
    folder = saved_model(tmp_path / "m", ["serving_default"])
    found = total(folder)
    assert (found.macs, found.params, found.param_bytes) == (2 * 4 * 3, 12, 48)
    assert is_saved_model(folder) and not is_saved_model(tmp_path)


def test_saved_model_of_this_tensorflow(tmp_path):
    class Layer(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(RAMP, name="w")
            self.fixed = tf.Variable(RAMP, trainable=False, name="fixed")

        @tf.function(input_signature=[tf.TensorSpec((None, 4), name="x")])
        def __call__(self, x):
            return tf.matmul(tf.matmul(x, self.w), self.fixed)

    tf.saved_model.save(Layer(), str(tmp_path / "m"))
    shutil.rmtree(tmp_path / "m" / "variables")
    model = load(tmp_path / "m")
    assert [(param.numel, param.trainable) for node in model.nodes for _, param in node.params] == [
        (16, True), (16, False)
    ]  # fmt: skip
    assert list(model.inputs) == ["x"]


def test_training_operators_are_not_counted(tmp_path):
    assert [node.op_type for node in load(saved_model(tmp_path / "m", ["serving_default"])).nodes] == ["MatMul"]


def test_signatures(tmp_path):
    with pytest.raises(ModelFileError, match="no signature"):
        load(saved_model(tmp_path / "none", []))
    several = saved_model(tmp_path / "several", ["encode", "decode"])
    with pytest.raises(UsageError, match=r"several signatures \(decode, encode\); say which with --signature"):
        load(several)
    assert total(several, signature="encode").macs == 24
    with pytest.raises(UnknownNameError, match="did you mean 'encode'"):
        load(several, signature="encod")
    default = saved_model(tmp_path / "default", ["other", "serving_default"])
    assert any("serving_default" in note for note in load(default).notes)


def test_signature_of_a_file_that_has_none(tmp_path):
    path = frozen(tmp_path / "g.pb", lambda x: tf.matmul(x, tf.constant(RAMP)))
    with pytest.raises(UsageError, match="signature"):
        load(path, signature="encode")


# -- sizes


def test_batch_is_assumed_given_or_contradicted(tmp_path):
    path = frozen(tmp_path / "g.pb", lambda x: tf.matmul(x, tf.constant(RAMP)))
    assert open_sizes_tensorflow(path) == ("batch",)
    assumed = load(path, None)
    assert (assumed.batch, assumed.batch_source) == (32, BatchSource.ASSUMED)
    given = load(path, None, dims={"batch": 5})
    assert (given.batch, given.batch_source, given.inputs["x"].shape) == (5, BatchSource.OPTION, (5, 4))
    fixed = traced(lambda x: tf.matmul(x, tf.constant(RAMP)), tf.TensorSpec((3, 4), name="x"))
    assert load(fixed, None).batch_source is BatchSource.FILE


def test_other_open_sizes_are_asked_for():
    concrete = traced(lambda x: tf.reduce_sum(x), tf.TensorSpec((None, None, 4), name="x"))
    with pytest.raises(MissingSizeError, match=r"--input-shape x=N,N,4"):
        load(concrete)
    assert load(concrete, input_shapes={"x": (2, 7, 4)}).inputs["x"].shape == (2, 7, 4)


def test_unknown_rank_is_asked_for(tmp_path):
    def build(x):
        free = tf.compat.v1.placeholder(tf.float32, name="free")
        return tf.matmul(x, tf.constant(RAMP)) * free

    path = frozen(tmp_path / "g.pb", build)
    with pytest.raises(MissingSizeError, match=r"'free' \(rank not stated\); give --input-shape free=..., or, if it"):
        load(path)
    assert load(path, input_shapes={"free": (2, 4)}).inputs["free"].shape == (2, 4)
    assert load(path, input_values={"free": (0.5,)}).inputs["free"].shape == ()


# -- broken files


@pytest.mark.parametrize("suffix", [".pb", ".keras", ".h5"])
@pytest.mark.parametrize("content", [b"", b"\x00\x01garbage", b"<html>not found</html>", b"version https://git-lfs"])
def test_files_of_something_else(tmp_path, suffix, content):
    path = tmp_path / f"bad{suffix}"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=str(path)):
        load(path)


def test_missing_file_and_folder_of_something_else(tmp_path):
    with pytest.raises(ModelFileError, match="no such file"):
        load(tmp_path / "none.pb")
    with pytest.raises(ModelFileError, match=r"holds no saved_model\.pb"):
        load(tmp_path)


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.95])
def test_truncated_files(tmp_path, kept):
    whole = frozen(tmp_path / "g.pb", lambda x: tf.matmul(x, tf.constant(RAMP))).read_bytes()
    cut = tmp_path / "cut.pb"
    cut.write_bytes(whole[: int(len(whole) * kept)])
    with pytest.raises(ModelFileError):
        load(cut)
    folder = saved_model(tmp_path / "m", ["serving_default"])
    data = (folder / "saved_model.pb").read_bytes()
    (folder / "saved_model.pb").write_bytes(data[: int(len(data) * kept)])
    with pytest.raises(ModelFileError):
        load(folder)


def test_saved_model_file_where_a_graph_is_expected(tmp_path):
    folder = saved_model(tmp_path / "m", ["serving_default"])
    assert total(folder / "saved_model.pb").macs == 24  # the folder is meant
    (folder / "saved_model.pb").rename(tmp_path / "renamed.pb")
    with pytest.raises(ModelFileError, match="GraphDef"):
        load(tmp_path / "renamed.pb")


def test_missing_function_and_reference(tmp_path):
    def call_nothing(meta):
        node = meta.graph_def.node.add(name="call", op="PartitionedCall", input=["x"])
        node.attr["f"].func.name = "gone"
        node.attr["Tin"].list.type.append(1)
        meta.signature_def["serving_default"].outputs["out"].name = "call:0"

    with pytest.raises(ModelFileError, match="no function 'gone'"):
        load(saved_model(tmp_path / "a", ["serving_default"], call_nothing))

    def starve(meta):
        meta.graph_def.node.add(name="alone", op="Relu").attr["T"].type = 1

    with pytest.raises(ModelFileError, match=r"alone \(Relu\): the operator takes 1 inputs, 0 are given"):
        load(saved_model(tmp_path / "d", ["serving_default"], starve))

    def read_nothing(meta):
        meta.signature_def["serving_default"].outputs["out"].name = "gone:0"

    with pytest.raises(ModelFileError, match="refers to 'gone'"):
        load(saved_model(tmp_path / "b", ["serving_default"], read_nothing))

    def circle(meta):
        for name, other in (("p", "q"), ("q", "p")):
            node = meta.graph_def.node.add(name=name, op="Relu", input=[other])
            node.attr["T"].type = 1
        meta.signature_def["serving_default"].outputs["out"].name = "p:0"

    with pytest.raises(ModelFileError, match="no circles"):
        load(saved_model(tmp_path / "c", ["serving_default"], circle))


def test_function_that_calls_itself(tmp_path):
    def recurse(meta):
        function = meta.graph_def.library.function.add()
        function.signature.name = "again"
        function.signature.input_arg.add(name="a", type=1)
        function.signature.output_arg.add(name="b", type=1)
        node = function.node_def.add(name="call", op="PartitionedCall", input=["a"])
        node.attr["f"].func.name = "again"
        node.attr["Tin"].list.type.append(1)
        function.ret["b"] = "call:output:0"
        outer = meta.graph_def.node.add(name="call", op="PartitionedCall", input=["x"])
        outer.attr["f"].func.name = "again"
        outer.attr["Tin"].list.type.append(1)
        meta.signature_def["serving_default"].outputs["out"].name = "call:0"

    with pytest.raises(ModelFileError, match="nest deeper"):
        load(saved_model(tmp_path / "m", ["serving_default"], recurse))


def test_operator_that_nobody_knows_is_reported(tmp_path):
    def custom(meta):
        node = meta.graph_def.node.add(name="mine", op="MyCompanyOp", input=["y"])
        node.attr["T"].type = 1
        meta.signature_def["serving_default"].outputs["out"].name = "mine:0"

    found = total(saved_model(tmp_path / "m", ["serving_default"], custom))
    assert found.macs == 24
    assert [(entry.op_type, entry.count) for entry in found.coverage.unknown] == [("tf.MyCompanyOp", 1)]


# -- Keras files


def keras_file(path, *layers, edit=lambda text: text):
    """A ``.keras`` archive with a configuration and no weights."""
    model = keras.Sequential([keras.Input((8,)), *layers])
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", edit(json.dumps(keras.saving.serialize_keras_object(model))))
    return path


def test_keras_archive_needs_no_weights(tmp_path):
    found = total(keras_file(tmp_path / "m.keras", keras.layers.Dense(3)))
    assert (found.macs, found.params) == (2 * 8 * 3, 27)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_lambda_layers_are_named_and_never_run(tmp_path):
    path = keras_file(tmp_path / "m.keras", keras.layers.Lambda(lambda x: x, name="secret", output_shape=(8,)))
    with pytest.raises(ModelFileError, match=r"layer 'secret' \(Lambda\) holds code, which is never run"):
        load(path)


def test_unknown_layer_classes_are_named(tmp_path):
    layer = '"module": "keras.layers", "class_name": "Dense"'
    path = keras_file(tmp_path / "m.keras", keras.layers.Dense(3, name="mine"),
                      edit=lambda text: text.replace(layer, '"module": "mycode", "class_name": "Mine"'))  # fmt: skip
    with pytest.raises(ModelFileError, match="layer 'mine': Keras knows no class 'Mine'"):
        load(path)


def old_h5(path, layers, class_name="Sequential"):
    """A file as Keras 2 wrote it: names of classes without modules."""
    with h5py.File(path, "w") as file:
        file.attrs["keras_version"] = "2.4.0"
        file.attrs["model_config"] = json.dumps({"class_name": class_name, "config": {"name": "m", "layers": layers}})
    return path


def old(kind, **config):
    return {"class_name": kind, "config": config}


INPUT = {"batch_input_shape": [None, 6, 6, 4], "dtype": "float32", "sparse": False, "ragged": False, "name": "x"}


def test_old_arguments_that_change_nothing_are_dropped(tmp_path):
    layers = [
        old("InputLayer", **INPUT),
        old("DepthwiseConv2D", name="dw", kernel_size=[3, 3], groups=1),
        old("BatchNormalization", name="bn", axis=[3], renorm=False, fused=None),
        old("Flatten", name="flat"),
        old("Dense", name="d", units=2, dtype=old("Policy", name="float32")),
    ]
    found = total(old_h5(tmp_path / "m.h5", layers))
    assert found.macs == 2 * (16 * 4 * 9 + 64 * 2)
    assert (found.params, found.buffers) == (4 * 9 + 4 + 8 + 64 * 2 + 2, 8)


def test_sequential_that_states_its_shape_in_the_first_layer(tmp_path):
    layers = [old("Dense", name="d", units=2, batch_input_shape=[None, 5])]
    assert total(old_h5(tmp_path / "m.h5", layers)).macs == 2 * 5 * 2


def test_old_arguments_that_change_something_are_refused(tmp_path):
    layers = [old("InputLayer", **INPUT | {"batch_input_shape": [None, 5, 4]}),
              old("LSTM", name="rnn", units=2, time_major=True)]  # fmt: skip
    with pytest.raises(ModelFileError, match=r"layer 'rnn' \(LSTM\) uses time_major=True"):
        load(old_h5(tmp_path / "m.h5", layers))


def test_weights_alone_are_no_model(tmp_path):
    with h5py.File(tmp_path / "w.h5", "w") as file:
        file["kernel"] = RAMP
    with pytest.raises(ModelFileError, match="weights without a model"):
        load(tmp_path / "w.h5")


# -- Python objects


def test_function_without_signature_and_other_objects():
    with pytest.raises(UsageError, match="no input signature"):
        load(tf.function(lambda x: x))
    with pytest.raises(UsageError, match="not a Keras model"):
        load(tf.Variable(RAMP))
    with pytest.raises(UsageError, match="no defined inputs"):
        load(keras.Sequential([keras.layers.Dense(3)]))
