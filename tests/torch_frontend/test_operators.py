"""Operators beside the usual layers: transforms, losses, bags, loops, flex attention; by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import graphcost
from graphcost.errors import MissingSizeError
from graphcost.graph import operators, totals
from graphcost.ir import OpCost, Phase
from graphcost.recipe import OPTIMIZERS, Recipe
from graphcost.training import plan_step

torch = pytest.importorskip("torch", reason="torch is an extra")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning")
nn, F = torch.nn, torch.nn.functional


class Call(nn.Module):  # type: ignore[misc, name-defined]
    """``call(self, *inputs)`` with parts and parameters as attributes."""

    def __init__(self, call: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        self.call = call
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *inputs: Any) -> Any:
        return self.call(self, *inputs)


def scanned(self: Any, x: Any) -> Any:
    from torch._higher_order_ops.scan import scan

    return scan(lambda state, row: (state + self.layer(row), state.clone()), torch.zeros(8), x)[1]


def looped(self: Any, x: Any) -> Any:
    from torch._higher_order_ops.while_loop import while_loop

    return while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, self.layer(y)), (torch.tensor(0), x))[1]


def copied(self: Any, x: Any) -> Any:
    wide = x.new_empty(4, 8)
    wide[:, :4] = self.layer(x)
    return wide


X, IDS = torch.zeros(4, 8), torch.zeros(4, 5, dtype=torch.long)
LABELS = torch.zeros(4, dtype=torch.long)
IMAGE, WAVE = torch.zeros(2, 8, 8), torch.zeros(2, 64)
BAG, WEIGHED = nn.EmbeddingBag(100, 16), nn.EmbeddingBag(100, 16, mode="sum")
EXPERTS = nn.Parameter(torch.zeros(3, 16, 24, dtype=torch.bfloat16))
ROWS, ENDS = torch.zeros(32, 16, dtype=torch.bfloat16), torch.tensor([8, 16, 32], dtype=torch.int32)
FFT_8, RFFT_8 = 5 * 8 * 3, 5 * 8 * 3 // 2
# id: (module, inputs, matmul FLOPs, elementwise FLOPs, parameters)
CASES: dict[str, tuple[Any, tuple[Any, ...], int, int, int]] = {
    "fft": (Call(lambda self, x: torch.fft.fft(x)), (X,), 0, 4 * FFT_8, 0),
    "fftn": (Call(lambda self, x: torch.fft.fftn(x)), (X,), 0, 4 * FFT_8 + 8 * 5 * 4 * 2, 0),
    "rfft-padded": (Call(lambda self, x: torch.fft.rfft(x, n=16)), (X,), 0, 4 * 5 * 16 * 4 // 2, 0),
    # 16 rows of 8 reals, 5 complex columns of 8 in each of two images, there and back
    "rfft2-irfft2": (
        Call(lambda self, x: torch.fft.irfft2(torch.fft.rfft2(x), s=(8, 8))), (IMAGE,),
        0, 2 * (16 * RFFT_8 + 2 * 5 * FFT_8), 0,
    ),
    # 17 frames of 16 points, hop 4; the window is a product
    "stft": (
        Call(lambda self, x: torch.stft(x, 16, window=torch.hann_window(16), return_complex=True)), (WAVE,),
        0, 2 * 17 * (16 + 5 * 16 * 4 // 2), 0,
    ),
    "bag": (BAG, (IDS,), 0, 20 * 16, 1600),
    "bag-weighed": (
        Call(lambda self, i, w: self.bag(i, per_sample_weights=w), bag=WEIGHED), (IDS, torch.zeros(4, 5)),
        0, 2 * 20 * 16, 1600,
    ),
    "grouped-product": (
        Call(lambda self, x, ends: torch._grouped_mm(x, self.w, offs=ends), w=EXPERTS), (ROWS, ENDS),
        2 * 32 * 16 * 24, 0, 3 * 16 * 24,
    ),
    # bias 32; log-softmax of 32 scores at 9 FLOPs, a sum over 4 labels
    "cross-entropy": (
        Call(lambda self, x, y: F.cross_entropy(self.layer(x), y), layer=nn.Linear(8, 8)), (X, LABELS),
        2 * 4 * 8 * 8, 32 + 9 * 32 + 4, 72,
    ),
    "mean-square": (
        Call(lambda self, x: F.mse_loss(self.layer(x), x), layer=nn.Linear(8, 8)), (X,),
        2 * 4 * 8 * 8, 32 + 3 * 32, 72,
    ),
    "copy-into": (Call(copied, layer=nn.Linear(8, 4)), (X,), 2 * 4 * 8 * 4, 16, 36),
    "scan": (Call(scanned, layer=nn.Linear(8, 8)), (X,), 4 * 2 * 8 * 8, 4 * 2 * 8, 72),
    "learned-queries": (
        Call(lambda self, x: F.scaled_dot_product_attention(self.q, x, x), q=nn.Parameter(torch.zeros(4, 3, 8))),
        (torch.zeros(4, 5, 8),), 2 * 2 * 4 * 3 * 5 * 8, 600, 96,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_by_hand(name: str) -> None:
    module, inputs, matmul_flops, elementwise_flops, params = CASES[name]
    found = totals(graphcost.load(module, inputs))
    assert found.coverage.unknown == ()
    assert (found.cost.matmul_flops, found.params) == (matmul_flops, params)
    assert found.cost.elementwise_flops == elementwise_flops


def test_a_loop_needs_its_trip_count() -> None:
    module = Call(looped, layer=nn.Linear(8, 8))
    with pytest.raises(MissingSizeError, match="give --input-value while_loop=N"):
        graphcost.load(module, (X,))
    graph = graphcost.load(module, (X,), input_values={"while_loop": 3})
    assert totals(graph).cost.matmul_flops == 3 * 2 * 4 * 8 * 8


def attended(self: Any, x: Any) -> Any:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    batch, length, _ = x.shape
    q = self.q(x).view(batch, length, 4, 8).transpose(1, 2)
    k, v = self.kv(x).view(batch, length, 2, 4, 8).permute(2, 0, 3, 1, 4)
    causal = create_block_mask(lambda b, h, i, j: i >= j, None, None, length, length, device="cpu")
    return flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + self.slope[h] * (i - j), block_mask=causal)


def test_flex_attention_is_dense_and_says_so() -> None:
    module = Call(attended, q=nn.Linear(32, 32), kv=nn.Linear(32, 64), slope=nn.Parameter(torch.zeros(4)))
    graph = graphcost.load(module, (torch.zeros(2, 128, 32),))
    found = totals(graph)
    assert found.cost.matmul_flops == 2 * (2 * 128 * 32 * (32 + 64) + 2 * 2 * 4 * 128 * 128 * 8)
    assert found.params == 32 * 32 + 32 + 32 * 64 + 64 + 4
    assert found.coverage.unknown == ()
    assert any("dense attention, an upper bound" in note for note in graph.graph["model"].notes)
    assert plan_step(graph).gradient_bytes == 4 * found.params


def classified(self: Any, x: Any) -> Any:
    return self.head(self.lstm(x)[1][0][-1])


def translated(self: Any, x: Any) -> Any:
    return self.decoder(x, self.encoder(x)[1])[0]


# (module, forward, backward): x [4, 5, 8], hidden 6; the input needs no gradient, a first state of zeros neither
STEP = 2 * 4 * 24 * 6  # one step's product with R
LAYER = 5 * 2 * 4 * 24 * 8  # all steps' products with W
STATES = {
    "last-state": (
        Call(classified, lstm=nn.LSTM(8, 6, batch_first=True), head=nn.Linear(6, 3)),
        LAYER + 5 * STEP + 2 * 4 * 6 * 3,
        LAYER + 5 * STEP + 4 * STEP + 2 * 2 * 4 * 6 * 3,
    ),
    "state-handed-on": (
        Call(translated, encoder=nn.LSTM(8, 6, batch_first=True), decoder=nn.LSTM(8, 6, batch_first=True)),
        2 * (LAYER + 5 * STEP),
        2 * (LAYER + 5 * STEP) + (4 + 5) * STEP,
    ),
}


def biased(self: Any, x: Any) -> Any:
    keys = self.k(x)
    return torch.baddbmm(x.sum(-1, keepdim=True), self.q(x), keys.transpose(1, 2)) @ keys


FLOW = {
    **STATES,
    # 4 x 5 rows of 8: the scores' product, biased, and the values'; q and k have dW alone
    "baddbmm": (
        Call(biased, q=nn.Linear(8, 8), k=nn.Linear(8, 8)),
        2 * 2 * 20 * 8 * 8 + 2 * 2 * 4 * 5 * 5 * 8,
        2 * 2 * 20 * 8 * 8 + 2 * 2 * 2 * 4 * 5 * 5 * 8,
    ),
}


@pytest.mark.parametrize("name", FLOW)
def test_gradients_flow(name: str) -> None:
    from benchmarks.flop_counter import torch_flops

    module, forward, backward = FLOW[name]
    inputs = (torch.zeros(4, 5, 8),)
    plan = plan_step(graphcost.load(module, inputs))
    assert (plan.total(Phase.FORWARD).matmul_flops, plan.total(Phase.BACKWARD).matmul_flops) == (forward, backward)
    assert torch_flops(module, inputs) == (forward, backward)


def test_a_learned_first_state_is_a_parameter() -> None:
    state = nn.Parameter(torch.zeros(1, 4, 6))
    module = Call(lambda self, x: self.gru(x, self.state)[0], gru=nn.GRU(8, 6, batch_first=True), state=state)
    assert totals(graphcost.load(module, (torch.zeros(4, 5, 8),))).params == 18 * (8 + 6 + 2) + 24


@pytest.mark.parametrize("trains", [True, False], ids=["train", "eval"])
def test_dropout_runs_in_training_however_the_module_was_exported(trains: bool) -> None:
    """Two products of 4 x 8 x 8, their gradients (the input needs none), and a mask of 4 x 8 bytes."""
    module = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.25), nn.Linear(8, 8), nn.Dropout(0.0)).train(trains)
    graph = graphcost.load(module, (X,))
    (dropout,) = (node for _, node, _ in operators(graph) if node.op_type == "Dropout")
    assert dropout.attrs["ratio"] == 0.25
    training, inference = plan_step(graph), plan_step(graph, Recipe(optimizer=OPTIMIZERS["none"]))
    ran = [op.launches for plan in (training, inference) for op in plan.forward if op.op_type == "Dropout"]
    assert ran == [1, 0]
    assert sum(op.op_type == "Dropout" for op in training.backward) == 1
    # kept: the first layer's input, dropout's mask of a byte an element, the second layer's input
    assert training.memory.activations_bytes == 4 * 32 + 32 + 4 * 32
    assert training.total(Phase.BACKWARD).matmul_flops == 3 * 2 * 4 * 8 * 8


@pytest.mark.parametrize("call", [lambda self, x: x.roll(1, 0), lambda self, x: x.flip(0)], ids=["roll", "flip"])
def test_what_torch_copies_is_no_view(call: Callable[..., Any]) -> None:
    """x is read and written once, 4 x 8 values each way."""
    (moved,) = plan_step(graphcost.load(Call(call), (X,))).forward
    assert (moved.launches, moved.cost) == (1, OpCost(0, 0, 4 * 4 * 8, 4 * 4 * 8))
