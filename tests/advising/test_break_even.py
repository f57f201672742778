"""Break-even values against the paper's equations solved by hand, and against ``analyze`` on both sides."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers import LIGHT, RESNET50, VGG19
from hypothesis import given, settings
from hypothesis import strategies as st
from one_product import (
    NVLINK,
    PCIE,
    UTILISATION,
    WEIGHT_BYTES,
    one_product,
    paper,
    rest_s,
    ring_bytes,
)

from graphcost.advising import Advising, advise_model
from graphcost.advising.axes import CLEAR, Axis, Ladder, path
from graphcost.advising.result import BorderInfo, BreakEvenInfo
from graphcost.analysis import analyze_with
from graphcost.frontends.options import LoadOptions
from graphcost.placing import AnalysisOptions
from graphcost.resources import RESOURCES
from graphcost.what_if import WhatIf


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(one_product(tmp_path_factory.mktemp("advise") / "product.onnx"))


def break_even(found: Advising, name: str) -> BreakEvenInfo:
    return next(one for one in found.break_evens if one.resource == name)


def crossed(border: BorderInfo | None) -> tuple[float, float]:
    assert border is not None
    return border.under.value, border.over.value


def test_the_base_is_what_the_equations_say(product: str) -> None:
    """T_w = 15.7 MB over 70 % of 25 Gb/s, then over 70 % of 50 GB/s."""
    step = analyze_with(product, paper()).step
    weight_s = ring_bytes(16) / (UTILISATION * 25e9 / 8) + ring_bytes(16) / (UTILISATION * NVLINK)
    assert ring_bytes(16) == 15_728_640
    assert step.exposed_comm_s == pytest.approx(weight_s)
    assert step.step_s == pytest.approx(rest_s(64) + weight_s)
    assert round(step.comm_share, 3) == 0.956 and step.verdict == "flagged"


def test_network_by_hand(product: str) -> None:
    """T_w = L/(1-L) (T_d + T_c) solved for the network's rate: 187.2 Gb/s."""
    allowed_s = 0.8 / 0.2 * rest_s(64) - ring_bytes(16) / (UTILISATION * NVLINK)
    by_hand = ring_bytes(16) / (UTILISATION * allowed_s)
    under, over = crossed(break_even(advise_model(product, paper()), "network").clear)
    assert round(by_hand * 8 / 1e9, 1) == 187.2
    assert over < by_hand <= under
    assert (under, over) == (188e9 / 8, 187e9 / 8)


def test_nvlink_by_hand(product: str) -> None:
    """One server: T_w = S_w / (e B) alone; at a half, B = S_w / (e (T_d + T_c))."""
    by_hand = ring_bytes(8) / (UTILISATION * rest_s(64))
    found = advise_model(product, paper(gpus=8, limit=0.5))
    under, over = crossed(break_even(found, "nvlink").clear)
    assert over < by_hand <= under and under - over == pytest.approx(0.1e9)
    assert round(by_hand / 1e9, 1) == 59.5 and under == 59.6e9


def test_pcie_by_hand(product: str) -> None:
    """1wNg, at a half: 2 W / (e B) = 8 S_d / (e B) + T_c, so B = (2 W - 8 S_d) / (e T_c)."""
    input_bytes, computing_s = 64 * 1024 * 4, rest_s(64, pcie=1e30)
    by_hand = (2 * WEIGHT_BYTES - 8 * input_bytes) / (UTILISATION * computing_s)
    under, over = crossed(break_even(advise_model(product, paper(gpus=8, limit=0.5, arch="local")), "pcie").clear)
    assert over < by_hand <= under and under - over == pytest.approx(1e9)


def test_batch_by_hand(product: str) -> None:
    """T_d and T_c's FLOPs grow with the batch, the update does not: b = (T_w (1-L)/L - update) / per sample."""
    weight_s = ring_bytes(16) / (UTILISATION * 25e9 / 8) + ring_bytes(16) / (UTILISATION * NVLINK)
    fixed_s = rest_s(0)
    by_hand = (weight_s * 0.2 / 0.8 - fixed_s) / (rest_s(1) - fixed_s)
    under, over = crossed(break_even(advise_model(product, paper()), "batch").clear)
    assert over < by_hand <= under and under == over + 1
    assert under == 363


