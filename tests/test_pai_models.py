"""The PAI study's six case studies from their graphs: against its (recalled) tables, and layer by layer by hand."""

from __future__ import annotations

from functools import cache

import pytest

from benchmarks.pai_models import TOLERANCE, Compared, compared
from graphcost.engine.paper import PaperFeatures, paper_times
from graphcost.graph import build_graph, parameters
from graphcost.ir import BatchSource, Model, OpNode, Phase
from graphcost.models_zoo import build, pai_gcn, pai_interests, pai_speech
from graphcost.models_zoo.pai_study import CASES
from graphcost.ops import forward_cost
from graphcost.training import plan_step

NAMES = sorted(CASES)


@cache
def case(name: str) -> Compared:
    return compared(name, CASES[name])


@cache
def model(name: str) -> Model:
    return build(name)


def node(name: str, part: str) -> OpNode:
    return next(node for node in model(name).nodes if node.name == part)


def flops(name: str, part: str) -> int:
    cost = forward_cost(node(name, part))
    assert cost is not None
    return cost.matmul_flops


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_the_sizes_of_table_four(name: str) -> None:
    """Dense within 2.1 % (BERT's "1 GB"), tables within 0.7 % (BERT's word pieces and positions)."""
    study, found = CASES[name], case(name)
    width = 4 * study.copies
    assert width * found.dense_values == pytest.approx(study.dense_bytes, rel=0.022)
    assert width * found.table_values == pytest.approx(study.embedding_bytes, rel=0.008)


@pytest.mark.parametrize("name", NAMES)
def test_flops_and_traffic_are_those_of_table_five(name: str) -> None:
    study, found = CASES[name], case(name).features
    assert found.flops == pytest.approx(study.flops, rel=TOLERANCE)
    assert found.dense_weight_bytes is not None and found.sparse_weight_bytes is not None
    traffic_bytes = found.dense_weight_bytes + found.sparse_weight_bytes
    if study.arch == "single":  # sends nothing; the table's figure is 4 (n-1)/n W of eight GPUs
        assert traffic_bytes == 0
        traffic_bytes = 3.5 * 4 * case(name).dense_values
    assert traffic_bytes == pytest.approx(study.weight_bytes, rel=0.02)
    if name != "pai-nmt":  # 22 kB are fewer than one int32 id for each of 12,288 tokens
        assert found.input_bytes == pytest.approx(study.input_bytes, rel=0.02)


@pytest.mark.parametrize("name", NAMES)
def test_every_difference_over_the_tolerance_says_why(name: str) -> None:
    assert [row for row in case(name).rows() if row.missed] == []


@pytest.mark.parametrize("name", NAMES)
def test_steps_differ_by_memory_traffic_alone(name: str) -> None:
    """Nothing was fitted to S_mem. With the study's in its place, steps agree within 5 %."""
    found, study = case(name), CASES[name]
    features = found.features
    weights = (features.dense_weight_bytes or 0.0) + (features.sparse_weight_bytes or 0.0)
    mixed = PaperFeatures(features.input_bytes, features.flops, study.mem_bytes, weights)
    place = found.choice.placement
    times = paper_times(mixed, place.cluster, found.choice.arch.paper_media(place))
    assert times.step_s == pytest.approx(found.times_of_the_study().step_s, rel=TOLERANCE)
    assert found.step_s == pytest.approx(found.ours.step_s)


@pytest.mark.parametrize("name", NAMES)
def test_the_batch_is_the_study_s_unless_told(name: str) -> None:
    assert model(name).batch == CASES[name].batch and model(name).batch_source is BatchSource.FILE
    told = build(name, batch=3)
    assert told.batch == 3 and told.batch_source is BatchSource.OPTION
    assert any(note.startswith("assumed: ") for note in told.notes) == (name != "pai-resnet50")


def test_tables_are_gathered_rows() -> None:
    """239 GB with a slot: 120 GB of fp32 values in all, of which a step reads and sends the rows it looks up."""
    graph = build_graph(model("pai-multi-interests"))
    table = parameters(graph)["item_table.weight"]
    assert table.sparse and table.spec.shape == (pai_interests.ITEM_ROWS, 64)
    assert table.spec.size_bytes == pytest.approx(239.45e9 / 2, rel=1e-3)
    gradients = {gradient.param: gradient for gradient in plan_step(graph).gradients}
    assert gradients["item_table.weight"].sent_bytes == 2048 * 101 * (64 * 4 + 8)
    # more look-ups than rows: every row once
    assert gradients["attribute_table.weight"].sent_bytes == 22_000 * 64 * 4


