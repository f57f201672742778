"""The zoo against published figures, onnx's shape inference, and the same networks as files."""

from __future__ import annotations

import onnx
import pytest
from helpers import RESNET50, VGG19
from onnx import TensorProto, helper

from graphcost.errors import UnknownNameError, UsageError
from graphcost.graph import build_graph, totals
from graphcost.ir import BatchSource, Model, Phase
from graphcost.models_zoo import DOMAINS, build, describe, names, unet
from graphcost.models_zoo._builder import Builder
from graphcost.ops import forward_cost
from graphcost.sources import LoadOptions, load_model
from graphcost.training import plan_step

DTYPES = {
    "float32": TensorProto.FLOAT,
    "int64": TensorProto.INT64,
    "int32": TensorProto.INT32,
    "bool": TensorProto.BOOL,
}


@pytest.mark.parametrize("name", names())
def test_parameters_and_macs_are_the_published_ones(name: str) -> None:
    found = totals(build_graph(build(name, batch=1)))
    entry = describe(name)
    assert 2 * abs(found.params - entry.published_params) <= entry.rounding - entry.rounding % 2
    assert entry.published_macs in (None, found.macs)
    assert found.coverage.unknown == ()
    assert entry.citation and entry.published_source and entry.domain in DOMAINS


def test_figures_known_from_elsewhere() -> None:
    """torchvision's and transformers' own parameter counts; MACs of torch's counter at batch 1."""
    known = {
        "resnet50": (25_557_032, 4_089_184_256),
        "vgg16": (138_357_544, 15_470_264_320),
        "bert-base": (109_482_240, 11_174_215_680),
        # channels * (inputs * kernel) * positions, then the three fully connected layers
        "alexnet": (
            61_100_840,
            64 * 363 * 55**2
            + 192 * 1600 * 27**2
            + (384 * 1728 + 256 * 3456 + 256 * 2304) * 13**2
            + 256 * 6 * 6 * 4096
            + 4096 * 4096
            + 4096 * 1000,
        ),
        "mlp": (784 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10, 784 * 512 + 512 * 512 + 512 * 10),
    }
    for name, figures in known.items():
        found = totals(build_graph(build(name, batch=1)))
        assert (found.params, found.macs) == figures
    assert totals(build_graph(build("resnet50", batch=1))).buffers == 53_120


@pytest.mark.parametrize(("name", "path"), [("resnet50", RESNET50), ("vgg19", VGG19)], ids=["resnet50", "vgg19"])
def test_the_same_network_as_a_file_gives_the_same_numbers(name: str, path: object) -> None:
    zoo = build_graph(build(name, batch=4))
    file = build_graph(load_model(str(path), LoadOptions(batch=4)))
    assert totals(zoo).cost.matmul_flops == totals(file).cost.matmul_flops
    assert totals(zoo).params == totals(file).params and totals(zoo).buffers == totals(file).buffers
    ours, theirs = plan_step(zoo), plan_step(file)
    assert ours.total(Phase.BACKWARD).matmul_flops == theirs.total(Phase.BACKWARD).matmul_flops
    assert ours.gradient_bytes == theirs.gradient_bytes


def test_backward_of_bert_is_twice_forward() -> None:
    """3.000 x forward for a step (torch's counter): token ids need no gradient, but tables have no products."""
    plan = plan_step(build_graph(build("bert-base", batch=2)))
    assert plan.total(Phase.BACKWARD).matmul_flops == 2 * plan.total(Phase.FORWARD).matmul_flops


def test_a_tied_table_is_one_parameter_with_a_dense_gradient() -> None:
    graph = build_graph(build("gpt2", batch=1, dims={"seq": 16}))
    assert totals(graph).params == 124_439_808
    tied = [g for g in plan_step(graph).gradients if g.param == "wte.weight"]
    assert len(tied) == 1 and tied[0].rows_bytes is None and tied[0].bytes == 4 * 50257 * 768


