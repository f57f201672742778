"""Open sizes: bound by rule, by the user, by the graph itself; and what re-batching a fixed file takes."""

from __future__ import annotations

import pytest

from graphcost.errors import MissingSizeError, ShapeError, UsageError
from graphcost.ir import BatchSource
from onnx_frontend.onnx_models import find, floats, ints, model, node, weight

DENSE = [node("MatMul", ["x", "w"], ["y"], "mm")]


def dense(*shape, **more):
    return model(DENSE, {"x": list(shape), **more}, ["y"], {"w": [8, 3]})


PER_SAMPLE = 2 * 3 * 8


@pytest.mark.parametrize(
    "first", ["batch", "batch_size", "Batch", "batchsize", "N", "B", "unk__12", "unk", "", "?", None, -1]
)
def test_an_open_first_size_is_the_batch_and_assumed_32(first) -> None:
    found = find(dense(first, 8))
    assert (found.model.batch, found.model.batch_source) == (32, BatchSource.ASSUMED)
    assert found.flops == 32 * PER_SAMPLE


@pytest.mark.parametrize("first", ["batch", "N", None, -1])
def test_the_user_s_batch(first) -> None:
    found = find(dense(first, 8), batch=5)
    assert (found.model.batch, found.model.batch_source, found.flops) == (5, BatchSource.OPTION, 5 * PER_SAMPLE)


@pytest.mark.parametrize("first", ["batch", None, -1])
def test_dim_batch_means_the_batch(first) -> None:
    found = find(dense(first, 8), dims={"batch": 5})
    assert (found.model.batch, found.flops) == (5, 5 * PER_SAMPLE)


def test_a_fixed_first_size_is_the_file_s_batch() -> None:
    found = find(dense(4, 8))
    assert (found.model.batch, found.model.batch_source) == (4, BatchSource.FILE)


@pytest.mark.parametrize("name", ["seq", "height", "sequence_length", "nodes"])
def test_other_names_are_asked_for(name) -> None:
    with pytest.raises(MissingSizeError, match=rf"input 'x' \[{name}, 8\]: {name} \(give --dim {name}=N\)"):
        find(dense(name, 8))
    assert find(dense(name, 8), dims={name: 7}).flops == 7 * PER_SAMPLE


def test_every_missing_size_is_listed_at_once() -> None:
    inputs = {"a": ["batch", "rows", "inner"], "b": ["batch", "inner", "columns"]}
    source = model([node("MatMul", ["a", "b"], ["y"])], inputs, ["y"])
    with pytest.raises(MissingSizeError) as caught:
        find(source)
    for name in ("rows", "inner", "columns"):
        assert f"--dim {name}=N" in str(caught.value)
    found = find(source, batch=2, dims={"rows": 3, "inner": 4, "columns": 5})
    assert found.flops == 2 * (2 * 3 * 5) * 4
    assert found.model.bindings == {"batch": 2, "rows": 3, "inner": 4, "columns": 5}


def test_nameless_sizes_are_asked_for_as_a_shape() -> None:
    source = dense(None, None, 8)
    with pytest.raises(
        MissingSizeError, match=r"input 'x' \[\?, \?, 8\]: dimension 1 \(give --input-shape x=N,N,8\)"
    ):
        find(source)
    assert find(source, input_shapes={"x": (2, 5, 8)}).flops == 2 * 5 * PER_SAMPLE


def test_an_input_without_a_rank_is_asked_for() -> None:
    source = model(DENSE, {"x": None}, ["y"], {"w": [8, 3]})
    with pytest.raises(MissingSizeError, match=r"input 'x' \(rank not stated\); give --input-shape x=\.\.\."):
        find(source)
    assert find(source, input_shapes={"x": (6, 8)}).flops == 6 * PER_SAMPLE