def test_no_network_is_fast_enough(product: str) -> None:
    """At a half, NVLink's part alone, 449 us, is longer than the rest, 352 us: 56.0 % on an unlimited network."""
    nvlink_s = ring_bytes(16) / (UTILISATION * NVLINK)
    found = break_even(advise_model(product, paper(limit=0.5)), "network")
    assert found.clear is None and found.even is None
    assert found.end.text == "without limit"
    assert found.end.comm_share == pytest.approx(nvlink_s / (nvlink_s + rest_s(64)), abs=1e-4)
    assert round(found.end.comm_share, 3) == 0.560
    assert found.note is not None and found.note.startswith("no rate is enough")


def test_margin_by_hand(product: str) -> None:
    """A clear model's network may fall to the same value that a flagged one's has to rise to."""
    clear = replace(paper(), network_bytes_per_s=400e9 / 8)
    found = advise_model(product, clear)
    assert found.verdict == "clear" and found.advice == ()
    network = break_even(found, "network")
    assert network.direction == "down"
    assert crossed(network.clear) == (188e9 / 8, 187e9 / 8)


ALEXNET = LIGHT / "light_bvlc_alexnet.onnx"
CASES = {
    "vgg19-cloud": (VGG19, AnalysisOptions(gpus=16, cluster="aws-p3.16xlarge", load=LoadOptions(32))),
    "vgg19-roce": (VGG19, AnalysisOptions(gpus=16, cluster="horovod-p100-25roce", load=LoadOptions(16))),
    "alexnet-clear": (ALEXNET, AnalysisOptions(gpus=8, load=LoadOptions(64))),
    "alexnet-pcie": (
        ALEXNET,
        AnalysisOptions(gpus=8, cluster="pcie-8x-gen3", load=LoadOptions(4), max_comm_share=0.3),
    ),
    "vgg19-ps": (VGG19, AnalysisOptions(arch="ps", gpus=16, cluster="horovod-p100-40gbe", load=LoadOptions(16))),
}


@pytest.mark.parametrize("name", CASES)
def test_both_sides_are_what_analyze_says(name: str) -> None:
    source, options = CASES[name]
    found = advise_model(str(source), options)
    borders = [(one, border) for one in found.break_evens for border in (one.clear, one.even) if border]
    assert borders
    for one, border in borders:
        for side in (border.under, border.over):
            step = analyze_with(str(source), RESOURCES[one.resource].put(options, side.value)).step
            assert (side.comm_share, side.comm_share_high, side.verdict) == (
                step.comm_share, step.comm_share_high, step.verdict,
            )  # fmt: skip
        if border is one.clear:
            assert border.under.verdict == "clear" != border.over.verdict
        else:
            assert border.under.comm_share <= options.max_comm_share < border.over.comm_share


def test_over_the_break_even_a_faster_network_stays_clear() -> None:
    slow = AnalysisOptions(gpus=16, cluster="dgx-a100", network_bytes_per_s=10e9 / 8, load=LoadOptions(32))
    network = break_even(advise_model(str(VGG19), slow), "network")
    assert network.clear is not None and network.turns == 1
    for factor in (1, 1.5, 3, 10, 1000):
        rate = network.clear.under.value * factor
        assert analyze_with(str(VGG19), replace(slow, network_bytes_per_s=rate)).step.verdict == "clear"


