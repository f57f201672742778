"""Weights and sizes in side files: counts come from the graph, and nothing outside its folder is opened."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

from graphcost.errors import ModelFileError

from .build import I64, bare, count, ints, model, op, tensor

X = tensor("x", [2, 3])


def _written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "net.onnx"
    path.write_bytes(content)
    return path


def _external(**entries: str) -> ModelProto:
    weight = bare("w", 3, 4)
    weight.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        weight.external_data.add(key=key, value=value)
    return model([op("MatMul", ["x", "w"], ["y"])], [X], stored=[weight])


LOCATIONS = {
    "inside": ("weights.bin", ""),
    "absent": ("gone.bin", "gone.bin is absent"),
    "parent": ("../secret.bin", "outside the model's folder"),
    "absolute": ("/etc/hostname", "outside the model's folder"),
    "link": ("link.bin", "outside the model's folder"),
    "nul": ("a\0b", "absent"),
    "too-long": ("n" * 5000, "absent"),
}


@pytest.mark.parametrize("kind", LOCATIONS)
def test_side_file(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts come from the graph alone; no file outside the model's folder is opened."""
    location, words = LOCATIONS[kind]
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "weights.bin").write_bytes(bytes(48))
    (tmp_path / "secret.bin").write_bytes(bytes(48))
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    path = _written(folder, _external(location=location).SerializeToString())
    opened: list[Path] = []
    real = Path.open

    def spy(self: Path, *args: object, **kwargs: object) -> object:
        opened.append(self.resolve())
        return real(self, *args, **kwargs)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", spy)
    found = count(path)
    assert found.found == (2 * 2 * 3 * 4, 12, 48)
    assert words in found.notes
    assert bool(words) == bool(found.notes)
    assert all(item.is_relative_to(folder) for item in opened)


@pytest.mark.parametrize("entry", [{"offset": "-1"}, {"offset": "x"}, {"length": "x"}, {"offset": "9" * 30}, {}])
def test_damaged_entries_of_a_side_file(entry: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(bytes(48))
    path = _written(tmp_path, _external(location="weights.bin", **entry).SerializeToString())
    assert count(path).found == (2 * 2 * 3 * 4, 12, 48)


def test_shapes_in_a_side_file_are_read(tmp_path: Path) -> None:
    """Small integers may be shapes: two stand in one file, the second at an offset."""
    (tmp_path / "sizes.bin").write_bytes(np.array([6, 1, 3, 2], np.int64).tobytes())
    shapes = []
    for name, offset in (("s", "0"), ("t", "16")):
        stored = TensorProto(name=name, dims=[2], data_type=I64, data_location=TensorProto.EXTERNAL)
        for key, value in (("location", "sizes.bin"), ("offset", offset), ("length", "16")):
            stored.external_data.add(key=key, value=value)
        shapes.append(stored)
    made = model([op("Reshape", ["x", "s"], ["a"]), op("Reshape", ["a", "t"], ["y"])], [X], stored=shapes)
    found = count(_written(tmp_path, made.SerializeToString()))
    assert (found.shape("a"), found.shape("y")) == ((6, 1), (3, 2))


def test_a_side_file_that_is_too_short(tmp_path: Path) -> None:
    (tmp_path / "sizes.bin").write_bytes(bytes(8))
    stored = TensorProto(name="s", dims=[2], data_type=I64, data_location=TensorProto.EXTERNAL)
    stored.external_data.add(key="location", value="sizes.bin")
    made = model([op("Reshape", ["x", "s"], ["y"])], [X], stored=[stored])
    with pytest.raises(ModelFileError, match=r"'s'.*\[2\]"):
        count(_written(tmp_path, made.SerializeToString()))


def test_weights_over_several_side_files(tmp_path: Path) -> None:
    weights = []
    for name, shape in (("w", (3, 4)), ("v", (4, 5))):
        stored = bare(name, *shape)
        stored.data_location = TensorProto.EXTERNAL
        stored.external_data.add(key="location", value=f"{name}.bin")
        weights.append(stored)
    (tmp_path / "w.bin").write_bytes(bytes(48))
    made = model([op("MatMul", ["x", "w"], ["h"]), op("MatMul", ["h", "v"], ["y"])], [X], stored=weights)
    found = count(_written(tmp_path, made.SerializeToString()))
    assert found.found == (2 * 2 * 3 * 4 + 2 * 2 * 4 * 5, 12 + 20, 4 * 32)
    assert "v.bin is absent" in found.notes
    assert "w.bin" not in found.notes


def test_the_value_of_a_fill_in_a_side_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where the path leads somewhere from the folder of work."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fill.bin").write_bytes(bytes(2))
    fill = TensorProto(dims=[1], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
    fill.external_data.add(key="location", value="fill.bin")
    nodes = [op("ConstantOfShape", ["s"], ["w"], value=fill), op("MatMul", ["x", "w"], ["y"])]
    made = model(nodes, [X], stored=[ints("s", 3, 4)])
    assert count(_written(tmp_path, made.SerializeToString())).found == (2 * 2 * 3 * 4, 12, 48)