def test_a_batch_that_stands_second() -> None:
    """Recurrent inputs are time first; their states name the same batch."""
    found = find(dense("time", "batch", 8), dims={"time": 7, "batch": 4})
    assert (found.flops, found.model.batch) == (7 * 4 * PER_SAMPLE, 4)
    found = find(dense(7, "batch", 8), dims={"batch": 4})
    assert (found.flops, found.model.batch) == (7 * 4 * PER_SAMPLE, 4)


def test_a_named_batch_is_one_size_wherever_it_stands() -> None:
    source = model(
        [node("MatMul", ["x", "w"], ["y"]), node("MatMul", ["h", "w"], ["z"])],
        {"x": ["batch", 8], "h": [2, "batch", 8]},
        ["y", "z"],
        {"w": [8, 3]},
    )
    assert find(source).flops == (32 + 2 * 32) * PER_SAMPLE
    assert find(source, batch=5).flops == (5 + 2 * 5) * PER_SAMPLE


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dims": {"sequ": 4}}, r"--dim sequ: the model has no size of that name; did you mean 'seq'\?"),
        ({"input_shapes": {"z": (1,)}}, r"--input-shape z: the model has no input of that name .*\(inputs: x\)"),
        ({"input_shapes": {"x": (2, 5)}}, "--input-shape x: 2 sizes given, the file declares 'x' "),
        ({"input_shapes": {"x": (2, 5, 9)}}, "--input-shape x=2,5,9 contradicts the file, which fixes 'x' "),
        ({"dims": {"seq": 4}, "input_shapes": {"x": (2, 5, 8)}}, "size 'seq' is given twice, as 4 and as 5"),
        (
            {"dims": {"seq": 4}, "input_values": {"q": (1,)}},
            "--input-value q: the model has no input or loop of that name",
        ),
        (
            {"dims": {"seq": 4}, "input_values": {"x": (1, 2)}},
            r"--input-value x: 2 numbers given, shape \[32, 4, 8\]",
        ),
    ],
    ids=["dim", "input", "rank", "fixed", "twice", "value", "value-size"],
)
def test_bindings_that_contradict_the_file(options, message) -> None:
    with pytest.raises(UsageError, match=message):
        find(dense("batch", "seq", 8), **options)


@pytest.mark.parametrize("dtype", ["STRING", "FLOAT8E4M3FN", "COMPLEX64"])
def test_values_that_no_number_can_be(dtype) -> None:
    source = model([node("Identity", ["x"], ["y"])], {"x": (dtype, [2])}, ["y"])
    with pytest.raises(UsageError, match=r"--input-value x: the input is of .* only plain numbers"):
        find(source, input_values={"x": (1, 2)})


# -- sizes that the graph computes


def test_attention_with_sizes_from_shape() -> None:
    """Shape, Gather, Concat make the Reshape target [batch, seq, 4 heads, 8]."""
    steps = [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "zero"], ["b"], axis=0),
        node("Gather", ["shape", "one"], ["s"], axis=0),
        node("Concat", ["b", "s", "heads", "minus"], ["target"], axis=0),
        node("Reshape", ["x", "target"], ["split"]),
        node("Transpose", ["split"], ["q"], perm=[0, 2, 1, 3]),
        node("Transpose", ["split"], ["kt"], perm=[0, 2, 3, 1]),
        node("MatMul", ["q", "kt"], ["scores"]),
        node("Softmax", ["scores"], ["p"]),
        node("MatMul", ["p", "q"], ["y"]),
    ]
    stored = [ints("zero", [0]), ints("one", [1]), ints("heads", [4]), ints("minus", [-1])]
    found = find(model(steps, {"x": ["batch", "seq", 32]}, ["y"], stored), batch=2, dims={"seq": 6})
    assert found.flops == 2 * (2 * 4 * 6 * 6) * (8 + 8)
    assert (found.params, found.shape("y")) == (0, (2, 4, 6, 8))


