"""Where stages begin: by time, and by layers as Megatron-LM and DeepSpeed cut."""

from __future__ import annotations

from itertools import pairwise

import pytest

from graphcost.analysis import analyze_graph
from graphcost.errors import PlacementError, UnknownNameError
from graphcost.graph import build_graph
from graphcost.models_zoo import build
from graphcost.parallel.cuts import crossings, cut_by_layers
from graphcost.parallel.mesh import parse_mesh, spoken
from graphcost.placing import AnalysisOptions, resolve

GPT = build("gpt-h1024-l12", batch=1, dims={"seq": 128})


@pytest.mark.parametrize("stages", [2, 3, 4, 6, 12])
def test_stages_of_equal_layers(stages: int) -> None:
    places = cut_by_layers(GPT, crossings(GPT), stages)
    begun = [GPT.nodes[place.position].module.split(".")[1] for place in places]
    assert begun == [str(12 // stages * stage) for stage in range(1, stages)]


def test_layers_that_stages_do_not_divide_differ_by_one() -> None:
    places = cut_by_layers(GPT, crossings(GPT), 5)
    first = [0, *(int(GPT.nodes[place.position].module.split(".")[1]) for place in places), 12]
    assert {b - a for a, b in pairwise(first)} == {2, 3}


def test_more_stages_than_layers_are_refused() -> None:
    with pytest.raises(PlacementError, match="13 stages are more than the 12 layers"):
        cut_by_layers(GPT, crossings(GPT), 13)


def test_a_cut_by_time_is_never_slower() -> None:
    graph = build_graph(build("gpt-h1024-l12", batch=8, dims={"seq": 1024}))  # GPUs decide, not their hosts
    for pp in (2, 4):
        steps = []
        for cut in ("", ",cut=layers"):
            options = AnalysisOptions(arch=f"pp={pp},dp=1{cut}", gpus=pp, precision="bf16")
            steps.append(analyze_graph(graph, options, resolve(options)).step.step_s)
        assert steps[0] <= steps[1] * 1.001


def test_the_word_is_checked_and_told() -> None:
    assert parse_mesh("pp=4,cut=layers").name == "tp=1,pp=4,cut=layers"
    assert spoken("tp=1,pp=4,dp=1,cut=layers,mb=4") == "pp=4,cut=layers"
    with pytest.raises(UnknownNameError, match=r"no cut named 'layer'; did you mean 'layers'\? \(time, layers\)"):
        parse_mesh("pp=4,cut=layer")
