"""The op graph and the Python API on real graphs."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import networkx as nx
import onnx
import pandas as pd
import pytest
from helpers import LIGHT, RESNET50

import graphcost
from graphcost.errors import UnknownNameError, UsageError
from graphcost.graph import build_graph, operators, parameters, stable_ids, totals
from graphcost.graph_io import graph_to_dict, read_graph, to_dot, to_graphml
from graphcost.models_zoo import build
from graphcost.report.graph_html import graph_html
from graphcost.sources import LoadOptions, load_model


@cache
def resnet() -> nx.MultiDiGraph:
    return graphcost.load(RESNET50)


def test_it_is_an_ordinary_networkx_graph() -> None:
    graph = resnet()
    assert type(graph) is nx.MultiDiGraph and nx.is_directed_acyclic_graph(graph)
    assert graph.number_of_nodes() == 176
    for _, data in graph.nodes(data=True):
        assert data["op"].outputs[0] is not None and data["cost"] is not None
    for producer, reader, data in graph.edges(data=True):
        assert data["value"] in graph.nodes[producer]["op"].output_names
        assert graph.nodes[reader]["op"].inputs[data["slot"]] == data["tensor"]


def test_order_is_topological_and_stable() -> None:
    order = {node: index for index, node in enumerate(resnet())}
    assert all(order[a] < order[b] for a, b in resnet().edges())
    assert list(graphcost.load(RESNET50)) == list(resnet())


def test_ids_survive_new_names_and_another_batch() -> None:
    model = load_model(str(RESNET50), LoadOptions())
    renamed = tuple(
        replace(
            node,
            name=f"other{index}",
            input_names=tuple(f"v_{name}" if name else "" for name in node.input_names),
            output_names=tuple(f"v_{name}" for name in node.output_names),
        )
        for index, node in enumerate(model.nodes)
    )
    assert stable_ids(renamed) == stable_ids(model.nodes)
    assert stable_ids(load_model(str(RESNET50), LoadOptions(batch=8)).nodes) == stable_ids(model.nodes)
    assert len(set(stable_ids(model.nodes))) == len(model.nodes)


def test_a_local_change_keeps_distant_ids() -> None:
    nodes = load_model(str(RESNET50), LoadOptions()).nodes
    changed = (*nodes[:50], replace(nodes[50], attrs={**nodes[50].attrs, "group": 2}), *nodes[51:])
    kept = set(stable_ids(nodes)) & set(stable_ids(changed))
    assert len(kept) > 0.9 * len(nodes)


@pytest.mark.parametrize("path", sorted(LIGHT.glob("*.onnx")), ids=lambda path: path.stem)
def test_every_light_model_is_counted_whole(path: Path) -> None:
    graph = graphcost.load(path)
    found = totals(graph)
    assert found.coverage.unknown == () and found.macs > 0
    assert found.coverage.counted + found.coverage.free == found.ops
    assert sum(param.numel for param in parameters(graph).values()) == found.params + found.buffers


PUBLISHED = {
    # matmul-class MACs per image (hand count of convolutions and products), stored parameters
    "light_bvlc_alexnet": (654_560_384, 60_965_224),
    "light_densenet121": (2_834_161_664, 8_062_504),
    "light_inception_v1": (1_431_556_352, 6_998_552),
    "light_resnet50": (4_089_184_256, 25_557_032),
    "light_squeezenet": (349_151_936, 1_235_496),
    "light_vgg19": (19_632_062_464, 143_667_240),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_macs_and_parameters_of_well_known_networks(name: str) -> None:
    found = totals(graphcost.load(LIGHT / f"{name}.onnx"))
    assert (found.macs, found.params) == PUBLISHED[name]


@pytest.mark.parametrize("name", ["mlp", "bert-base", "gpt2"])
def test_a_saved_graph_loads_equal(name: str, tmp_path: Path) -> None:
    dims = {} if name == "mlp" else {"seq": 8}
    graph = build_graph(build(name, batch=2, dims=dims))
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(graph_to_dict(graph)))
    again = build_graph(read_graph(path))
    assert totals(again) == totals(graph)
    assert list(operators(again)) == list(operators(graph))
    assert graph_to_dict(again)["edges"] == graph_to_dict(graph)["edges"]


def test_exports_are_read_by_others() -> None:
    graphml = nx.parse_graphml(to_graphml(resnet()), force_multigraph=True)
    assert graphml.number_of_nodes() == 176 and graphml.number_of_edges() == resnet().number_of_edges()
    dot = to_dot(resnet())
    assert dot.startswith("digraph") and dot.count("->") == resnet().number_of_edges()
    page = graph_html(resnet())
    assert page.count("<tr id=") == 176 and "<script" not in page


def test_analysis_as_python_objects() -> None:
    result = graphcost.analyze(RESNET50, gpus=8, batch=16)
    frame = result.to_dataframe()
    assert isinstance(frame, pd.DataFrame) and len(frame) == result.graph.ops
    assert frame.matmul_flops.sum() == result.graph.matmul_flops
    assert json.loads(result.to_json()) == result.to_dict()
    assert "<table>" in result._repr_html_() and "light_resnet50" in result.report("markdown")
    assert result.placement.global_batch == 128
    with pytest.raises(AttributeError):
        result.step.step_s = 0.0  # type: ignore[misc]


def test_a_model_proto_is_a_source() -> None:
    proto = onnx.load(RESNET50)
    assert graphcost.analyze(proto, gpus=8).graph == graphcost.analyze(RESNET50, gpus=8).graph


def test_misuse_of_the_api_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"cannot read a model from builtins\.int"):
        graphcost.load(3)
    with pytest.raises(UsageError, match=r"no option 'gpsu'; did you mean 'gpus'"):
        graphcost.analyze(RESNET50, gpsu=8)
    with pytest.raises(UnknownNameError, match=r"did you mean 'resnet50'"):
        graphcost.load("zoo:resnet5O")
    with pytest.raises(AttributeError, match="no attribute 'analyse'"):
        graphcost.analyse  # noqa: B018
