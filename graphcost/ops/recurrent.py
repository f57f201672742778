"""LSTM, GRU, RNN: every step of every direction.

assumed: weights are read once, as a kernel that keeps them on chip would; what one that does not
takes is the device model's.
"""

from __future__ import annotations

from dataclasses import dataclass

from graphcost.ir import MAC_FLOPS, OpCost, OpNode
from graphcost.ops._backward import no_gradient
from graphcost.ops._conventions import TRANSCENDENTAL
from graphcost.ops._rule import BackwardRule, ForwardRule, OpClass, read_bytes, rule, traffic
from graphcost.ops._shapes import attr_int, rank_exactly, shape_error


@dataclass(frozen=True, slots=True)
class Cell:
    """What one kind of recurrent cell does per hidden element and step, beside its products."""

    gates: int
    functions: int  # transcendental evaluations
    combine: int  # arithmetic that forms the new state

    def flops(self, biased: bool, peephole: bool) -> int:
        """Elementwise FLOPs per hidden element: activations, sums of products and biases, state.

        Peepholes weigh the cell state into three gates: a product and a sum each.
        """
        sums = self.gates * (2 if biased else 1)
        return self.functions * TRANSCENDENTAL + sums + self.combine + (6 if peephole else 0)


LSTM = Cell(gates=4, functions=5, combine=4)  # f*c + i*g, o*tanh(c)
GRU = Cell(gates=3, functions=3, combine=5)  # (1-z)*n + z*h, r*h
RNN = Cell(gates=1, functions=1, combine=0)
CELLS = {"LSTM": LSTM, "GRU": GRU, "RNN": RNN}


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of a recurrent layer."""

    steps: int
    batch: int
    directions: int
    hidden: int
    features: int

    def product_flops(self, gates: int, width: int) -> int:
        """FLOPs of ``[batch, width] @ [width, gates * hidden]`` at every step and direction."""
        return MAC_FLOPS * self.steps * self.batch * self.directions * gates * self.hidden * width


def sizes(node: OpNode, cell: Cell, weights_transposed: bool = False) -> Sizes:
    """Sizes from X ``[T, B, I]`` (``[B, T, I]`` for layout 1), W ``[D, g*H, I]``, R ``[D, g*H, H]``.

    ``weights_transposed``: W is ``[D, I, g*H]`` and R ``[D, H, g*H]``. Raises ``ShapeError``.
    """
    first, second, features = rank_exactly(node, node.require(0), 3, "X")
    directions, rows, columns = rank_exactly(node, node.require(1), 3, "W")
    r_shape = rank_exactly(node, node.require(2), 3, "R")
    if weights_transposed:
        rows, columns = columns, rows
        r_shape = (r_shape[0], r_shape[2], r_shape[1])
    hidden = rows // cell.gates
    if columns != features or r_shape != (directions, cell.gates * hidden, hidden):
        raise shape_error(node, f"W must be [D, {cell.gates}*H, {features}] and R [D, {cell.gates}*H, H]")
    steps, batch = (second, first) if attr_int(node, "layout", 0) else (first, second)
    return Sizes(steps, batch, directions, hidden, features)


def _forward(cell: Cell, weights_transposed: bool = False) -> ForwardRule:
    def forward(node: OpNode) -> OpCost:
        """Every gate sees the step's input and the previous state.

        Source: ONNX LSTM-22, GRU-22, RNN-22; com.microsoft.DynamicQuantizeLSTM.
        """
        size = sizes(node, cell, weights_transposed)
        matmul = size.product_flops(cell.gates, size.features + size.hidden)
        states = size.steps * size.batch * size.directions * size.hidden
        each = cell.flops(biased=node.spec(3) is not None, peephole=node.spec(7) is not None)
        return traffic(node, matmul_flops=matmul, elementwise_flops=each * states)

    return forward


def _backward(cell: Cell) -> BackwardRule:
    """Time runs backward through R whatever is needed; dX, dW and dR cost one product each.

    The gradient of the state before the first step is formed only where that state (input 5) needs one.
    """

    def backward(node: OpNode, wrt: frozenset[int]) -> OpCost:
        if not wrt:
            return OpCost()
        size = sizes(node, cell)
        from_input = size.product_flops(cell.gates, size.features)
        from_state = size.product_flops(cell.gates, size.hidden)
        first_state = 0 if 5 in wrt else from_state // max(1, size.steps)
        matmul = from_input * len(wrt & {0, 1}) + from_state * (1 + (2 in wrt)) - first_state
        states = size.steps * size.batch * size.directions * size.hidden
        each = cell.flops(biased=node.spec(3) is not None, peephole=node.spec(7) is not None)
        read = read_bytes(*node.inputs) + 2 * read_bytes(node.outputs[0])
        return OpCost(matmul, each * states, read, sum(node.require(i).size_bytes for i in wrt))

    return backward


_SAVES = ("in0", "out0")
for _name, _cell in CELLS.items():
    rule(_name, op_class=OpClass.RECURRENT, backward=_backward(_cell), saves=_SAVES)(_forward(_cell))
rule("DynamicQuantizeLSTM", domain="com.microsoft", op_class=OpClass.RECURRENT, backward=no_gradient)(
    _forward(LSTM, weights_transposed=True)
)
