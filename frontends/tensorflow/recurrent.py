"""Recurrent layers that are one operator: cuDNN's."""

from __future__ import annotations

from graphcost.frontends.tensorflow.emit import Op, handles, known
from graphcost.ir import TensorSpec

_KINDS = {"lstm": ("LSTM", 4), "gru": ("GRU", 3), "rnn_relu": ("RNN", 1), "rnn_tanh": ("RNN", 1)}


@handles("CudnnRNN", "CudnnRNNV2", "CudnnRNNV3")
def _cudnn(op: Op) -> None:
    """Input ``[T, B, I]``, state ``[layers * directions, B, H]``, cell, all weights as one vector.

    Source: cuDNN's cudnnRNNForward, as TensorFlow's CudnnRNNV3 wraps it: two biases per gate.
    """
    x, state = known(op.input(0).spec, op.name), known(op.input(1).spec, op.name)
    kind, gates = _KINDS[op.text("rnn_mode", "lstm")]
    directions = 2 if op.text("direction") == "bidirectional" else 1
    layers = state.shape[0] // directions
    steps, batch, features = x.shape
    if op.node.op == "CudnnRNNV3" and "time_major" in op.node.attr and not op.flag("time_major"):
        batch, steps = steps, batch
    hidden = state.shape[2]
    for layer in range(layers):
        width = features if layer == 0 else hidden * directions
        last = layer == layers - 1
        specs = {
            0: TensorSpec((steps, batch, width), x.dtype),
            1: TensorSpec((directions, gates * hidden, width), x.dtype),
            2: TensorSpec((directions, gates * hidden, hidden), x.dtype),
            3: TensorSpec((directions, 2 * gates * hidden), x.dtype),
        }
        source = op.input(0) if layer == 0 else None
        name = op.outputs[0].name if last else f"{op.name}:layer{layer}"
        op.emit(
            kind, [source, op.input(3) if layer == 0 else None, None, None], specs=specs,
            outputs=[TensorSpec((steps, directions, batch, hidden), x.dtype)], names=[name],
            suffix=f".{layer}" if layers > 1 else "", hidden_size=hidden,
            direction="bidirectional" if directions == 2 else "forward",
        )  # fmt: skip