def test_resize_to_sizes_from_shape() -> None:
    """Shape, Slice, Concat: x [1, 3, 6, 10] is resized to twice its height and width."""
    steps = [
        node("Shape", ["x"], ["shape"]),
        node("Slice", ["shape", "two", "four"], ["hw"]),
        node("Mul", ["hw", "double"], ["larger"]),
        node("Slice", ["shape", "zero", "two"], ["nc"]),
        node("Concat", ["nc", "larger"], ["sizes"], axis=0),
        node("Resize", ["x", "", "", "sizes"], ["big"]),
        node("Conv", ["big", "w"], ["y"]),
    ]
    stored = [
        ints("zero", [0]),
        ints("two", [2]),
        ints("four", [4]),
        ints("double", [2, 2]),
        weight("w", [5, 3, 1, 1]),
    ]
    found = find(model(steps, {"x": [1, 3, "H", "W"]}, ["y"], stored), dims={"H": 6, "W": 10})
    assert found.flops == 2 * (5 * 12 * 20) * 3
    assert found.params == 15


def test_resize_by_stored_scales() -> None:
    steps = [node("Resize", ["x", "", "scales"], ["big"]), node("Conv", ["big", "w"], ["y"])]
    stored = [floats("scales", [1, 1, 1.5, 2]), weight("w", [5, 3, 1, 1])]
    assert find(model(steps, {"x": [1, 3, 6, 10]}, ["y"], stored)).flops == 2 * (5 * 9 * 20) * 3


def test_positions_by_range() -> None:
    """Range(0, seq) looks up position vectors."""
    steps = [
        node("Shape", ["ids"], ["shape"], start=1, end=2),
        node("Squeeze", ["shape", "zero"], ["seq"]),
        node("Range", ["start", "seq", "step"], ["places"]),
        node("Gather", ["table", "places"], ["p"]),
        node("Gather", ["words", "ids"], ["e"]),
        node("Add", ["e", "p"], ["x"]),
        node("MatMul", ["x", "w"], ["y"]),
    ]
    stored = [
        ints("zero", [0]),
        ints("start", 0),
        ints("step", 1),
        weight("table", [64, 8]),
        weight("words", [9, 8]),
        weight("w", [8, 3]),
    ]
    found = find(model(steps, {"ids": ("INT64", [1, "seq"])}, ["y"], stored), dims={"seq": 9})
    assert (found.flops, found.params) == (9 * PER_SAMPLE, 64 * 8 + 9 * 8 + 24)


def test_sizes_that_depend_on_data_are_bounded_and_said() -> None:
    steps = [
        node("NonZero", ["mask"], ["at"]),
        node("Transpose", ["at"], ["rows"]),
        node("Cast", ["rows"], ["f"], to=1),
        node("MatMul", ["f", "w"], ["y"]),
    ]
    found = find(model(steps, {"mask": ("BOOL", [4, 5])}, ["y"], {"w": [2, 3]}))
    assert found.flops == 2 * 20 * 3 * 2  # all 20 at most
    assert "NonZero: its output size depends on data; the largest possible is counted" in found.notes


def test_contradicting_shapes_name_the_operator() -> None:
    with pytest.raises(
        ShapeError, match=r"mm \(MatMul\): the input shapes \[\[4, 7\], \[8, 3\]\] contradict the operator"
    ):
        find(dense(4, 7))


# -- a file fixed at batch 1, run at another


def heads(target):
    """x [1, 6, 32] split into 4 heads of 8 by a baked target, then multiplied with itself."""
    steps = [
        node("MatMul", ["x", "w"], ["h"], "project"),
        node("Reshape", ["h", "target"], ["split"], "split"),
        node("Transpose", ["split"], ["q"], perm=[0, 2, 1, 3]),
        node("Transpose", ["split"], ["kt"], perm=[0, 2, 3, 1]),
        node("MatMul", ["q", "kt"], ["y"], "scores"),
    ]
    return model(steps, {"x": [1, 6, 32]}, ["y"], [ints("target", target), weight("w", [32, 32])])