def test_a_verdict_that_turns_back_is_told() -> None:
    """From 52 Gb/s on the ring waits for PCIe, whose interval is wider than the network's."""
    options = AnalysisOptions(
        gpus=16,
        cluster="horovod-p100-25roce",
        network_bytes_per_s=24e9 / 8,
        load=LoadOptions(32),
        max_comm_share=0.216,
    )
    network = break_even(advise_model(str(RESNET50), options), "network")
    if network.turns < 2:
        pytest.fail("the case no longer turns back; look for another")
    assert network.note is not None and "turns 2 times" in network.note and "back at" in network.note
    again = RESOURCES["network"].parse(network.note.split("back at ")[1].split(";")[0])
    step = analyze_with(str(RESNET50), replace(options, network_bytes_per_s=again)).step
    assert network.clear is not None and again > network.clear.under.value
    assert network.clear.under.verdict == "clear" != step.verdict


def test_a_capped_network_is_said_to_make_no_difference() -> None:
    """Kernel sockets between virtual machines give 0.6 GB/s, whatever the NIC."""
    source, options = CASES["vgg19-cloud"]
    network = break_even(advise_model(str(source), options), "network")
    assert network.clear is None and network.note == (
        "makes no difference: tcp-cloud sockets have a rate of their own"
    )


def test_a_walk_counts_its_turns() -> None:
    axis = Axis(WhatIf("zoo:mlp", AnalysisOptions(gpus=16, cluster="horovod-p100-40gbe")), RESOURCES["gpus"])
    assert axis.walk(1, 16, 1.0) == list(range(1, 17))
    met = "".join("-+"[CLEAR.met(axis.outcome(gpus))] for gpus in range(1, 17))
    assert axis.turns(CLEAR) == met.count("+-") + met.count("-+") > 0


rates = st.sampled_from(["network", "nvlink", "pcie", "mem-bandwidth", "peak"])


@given(name=rates, rung=st.integers(900 * 6, 900 * 15))
def test_rungs_are_three_digits_and_what_is_told_is_what_is_tried(name: str, rung: int) -> None:
    ladder = Ladder(RESOURCES[name])
    value = ladder.value(rung)
    assert ladder.value(rung - 1) < value < ladder.value(rung + 1)
    assert ladder.below(value) == ladder.above(value) == rung
    assert RESOURCES[name].parse(RESOURCES[name].flag(value).split()[1]) == value


@given(name=rates, value=st.floats(1e6, 1e15))
def test_any_value_lies_between_two_rungs(name: str, value: float) -> None:
    ladder = Ladder(RESOURCES[name])
    below, above = ladder.below(value), ladder.above(value)
    assert above - below in (0, 1)
    assert ladder.value(below) <= value * (1 + 1e-9) and ladder.value(above) >= value * (1 - 1e-9)


@given(start=st.integers(1, 300), end=st.integers(1, 300), ratio=st.floats(1.0, 3.0))
def test_a_path_goes_one_way_and_arrives(start: int, end: int, ratio: float) -> None:
    walked = [start, *path(Ladder(RESOURCES["batch"]), start, end, ratio)]
    assert walked[-1] == end
    assert walked == sorted(set(walked), reverse=end < start)


@settings(max_examples=15)
@given(limit=st.floats(0.05, 0.95), gpus=st.sampled_from([9, 16, 24]), batch=st.sampled_from([8, 64, 300]))
def test_network_is_inverted_wherever_the_limit_is(product: str, limit: float, gpus: int, batch: int) -> None:
    servers = -(-gpus // 8)
    sharing = -(-gpus // servers)
    rest = rest_s(batch, PCIE, sharing)
    allowed_s = limit / (1 - limit) * rest - ring_bytes(gpus) / (UTILISATION * NVLINK)
    by_hand = ring_bytes(gpus) / (UTILISATION * allowed_s) if allowed_s > 0 else None
    axis = Axis(WhatIf(product, paper(batch, gpus, limit)), RESOURCES["network"])
    tried = axis.walk(900 * 5, 900 * 15, 3.0)
    border = axis.border(CLEAR, tried)
    if by_hand is None:
        assert border is None and not CLEAR.met(axis.outcome(tried[-1]))
    elif 1e6 / 8 < by_hand < 1e14 / 8:
        assert border is not None
        over, under = map(axis.ladder.value, border)
        assert over * (1 - 1e-9) <= by_hand <= under * (1 + 1e-9)
