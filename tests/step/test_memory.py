"""Memory of a step: tensors kept for the backward pass, gradients on their way, torch as the second oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphcost.graph import build_graph
from graphcost.ir import BatchSource
from graphcost.models_zoo import build
from graphcost.models_zoo._builder import Builder
from graphcost.recipe import OPTIMIZERS, OptimizerKernels, Recipe
from graphcost.training import Memory, plan_step
from graphcost.units import MIB


def zoo(name: str, batch: int, dims: dict[str, int] | None = None, **choices: Any) -> Memory:
    return plan_step(build_graph(build(name, batch=batch, dims=dims or {})), Recipe(**choices)).memory


def test_saved_tensors_of_resnet50() -> None:
    """torch's saved-tensor hooks, in-place ReLU: 82.3 MiB at batch 1, 81.9 MiB for every further image."""
    one, nine = (zoo("resnet50", batch).activations_bytes / MIB for batch in (1, 9))
    assert one == pytest.approx(82.3, rel=0.05)
    assert (nine - one) / 8 == pytest.approx(81.9, rel=0.05)


def test_saved_tensors_of_bert() -> None:
    """torch's saved-tensor hooks on the CPU, attention written out, 128 tokens: 109.2 MiB; masks of 4 bytes."""
    cpu, gpu = (zoo("bert-base", 1, {"seq": 128}, dropout_mask_bytes=size).activations_bytes for size in (4, 1))
    assert cpu / MIB == pytest.approx(109.2, rel=0.05)
    # 1 + 12 x 2 dropouts over 128 x 768 values, 12 over 12 heads x 128 x 128
    assert cpu - gpu == 3 * (25 * 128 * 768 + 12 * 12 * 128 * 128)


def kept(draw: Callable[[Builder, str], str], **choices: Any) -> Memory:
    """Memory of what ``draw`` makes of a matrix of 8 x 16 values."""
    b = Builder("hand", 8, BatchSource.OPTION)
    return plan_step(build_graph(b.finish(draw(b, b.input("x", (8, 16))))), Recipe(**choices)).memory


SQUARE = 4 * 8 * 16
WIDE = 4 * 8 * 32


def mlp(activation: str) -> Callable[[Builder, str], str]:
    return lambda b, x: b.gemm(b.pointwise(activation, b.gemm(x, 32, name="one")), 16, name="two")


def read_twice(b: Builder, x: str) -> str:
    """One tensor that two products read is kept once."""
    hidden = b.gemm(x, 16, name="first")
    return b.pointwise("Add", b.gemm(hidden, 16, name="left"), b.gemm(hidden, 16, name="right"))


def reshaped(b: Builder, x: str) -> str:
    """A view of a tensor is that tensor."""
    hidden = b.reshape(b.gemm(x, 16, name="first"), (16, 8))
    return b.pointwise("Exp", b.gemm(b.reshape(hidden, (8, 16)), 16, name="second"))


def sliced(b: Builder, x: str) -> str:
    """A kept slice keeps its whole storage."""
    hidden = b.gemm(x, 32, name="first")
    return b.gemm(b.part(hidden, 0, 4, name="part"), 2, name="second")


def dropped(b: Builder, x: str) -> str:
    return b.gemm(b.dropout(b.gemm(x, 16, name="first")), 2, name="second")


def pooled(b: Builder, x: str) -> str:
    """A maximum keeps its input and int64 positions."""
    hidden = b.reshape(b.gemm(x, 64, name="first"), (1, 1, 16, 32))
    return b.max_pool(hidden, 2, 2)


def summed(b: Builder, x: str) -> str:
    return b.pointwise("Add", b.gemm(x, 16, name="one"), b.gemm(x, 16, name="two"))


# what is kept beside the input (8 x 16, kept by the first product)
KEPT: dict[str, tuple[Callable[[Builder, str], str], int]] = {
    "relu in place": (mlp("Relu"), WIDE),  # its output, which is the next product's input; not its input
    "gelu keeps its input": (mlp("Gelu"), 2 * WIDE),
    "sigmoid keeps its output": (mlp("Sigmoid"), WIDE),
    "neg keeps nothing": (mlp("Neg"), WIDE),  # the next product's input
    "twice read": (read_twice, SQUARE),
    "reshaped": (reshaped, SQUARE + SQUARE),  # second's input; exp's output
    "sliced": (sliced, WIDE),
    "dropout's mask": (dropped, 8 * 16 + SQUARE),
    "maximum": (pooled, 4 * 8 * 64 + 8 * 8 * 16),
    "sums keep nothing": (summed, 0),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_kept(name: str) -> None:
    draw, beside = KEPT[name]
    assert kept(draw).activations_bytes == SQUARE + beside


def test_torch_keeps_the_same() -> None:
    """The second oracle: storages that torch's autograd packs, parameters aside."""
    torch = pytest.importorskip("torch")
    nn = torch.nn

    class Sliced(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(16, 32), nn.Linear(4, 2)

        def forward(self, x: Any) -> Any:
            return self.second(self.first(x)[:, :4])

    modules = {
        "relu in place": nn.Sequential(nn.Linear(16, 32), nn.ReLU(inplace=True), nn.Linear(32, 16)),
        "gelu keeps its input": nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)),
        "sigmoid keeps its output": nn.Sequential(nn.Linear(16, 32), nn.Sigmoid(), nn.Linear(32, 16)),
        "sliced": Sliced(),
    }
    for name, module in modules.items():
        own = {parameter.untyped_storage().data_ptr() for parameter in module.parameters()}
        stored: dict[int, int] = {}

        def pack(tensor: Any, stored: dict[int, int] = stored, own: set[int] = own) -> Any:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in own:
                stored[storage.data_ptr()] = storage.nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            result = module(torch.zeros(8, 16))
        assert kept(KEPT[name][0]).activations_bytes == sum(stored.values()), name
        del result