@pytest.mark.parametrize("target", [[1, -1, 4, 8], [1, 6, 4, 8], [-1, 6, 4, 8], [0, 0, 4, 8], [0, 6, -1, 8]], ids=str)
def test_baked_reshape_targets_follow_the_batch(target) -> None:
    one, five = find(heads(target)), find(heads(target), batch=5)
    assert one.flops == 2 * 6 * 32 * 32 + 2 * (4 * 6 * 6) * 8
    assert five.flops == 5 * one.flops
    assert five.shape("y") == (5, 4, 6, 6)
    assert five.params == one.params
    assert (five.model.batch, five.model.batch_source) == (5, BatchSource.OPTION)


def refused(source, culprit) -> None:
    assert find(source).model.batch == 1
    with pytest.raises(UsageError) as caught:
        find(source, batch=5)
    assert "the file is fixed at batch 1 and cannot be run at 5" in str(caught.value)
    assert culprit in str(caught.value)


def test_a_target_that_lost_the_batch_is_refused_by_name() -> None:
    steps = [node("Reshape", ["x", "target"], ["r"], "flatten"), node("MatMul", ["r", "w"], ["y"], "mm")]
    refused(model(steps, {"x": [1, 6, 8]}, ["y"], [ints("target", [6, 8]), weight("w", [8, 3])]), "flatten (Reshape)")


def test_a_batch_that_would_slip_into_another_size_is_refused_by_name() -> None:
    """Behind a transpose the batch stands second; -1 would swallow it, and scores would grow 25 times."""
    steps = [
        node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
        node("Reshape", ["t", "target"], ["r"]),
        node("Transpose", ["r"], ["rt"], perm=[0, 2, 1]),
        node("MatMul", ["r", "rt"], ["y"], "scores"),
    ]
    refused(model(steps, {"x": [1, 6, 8]}, ["y"], [ints("target", [1, -1, 8])]), "scores (MatMul)")


def test_a_position_of_the_batch_is_refused_by_name() -> None:
    """The first sample alone goes on."""
    steps = [node("Gather", ["x", "zero"], ["first"], axis=0), node("MatMul", ["first", "w"], ["y"], "head")]
    refused(model(steps, {"x": [1, 6, 8]}, ["y"], [ints("zero", [0]), weight("w", [8, 3])]), "head (MatMul)")


def test_a_class_token_of_one_sample_is_refused_by_name() -> None:
    steps = [node("Concat", ["token", "x"], ["all"], "join", axis=1), node("MatMul", ["all", "w"], ["y"])]
    refused(model(steps, {"x": [1, 6, 8]}, ["y"], [weight("token", [1, 1, 8]), weight("w", [8, 3])]), "join (Concat)")


def test_baked_resize_sizes_follow_the_batch() -> None:
    steps = [node("Resize", ["x", "", "", "sizes"], ["big"]), node("Conv", ["big", "w"], ["y"])]
    source = model(steps, {"x": [1, 3, 4, 4]}, ["y"], [ints("sizes", [1, 3, 8, 8]), weight("w", [5, 3, 1, 1])])
    assert find(source, batch=5).flops == 5 * 2 * (5 * 8 * 8) * 3


def test_masks_without_a_batch_keep_their_size() -> None:
    steps = [node("MatMul", ["x", "w"], ["h"]), node("Neg", ["mask"], ["m"]), node("Add", ["h", "m"], ["y"])]
    source = model(steps, {"x": [1, 6, 8], "mask": [6, 3]}, ["y"], {"w": [8, 3]})
    assert find(source, batch=5).flops == 5 * find(source).flops


def test_a_file_fixed_at_another_batch_is_refused() -> None:
    with pytest.raises(UsageError, match="--batch 5 contradicts the file, which fixes the batch at 4"):
        find(dense(4, 8), batch=5)
    assert find(dense(4, 8), batch=4).flops == 4 * PER_SAMPLE


def test_an_input_shape_may_change_a_batch_of_one() -> None:
    found = find(dense(1, 8), input_shapes={"x": (5, 8)})
    assert (found.flops, found.model.batch) == (5 * PER_SAMPLE, 5)