def as_onnx(model: Model) -> onnx.ModelProto:
    """The zoo's operators as an ONNX file: parameters as inputs, constants as initializers."""
    nodes, initializers, known, made = [], {}, dict(model.inputs), set()
    for node in model.nodes:
        names = list(node.input_names)
        for index, param in node.params:
            names[index] = param.name
            known[param.name] = param.spec
        for index, (name, spec) in enumerate(zip(names, node.inputs, strict=True)):
            if name in known or spec is None:
                continue
            if index not in node.values:
                known[name] = spec
            elif name not in initializers:
                initializers[name] = helper.make_tensor(name, DTYPES[spec.dtype], spec.shape, node.values[index])
        nodes.append(helper.make_node(node.op_type, names, node.output_names, name=node.name, **node.attrs))
        made.update(node.output_names)
        known.update(dict(zip(node.output_names, node.outputs, strict=True)))
    inputs = [helper.make_tensor_value_info(n, DTYPES[s.dtype], s.shape) for n, s in known.items() if n not in made]
    outputs = [helper.make_empty_tensor_value_info(name) for name in model.outputs]
    graph = helper.make_graph(nodes, model.name, inputs, outputs, list(initializers.values()))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)


SMALL = {"seq": 8, "source": 8, "target": 8, "memory": 8, "seconds": 2}
"""Sizes of the tests that look at shapes alone."""


@pytest.mark.parametrize("name", names())
def test_every_shape_is_what_onnx_infers(name: str) -> None:
    dims = {key: SMALL[key] for key in describe(name).dims if key in SMALL}
    model = build(name, batch=2, dims=dims)
    assert len({node.output_names[0] for node in model.nodes}) == len(model.nodes)
    inferred = onnx.shape_inference.infer_shapes(as_onnx(model), check_type=True, strict_mode=True, data_prop=True)
    shapes = {
        info.name: tuple(dim.dim_value for dim in info.type.tensor_type.shape.dim)
        for info in (*inferred.graph.value_info, *inferred.graph.output)
    }
    for node in model.nodes:
        assert shapes[node.output_names[0]] == node.out.shape, node.name


SHARED_WORK = {"transformer-xl-base", "transformer-xl-large"}
"""Distances are embedded once for all samples."""


@pytest.mark.parametrize("name", sorted({*names()} - SHARED_WORK))
def test_every_weight_has_a_gradient_and_work_is_linear(name: str) -> None:
    model = build(name, batch=2)
    graph = build_graph(model)
    plan = plan_step(graph)
    weights = {param.name for node in model.nodes for _, param in node.params if param.trainable}
    assert {gradient.param for gradient in plan.gradients} == weights
    forward, backward = (plan.total(phase).matmul_flops for phase in (Phase.FORWARD, Phase.BACKWARD))
    assert forward < backward <= 2 * forward  # two products each, one where the input needs no gradient
    assert forward == 2 * totals(build_graph(build(name, batch=1))).cost.matmul_flops


def test_a_gpt_by_its_sizes() -> None:
    """175 billion: 12 l h^2 (1 + 13 / (12 h)) + (V + s) h of Narayanan et al. 2021, and 2 h."""
    layers, width, rows = 96, 12288, 51_200 + 2048
    found = totals(build_graph(build("gpt-h12288-l96", batch=1, dims={"seq": 2048})))
    assert found.params == 12 * layers * width**2 + 13 * layers * width + rows * width + 2 * width
    entry = describe("gpt-h12288-l96")
    assert entry.dims["heads"] == 96 and describe("gpt-h12288-l96-a64").dims["heads"] == 64
    same = build("gpt", batch=1, dims={"hidden": 2048, "layers": 12})
    assert totals(build_graph(same)) == totals(build_graph(build("gpt-h2048-l12", batch=1)))
    with pytest.raises(UnknownNameError):
        describe("gpt-h1024")


def test_sizes_of_measured_networks() -> None:
    """Counts stated for other sizes than the entry's own."""

    def params(name: str, **dims: int) -> int:
        return totals(build_graph(build(name, batch=1, dims=dims))).params

    # 60 boxes fewer a grid (3 * (80 - 20) channels), each a 1x1 convolution with a bias
    assert params("yolov3") - params("yolov3", image=448, classes=20) == 180 * (1024 + 512 + 256 + 3)
    assert params("wide-deep-criteo", deep_vocabulary=25_600_000) - params("wide-deep-criteo") == 22_400_000 * 16
    # 4 * 650 gates over inputs, states and two biases; a table and a head with bias
    assert params("lstm-lm-wikitext2", width=650) == 2 * 4 * 650 * 1302 + 33_278 * 1301
    tables = 2 * 128_256 * 8192 + 8192
    assert params("llama3-70b", layers=12) == tables + 12 * (70_553_706_496 - tables) // 80