def test_peak_of_two_layers_by_hand() -> None:
    """At the first layer's turn, backwards: its input, dY of the second, dX on its way, both layers' gradients."""
    found = kept(mlp("Relu"), optimizer=OPTIMIZERS["sgd"])
    weights = 4 * (16 * 32 + 32 + 32 * 16 + 16)
    assert (found.weights_bytes, found.gradients_bytes, found.optimizer_bytes) == (weights, weights, 0)
    first, second = 4 * (16 * 32 + 32), 4 * (32 * 16 + 16)
    # second layer's turn: x, hidden, y and its gradient, dX, own gradients; first's: x, dY of relu, all gradients
    turns = {
        "second": SQUARE + WIDE + SQUARE + SQUARE + WIDE + second,
        "relu": SQUARE + WIDE + SQUARE + 2 * WIDE + second,
        "first": SQUARE + SQUARE + WIDE + first + second,
    }
    assert found.peak_phase == "backward"
    assert found.peak_bytes == weights + max(turns.values())


def test_inference_keeps_nothing() -> None:
    found = kept(mlp("Relu"), optimizer=OPTIMIZERS["none"])
    assert (found.activations_bytes, found.gradients_bytes, found.optimizer_bytes) == (0, 0, 0)
    assert found.peak_phase == "forward"
    # the input, and around the second product its input and output: relu works in place
    assert found.peak_bytes == found.weights_bytes + SQUARE + max(WIDE, WIDE + SQUARE)


def test_an_optimizer_of_several_kernels_needs_room() -> None:
    """foreach holds one more tensor of every parameter at once, for-loop of the largest."""
    parameters = 4 * 669_706
    peaks = {kernels: zoo("mlp", 1, kernels=kernels) for kernels in OptimizerKernels}
    assert peaks[OptimizerKernels.FOREACH].peak_phase == "update"
    assert peaks[OptimizerKernels.FOREACH].temporary_bytes == parameters
    assert peaks[OptimizerKernels.FOREACH].peak_bytes == 5 * parameters  # weight, gradient, two states, one more
    assert peaks[OptimizerKernels.FOR_LOOP].temporary_bytes == 4 * 784 * 512


def test_buckets_stay_allocated() -> None:
    found = zoo("mlp", 1)
    with_buckets = found.with_buckets(1000)
    assert with_buckets.peak_bytes == found.peak_bytes + 1000 and with_buckets.bucket_bytes == 1000


@settings(max_examples=15)
@given(
    st.sampled_from([("resnet18", {"image": 64}), ("bert-base", {"seq": 16}), ("mobilenet-v2", {"image": 64})]),
    st.integers(1, 4), st.sampled_from(["sgd", "adam"]),
)  # fmt: skip
def test_memory_laws(model: tuple[str, dict[str, int]], batch: int, optimizer: str) -> None:
    name, dims = model
    one, two, three = (zoo(name, batch + more, dims, optimizer=OPTIMIZERS[optimizer]) for more in (0, 1, 2))
    assert three.activations_bytes - two.activations_bytes == two.activations_bytes - one.activations_bytes > 0
    assert one.peak_bytes <= two.peak_bytes <= three.peak_bytes
    held = one.weights_bytes + one.buffers_bytes + one.optimizer_bytes
    assert held + one.gradients_bytes <= one.peak_bytes
    assert held + one.activations_bytes <= one.peak_bytes
    again = zoo(name, batch, dims, optimizer=OPTIMIZERS[optimizer], recompute=True)
    assert again.activations_bytes < one.activations_bytes and again.gradients_bytes == one.gradients_bytes
    none = zoo(name, batch, dims, optimizer=OPTIMIZERS["none"])
    assert none.peak_bytes < one.peak_bytes and none.activations_bytes == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet50", "vgg16", "dlrm", "encoder-decoder"])
@pytest.mark.filterwarnings("ignore")
def test_torchs_memory_tracker_agrees(name: str) -> None:
    """MemTracker over two real steps on fake tensors: activations within 5 %, the rest exactly."""
    pytest.importorskip("torch")
    from benchmarks.memory import MODELS, TOLERANCE, ours, tracked

    theirs, mine = tracked(MODELS[name], 2), ours(MODELS[name], 2)
    assert mine.pop("activations") == pytest.approx(theirs.pop("activations"), rel=TOLERANCE)
    assert mine == theirs
