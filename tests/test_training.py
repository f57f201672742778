"""The training step against published figures and hand-worked cases."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest
from helpers import RESNET50

if TYPE_CHECKING:
    from graphcost.graph import OpGraph

from graphcost.graph import build_graph
from graphcost.ir import Phase
from graphcost.models_zoo import build
from graphcost.recipe import OPTIMIZERS, Precision, Recipe
from graphcost.sources import LoadOptions, load_model
from graphcost.training import plan_step


@cache
def resnet50(batch: int = 1) -> OpGraph:
    return build_graph(load_model(str(RESNET50), LoadOptions(batch=batch)))


def test_backward_of_resnet50_is_twice_forward_less_the_first_convolution() -> None:
    """Forward and backward 12 149.5 M MAC (torch's counter): the image needs no gradient."""
    plan = plan_step(resnet50())
    macs = (plan.total(Phase.FORWARD).matmul_flops + plan.total(Phase.BACKWARD).matmul_flops) // 2
    first_convolution = 112 * 112 * 64 * 7 * 7 * 3
    assert macs == 3 * 4_089_184_256 - first_convolution == 12_149_538_816


def test_every_parameter_has_one_gradient() -> None:
    plan = plan_step(resnet50())
    assert plan.gradient_bytes == 4 * 25_557_032
    assert len({gradient.param for gradient in plan.gradients}) == len(plan.gradients) == 161
    order = [gradient.ready_index for gradient in plan.gradients]
    assert order == sorted(order)
    assert plan.gradients[0].bytes in (4 * 1000, 4 * 1000 * 2048)  # the classifier's are ready first


@pytest.mark.parametrize(
    ("optimizer", "moved_per_param", "kept_per_param"), [("sgd", 12, 0), ("momentum", 20, 4), ("adam", 28, 8)]
)
def test_optimizer_traffic_and_state(optimizer: str, moved_per_param: int, kept_per_param: int) -> None:
    plan = plan_step(resnet50(), Recipe(optimizer=OPTIMIZERS[optimizer]))
    assert plan.update.bytes == moved_per_param * 25_557_032
    assert plan.memory.optimizer_bytes == kept_per_param * 25_557_032


def test_activations_of_resnet50_are_near_the_saved_tensors_of_torch() -> None:
    """82.3 MiB at batch 1 and 81.9 MiB per further image (torch saved tensors, in-place ReLU)."""
    one = plan_step(resnet50(1)).memory.activations_bytes / 2**20
    nine = plan_step(resnet50(9)).memory.activations_bytes / 2**20
    assert one == pytest.approx(82.3, rel=0.05)
    assert (nine - one) / 8 == pytest.approx(81.9, rel=0.05)


def test_frozen_parameters_get_no_gradient_and_no_work() -> None:
    everything = plan_step(resnet50())
    names = [gradient.param for gradient in everything.gradients]
    head = plan_step(resnet50(), Recipe(freeze=tuple(n for n in names if n not in names[:2])))
    assert len(head.gradients) == 2
    assert len(head.backward) < 5
    assert head.total(Phase.BACKWARD).matmul_flops == 2 * 1000 * 2048  # the classifier's dW alone
    nothing = plan_step(resnet50(), Recipe(freeze=("*",)))
    assert nothing.backward == () and nothing.gradients == () and nothing.update.bytes == 0


def test_recompute_adds_a_forward_and_keeps_little() -> None:
    plain, again = plan_step(resnet50()), plan_step(resnet50(), Recipe(recompute=True))
    forward = plain.total(Phase.FORWARD)
    assert again.total(Phase.BACKWARD) == plain.total(Phase.BACKWARD) + forward
    assert 0 < again.memory.activations_bytes < plain.memory.activations_bytes / 2
    assert [g.param for g in again.gradients] == [g.param for g in plain.gradients]


def test_selective_recomputation_keeps_attention_and_every_second_product_of_a_block() -> None:
    graph = build_graph(build("llama2-7b", batch=1, dims={"seq": 256, "layers": 2}))
    plain, full, some = (
        plan_step(graph, Recipe(precision=Precision.BF16, **how))
        for how in ({}, {"recompute": True}, {"recompute": True, "selective": True})
    )
    # of q, k, v, o, gate, up and down: k, o and up run again, in 256 tokens of two layers of 4096 and 11008 channels
    again = 2 * 256 * 2 * (2 * 4096 * 4096 + 4096 * 11008)
    assert some.total(Phase.BACKWARD).matmul_flops - plain.total(Phase.BACKWARD).matmul_flops == again
    head = [op for op in some.backward if op.name == "lm_head"]
    assert len(head) == sum(op.name == "lm_head" for op in plain.backward)  # outside of blocks: not again
    held = [plan.memory.activations_bytes for plan in (full, some, plain)]
    assert held == sorted(held)


def test_pure_bf16_halves_weights_and_gradients_and_amp_does_not() -> None:
    full, amp, half = (
        plan_step(resnet50(9), Recipe(precision=p)) for p in (Precision.FP32, Precision.AMP_BF16, Precision.BF16)
    )
    assert amp.gradient_bytes == full.gradient_bytes == 2 * half.gradient_bytes
    assert half.memory.weights_bytes * 2 == full.memory.weights_bytes
    assert half.memory.activations_bytes < amp.memory.activations_bytes < full.memory.activations_bytes
