"""LSTM, GRU and RNN: every gate sees the step's input and the previous state."""

from __future__ import annotations

import pytest

from onnx_frontend.onnx_models import MS, find, model, node, one, weight

X = {"x": [7, 2, 3]}  # 7 steps, 2 samples, 3 features; 5 hidden throughout

# id: (model, matmul FLOPs = 2 * steps * samples * directions * gates * hidden * (features + hidden), parameters)
CELLS = {
    "lstm": (
        one("LSTM", X, {"w": [1, 20, 3], "r": [1, 20, 5]}, hidden_size=5),
        2 * 7 * 2 * (4 * 5) * (3 + 5),
        20 * 3 + 20 * 5,
    ),
    "lstm-bidirectional": (
        one("LSTM", X, {"w": [2, 20, 3], "r": [2, 20, 5], "b": [2, 40]}, hidden_size=5, direction="bidirectional"),
        2 * 7 * 2 * 2 * (4 * 5) * (3 + 5),
        2 * (20 * 3 + 20 * 5 + 40),
    ),
    "lstm-reverse": (
        one("LSTM", X, {"w": [1, 20, 3], "r": [1, 20, 5]}, hidden_size=5, direction="reverse"),
        2 * 7 * 2 * (4 * 5) * (3 + 5),
        20 * 3 + 20 * 5,
    ),
    "lstm-peepholes-and-states": (
        # initial states and peepholes are stored: 2*5 + 2*5 + 15 of them
        one(
            "LSTM",
            X,
            {"w": [1, 20, 3], "r": [1, 20, 5], "b": [1, 40], "h0": [1, 2, 5], "c0": [1, 2, 5], "p": [1, 15]},
            order=["x", "w", "r", "b", "", "h0", "c0", "p"],
            hidden_size=5,
        ),
        2 * 7 * 2 * (4 * 5) * (3 + 5),
        20 * 3 + 20 * 5 + 40 + 10 + 10 + 15,
    ),
    "lstm-sequence-lengths": (
        # lengths are data: every step of every sample counts
        one(
            "LSTM",
            {**X, "lengths": ("INT32", [2])},
            {"w": [1, 20, 3], "r": [1, 20, 5]},
            order=["x", "w", "r", "", "lengths"],
            hidden_size=5,
        ),
        2 * 7 * 2 * (4 * 5) * (3 + 5),
        20 * 3 + 20 * 5,
    ),
    "lstm-batch-first": (
        one("LSTM", {"x": [2, 7, 3]}, {"w": [1, 20, 3], "r": [1, 20, 5]}, hidden_size=5, layout=1),
        2 * 7 * 2 * (4 * 5) * (3 + 5),
        20 * 3 + 20 * 5,
    ),
    "lstm-last-state-only": (
        one("LSTM", X, {"w": [1, 20, 3], "r": [1, 20, 5]}, outputs=["", "h"], hidden_size=5),
        2 * 7 * 2 * (4 * 5) * (3 + 5),
        20 * 3 + 20 * 5,
    ),
    "lstm-opset-6": (
        one("LSTM", X, {"w": [1, 20, 3], "r": [1, 20, 5]}, opset=6, hidden_size=5),
        2 * 7 * 2 * (4 * 5) * (3 + 5),
        20 * 3 + 20 * 5,
    ),
    "gru": (
        one("GRU", X, {"w": [1, 15, 3], "r": [1, 15, 5]}, hidden_size=5, linear_before_reset=1),
        2 * 7 * 2 * (3 * 5) * (3 + 5),
        15 * 3 + 15 * 5,
    ),
    "gru-bidirectional": (
        one("GRU", X, {"w": [2, 15, 3], "r": [2, 15, 5]}, hidden_size=5, direction="bidirectional"),
        2 * 7 * 2 * 2 * (3 * 5) * (3 + 5),
        2 * (15 * 3 + 15 * 5),
    ),
    "rnn": (
        one("RNN", X, {"w": [1, 5, 3], "r": [1, 5, 5]}, hidden_size=5),
        2 * 7 * 2 * 5 * (3 + 5),
        5 * 3 + 5 * 5,
    ),
    "lstm-quantized": (
        # weights stand transposed: [directions, features, gates * hidden]
        model(
            [
                node(
                    "DynamicQuantizeLSTM",
                    ["x", "w", "r", "", "", "", "", "", "sw", "zw", "sr", "zr"],
                    ["y"],
                    "op",
                    domain=MS,
                    hidden_size=5,
                )
            ],
            X,
            ["y"],
            [
                weight("w", [1, 3, 20], "INT8"),
                weight("r", [1, 5, 20], "INT8"),
                weight("sw", [1]),
                weight("zw", [1], "INT8"),
                weight("sr", [1]),
                weight("zr", [1], "INT8"),
            ],
        ),
        2 * 7 * 2 * (4 * 5) * (3 + 5),
        20 * 3 + 20 * 5,
    ),
}


@pytest.mark.parametrize(("source", "flops", "params"), CELLS.values(), ids=CELLS)
def test_cells(source, flops, params) -> None:
    found = find(source)
    assert (found.flops, found.params, found.unknown) == (flops, params, {})


def test_states_of_zeros_made_for_the_batch_are_no_parameters() -> None:
    """Exporters make initial states with ConstantOfShape of the input's Shape."""
    steps = [
        node("Shape", ["x"], ["shape"], start=1, end=2),
        node("Concat", ["one", "shape", "five"], ["size"], axis=0),
        node("ConstantOfShape", ["size"], ["zeros"]),
        node("LSTM", ["x", "w", "r", "", "", "zeros", "zeros"], ["y"], hidden_size=5),
    ]
    from onnx_frontend.onnx_models import ints

    stored = [ints("one", [1]), ints("five", [5]), weight("w", [1, 20, 3]), weight("r", [1, 20, 5])]
    found = find(model(steps, {"x": [7, "batch", 3]}, ["y"], stored), dims={"batch": 4})
    assert found.params == 20 * 3 + 20 * 5
    assert found.flops == 2 * 7 * 4 * (4 * 5) * (3 + 5)