def test_input_copies_by_hand() -> None:
    assert case("pai-resnet50").features.input_bytes == 64 * 3 * 224 * 224 * 4
    assert case("pai-bert").features.input_bytes == 12 * 320 * 3 * 4
    assert case("pai-speech").features.input_bytes == 32 * 24 * 161 * 1601 * 4
    assert case("pai-multi-interests").features.input_bytes == 2048 * (101 + 100 * 158) * 8
    assert case("pai-gcn").features.input_bytes == 512 * (1 + 14 + 14 * 20) * 8


def test_traffic_by_hand() -> None:
    """PS: 2 W. PEARL: dense part 4 (n-1)/n W, rows out and back."""
    interests, gcn = case("pai-multi-interests"), case("pai-gcn")
    assert interests.features.dense_weight_bytes == 2 * 4 * interests.dense_values
    assert interests.features.sparse_weight_bytes == 2 * (2048 * 101 * 264 + 22_000 * 256)
    assert gcn.features.dense_weight_bytes == 4 * 7 / 8 * 4 * gcn.dense_values
    assert gcn.features.sparse_weight_bytes == 2 * 512 * 295 * (17 * 128 * 4 + 8)


@pytest.mark.parametrize(
    ("name", "part", "macs"),
    [
        # spliced convolution: every position of 81 x 801 reads 24 planes of 41 x 11, for 32 channels
        ("pai-speech", "conv.0", 32 * 81 * 801 * 32 * 24 * 41 * 11),
        # LSTM: four gates over 1,312 features and 768 states, both directions, 401 steps
        ("pai-speech", "rnns.0.rnn", 32 * 401 * 2 * 4 * 768 * (32 * 41 + 768)),
        ("pai-multi-interests", "attention.0.q", 2048 * 100 * 64 * 64),
        # each of 100 behaviours against each, 4 heads of 16
        ("pai-multi-interests", "attention.0.scores", 2048 * 4 * 100 * 100 * 16),
        ("pai-multi-interests", "interests.weighted", 2048 * 4 * 100 * 64),
        # 295 nodes a sample, 17 fields of 128 to 128
        ("pai-gcn", "fields", 512 * 295 * 17 * 128 * 128),
        # target and 14 neighbours, each beside the mean of its own
        ("pai-gcn", "convolution.0.linear", 512 * 15 * 256 * 128),
        ("pai-gcn", "convolution.1.linear", 512 * 1 * 256 * 128),
        ("pai-bert", "encoder.layer.0.intermediate.dense", 12 * 320 * 768 * 3072),
        ("pai-bert", "qa_outputs", 12 * 320 * 768 * 2),
        ("pai-nmt", "head", 192 * 32 * 512 * 50_000),
    ],
)
def test_one_layer_of_each_kind_by_hand(name: str, part: str, macs: int) -> None:
    assert flops(name, part) == 2 * macs


def test_strides_of_speech() -> None:
    """1,601 frames, halved twice (kernels of 11, padding of 5)."""
    assert pai_speech.STRIDE == 2
    assert node("pai-speech", "conv.0").out.shape == (32, 32, 81, 801)
    assert node("pai-speech", "conv.3").out.shape == (32, 32, 41, 401)


@pytest.mark.parametrize(
    ("name", "dims", "grown"),
    [
        ("pai-gcn", {"far": 2 * pai_gcn.FAR}, "fields"),
        ("pai-multi-interests", {"behaviours": 2 * pai_interests.BEHAVIOURS}, "attention.0.q"),
        ("pai-speech", {"seconds": 32}, "rnns.0.rnn"),
    ],
)
def test_sizes_change_work_and_leave_weights(name: str, dims: dict[str, int], grown: str) -> None:
    larger = build_graph(build(name, dims=dims))
    assert parameters(larger) == parameters(build_graph(model(name)))
    part = next(node for node in larger.graph["model"].nodes if node.name == grown)
    cost = forward_cost(part)
    assert cost is not None and cost.matmul_flops == pytest.approx(2 * flops(name, grown), rel=0.06)


def test_a_layer_more_is_one_attention_more() -> None:
    """The study varied the number of attention layers: four projections and one layer of 64 x 64, two norms."""
    sizes = [sum(p.numel for p in parameters(build_graph(build("pai-multi-interests", dims={"layers": n}))).values())
             for n in (1, 2, 3)]  # fmt: skip
    assert sizes[1] - sizes[0] == sizes[2] - sizes[1] == 5 * (64 * 64 + 64) + 4 * 64


def test_backward_of_the_tables_owners_is_twice_forward() -> None:
    """Nothing before the first product is an input that needs no gradient: its rows are trained."""
    plan = plan_step(build_graph(model("pai-gcn")))
    assert plan.total(Phase.BACKWARD).matmul_flops == 2 * plan.total(Phase.FORWARD).matmul_flops