@pytest.mark.parametrize(("name", "width"), [("bert-base-pretraining", 768), ("electra-base-pretraining", 256)])
def test_words_of_the_masked_positions_alone(name: str, width: int) -> None:
    """A dense layer to the table's 768 and the table's 30 522 rows, for 20 of 128 tokens in place of all."""
    every, masked, none = (
        totals(build_graph(build(name, batch=2, dims=dims))) for dims in ({}, {"predictions": 20}, {"predictions": 0})
    )
    assert every == none and every.params == masked.params
    assert every.macs - masked.macs == 2 * (128 - 20) * (width * 768 + 768 * 30_522)


def test_the_industrial_u_net_is_the_one_that_is_trained() -> None:
    """NVIDIA's scripts train the tiny variant. Their comment on the original counts blocks that halve nothing."""
    assert totals(build_graph(build("unet-industrial", batch=1))).params == unet.TINY.params() == 1_850_305
    assert unet.ORIGINAL.params() == 29_137_793
    assert unet.ORIGINAL.params(halved=False) == 36_950_273
    # 2x2 on the larger grid after nearest neighbour: 4 * 256 * 128 multiplications for each of 64 * 64 positions
    up = next(n for n in build("unet-industrial", batch=1).nodes if n.name == "bottleneck.up")
    assert up.out.shape == (1, 128, 64, 64)
    cost = forward_cost(up)
    assert cost is not None and cost.matmul_flops == 2 * 4 * 256 * 128 * 64 * 64


def test_sparse_tables_are_the_recommenders() -> None:
    sparse = {n for n in names() for node in build(n, batch=1).nodes for _, param in node.params if param.sparse}
    assert sparse == {
        "wide-deep-criteo",
        "lstm-lm-lm1b",
        "pai-nmt",
        "pai-bert",
        "pai-multi-interests",
        "pai-gcn",
        *(n for n in names() if n.startswith("dlrm")),
    }


def test_wrong_names_and_sizes() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'resnet50'"):
        build("resnet5O")
    with pytest.raises(UsageError, match="zoo:bert-base has no such size; did you mean 'seq'"):
        build("bert-base", dims={"sea": 3})
    with pytest.raises(UsageError, match="at least 1"):
        build("bert-base", dims={"seq": 0})


@pytest.mark.parametrize(
    ("name", "dims", "message"),
    [
        ("bert-base", {"seq": 513}, "--dim seq=513: zoo:bert-base takes at most 512 tokens"),
        (
            "bert-base-pretraining",
            {"predictions": 129},
            "predictions=129: .* takes at most the 128 tokens of a sequence",
        ),
        ("bert-base-pretraining", {"predictions": -1}, "at least 1"),
        ("gpt2", {"seq": 1025}, "--dim seq=1025: zoo:gpt2 takes at most 1024 tokens"),
        ("vit-base-16", {"image": 225}, "--dim image=225: zoo:vit-base-16 takes multiples of its 16-pixel patch"),
        ("yolov3", {"image": 450}, "--dim image=450: zoo:yolov3 takes multiples of 32"),
        ("unet3d-kits19", {"side": 48}, "--dim side=48: zoo:unet3d-kits19 takes multiples of 32"),
        ("bart-large", {"target": 1025}, "--dim target=1025: zoo:bart-large takes at most 1024 tokens"),
        ("gpt", {"heads": 17}, "--dim heads=17: zoo:gpt takes divisors of its hidden size 1024"),
        ("vgg16", {"image": 16}, r"\(MaxPool\) would have shape \[1, 512, 0, 0\]; the sizes given are too small"),
    ],
)
def test_sizes_that_a_model_cannot_take(name: str, dims: dict[str, int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        build(name, batch=1, dims=dims)


def test_another_image_size_says_that_the_classifier_follows() -> None:
    assert build("vgg16", batch=1).notes == build("alexnet", batch=1).notes == ()
    (note,) = build("vgg16", batch=1, dims={"image": 256}).notes
    assert note.startswith("assumed: the first fully connected layer reads 8x8 positions, the published weights 7x7")


def test_a_parameter_made_twice_is_a_defect() -> None:
    builder = Builder("x", 1, BatchSource.OPTION)
    builder.param("w", (2,))
    with pytest.raises(ValueError, match="'w' is made twice"):
        builder.param("w", (3,))
