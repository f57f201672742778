"""What a newcomer can hand over: one line that says what was wrong and what would be right, one exit code."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")
h5py = pytest.importorskip("h5py")

from tf_models import RAMP, frozen, saved_model  # noqa: E402

from graphcost.cli.main import main  # noqa: E402

L = keras.layers
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")  # Keras' own


class Odd(L.Layer):
    def call(self, x):
        return x


def network(*more):
    return keras.Sequential([keras.Input((8,)), L.Dense(3, name="fc"), *more])


def kept(path, save, *more):
    """A Keras model saved as ``path``."""
    getattr(network(*more), save)(path)
    return path


def cut(path, share=0.6):
    """The first part of a file."""
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    return path


def product(path):
    return frozen(path, lambda x: tf.matmul(x, tf.constant(RAMP)))


def cut_folder(folder):
    network().export(folder, verbose=False)
    cut(folder / "saved_model.pb")
    return folder


def unknown_sizes(path):
    graph = tf.Graph()
    with graph.as_default():
        tf.nn.relu(tf.compat.v1.placeholder(tf.float32, (None, None, 4), name="words"))
    path.write_bytes(graph.as_graph_def().SerializeToString())
    return path


def other_folder(folder):
    folder.mkdir()
    (folder / "notes.txt").write_text("nothing here")
    return folder


def garbage(path):
    path.write_bytes(b"\x00\x01garbage")
    return path


def secret():
    return L.Lambda(lambda x: x, name="secret", output_shape=(3,))


# name: (path made in a folder, exit code, what the line says)
BAD = {
    "no-signature": (lambda at: saved_model(at / "m", []), 3, "no signature, so it says nowhere what is fed"),
    "signatures": (lambda at: saved_model(at / "m", ["encode", "decode"]), 2,
                   "several signatures (decode, encode); say which with --signature NAME"),
    "lambda": (lambda at: kept(at / "m.keras", "save", secret()), 3, "layer 'secret' (Lambda) holds code"),
    "lambda-h5": (lambda at: kept(at / "m.h5", "save", secret()), 3, "layer 'secret' (Lambda) holds code"),
    "unknown-layer": (lambda at: kept(at / "m.keras", "save", Odd(name="mine")), 3,
                      "layer 'mine': Keras knows no class 'Odd'"),
    "unknown-layer-h5": (lambda at: kept(at / "m.h5", "save", Odd(name="mine")), 3,
                         "layer 'mine': Keras knows no class 'Odd'"),
    "weights-alone": (lambda at: kept(at / "m.weights.h5", "save_weights"), 3, "weights without a model"),
    "cut-keras": (lambda at: cut(kept(at / "m.keras", "save")), 3, "not a Keras archive, or not all of it"),
    "cut-h5": (lambda at: cut(kept(at / "m.h5", "save")), 3, "not an HDF5 file, or not all of it"),
    "cut-graph": (lambda at: cut(product(at / "m.pb")), 3, "not a TensorFlow graph (GraphDef), or not all of it"),
    "cut-saved-model": (lambda at: cut_folder(at / "m"), 3, "not a SavedModel, or not all of it"),
    "cut-meta": (lambda at: garbage(at / "m.meta"), 3, "(MetaGraphDef), or not all of it"),
    "cut-text": (lambda at: garbage(at / "m.pbtxt"), 3, "not a TensorFlow graph (GraphDef), or not all of it"),
    "empty": (lambda at: cut(product(at / "m.pb"), 0), 3, "the file is empty"),
    "no-model-folder": (lambda at: other_folder(at / "m"), 3, "no model file in this folder"),
    "missing": (lambda at: at / "m.keras", 3, "no such file"),
    "open-sizes": (lambda at: unknown_sizes(at / "m.pb"), 2, "give --input-shape words=N,N,4"),
}  # fmt: skip


def said(capsys, *arguments):
    """(exit code, lines on stderr)."""
    capsys.readouterr()
    code = main(["count", *map(str, arguments), "--quiet"])
    return code, capsys.readouterr().err.splitlines()


@pytest.mark.parametrize("name", BAD)
def test_one_line_and_its_exit_code(tmp_path, capsys, name):
    make, code, text = BAD[name]
    path = make(tmp_path)
    found, lines = said(capsys, path)
    assert (found, len(lines)) == (code, 1), lines
    assert lines[0].startswith(f"graphcost: error: {path}")
    assert text in lines[0]


@pytest.mark.parametrize("name", ["m.pb", "m.meta", "m.keras", "m.h5", "saved"])
def test_without_tensorflow_the_extra_is_named(tmp_path, capsys, monkeypatch, name):
    path = saved_model(tmp_path / name, ["serving_default"]) if name == "saved" else garbage(tmp_path / name)
    monkeypatch.setitem(sys.modules, "tensorflow", None)  # importing it now fails
    found, lines = said(capsys, path)
    assert (found, len(lines)) == (2, 1)
    assert "pip install 'graphcost[tensorflow]'" in lines[0]


# -- what looks bad and is not


def test_open_batch_is_assumed_and_said(tmp_path, capsys):
    assert main(["count", str(product(tmp_path / "m.pb"))]) == 0
    assert "batch 32 is assumed; --batch sets it" in capsys.readouterr().err


def without_variables(at: Path) -> Path:
    network().export(at / "m", verbose=False)
    shutil.rmtree(at / "m" / "variables")
    return at / "m"


def as_text(at: Path) -> Path:
    from google.protobuf import text_format
    from tensorflow.core.framework import graph_pb2

    graph = graph_pb2.GraphDef.FromString(product(at / "m.pb").read_bytes())
    (at / "m.pbtxt").write_text(text_format.MessageToString(graph))
    return at / "m.pbtxt"


@pytest.mark.parametrize("make", [without_variables, as_text])
def test_what_is_enough(tmp_path, capsys, make):
    assert said(capsys, make(tmp_path), "--batch", 2) == (0, [])
