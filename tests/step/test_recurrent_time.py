"""Time of recurrent layers: steps one after another, each with the weights of the state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graphcost.device_db import load_device
from graphcost.engine.roofline import DeviceModel
from graphcost.ir import MAC_FLOPS, OpCost, Phase
from graphcost.ops import OpClass
from graphcost.recipe import Recipe
from graphcost.training import PlannedOp
from graphcost.training.work import Part, Work

BATCH, HIDDEN, GATES = 16, 1024, 4
V100 = load_device("v100-sxm2-16")


def layer(steps: int, *, batch: int = BATCH, directions: int = 1) -> PlannedOp:
    """An LSTM's states alone in fp32: weights once, states in and out at every step."""
    flops = MAC_FLOPS * steps * batch * directions * GATES * HIDDEN * HIDDEN
    states = 4 * steps * batch * directions * HIDDEN
    cost = OpCost(flops, 0, 4 * directions * GATES * HIDDEN**2 + states, states)
    work = Work("recurrent", Part.FORWARD, batch, GATES * HIDDEN, HIDDEN, directions, steps=steps)
    return PlannedOp("rnn", "rnn", "LSTM", OpClass.RECURRENT, Phase.FORWARD, cost, 1, "float32", 1, work)


def seconds(op: PlannedOp) -> float:
    return DeviceModel(V100, Recipe()).time(op).time_s


def test_a_small_batch_fetches_the_weights_at_every_step() -> None:
    """Two samples: 16.8 MB of weights and 0.02 MB of states a step, and 40 us from one to the next."""
    model = DeviceModel(V100, Recipe())
    row, rules = model.constants.row("recurrent"), model.constants.rules
    rate = row.memory * V100.mem_bytes_per_s
    step_s = (4 * GATES * HIDDEN**2 + 2 * 4 * 2 * HIDDEN) / rate + rules["recurrent_step_s"]
    launch_s = rules["launch"] * V100.launch_s
    assert seconds(layer(25, batch=2)) == pytest.approx(25 * step_s + launch_s, rel=0.05)  # a tile takes as long


@pytest.mark.parametrize(("batch", "measured_us"), [(16, 77), (64, 88), (128, 130)])
def test_steps_that_deepbench_measured(batch: int, measured_us: float) -> None:
    """baidu-research/DeepBench, V100, fp32, 1024 hidden, 25 steps: 1.923, 2.205 and 3.249 ms forward."""
    assert seconds(layer(25, batch=batch)) / 25 * 1e6 == pytest.approx(measured_us, rel=0.25)


def test_steps_add_up_and_directions_run_side_by_side() -> None:
    one, ten = seconds(layer(1)), seconds(layer(10))
    launch_s = DeviceModel(V100, Recipe()).constants.rules["launch"] * V100.launch_s
    assert ten - launch_s == pytest.approx(10 * (one - launch_s))
    both = seconds(layer(10, directions=2))
    assert ten < both < 2 * ten


def test_a_batch_pays_once_it_fills_the_product() -> None:
    """Eight times the samples of a few rows cost little; of many, nearly eight times as much."""
    assert seconds(layer(10, batch=8)) > 0.5 * seconds(layer(10, batch=64)) / 2
    assert seconds(layer(10, batch=8192)) > 6 * seconds(layer(10, batch=1024))


def test_one_product_of_the_same_size_is_faster() -> None:
    """What the order of the steps costs: the same products at once."""
    op = layer(100)
    assert op.work is not None
    at_once = replace(op, work=replace(op.work, m=100 * BATCH, steps=0))
    assert seconds(op) > 3 * seconds(at_once)
