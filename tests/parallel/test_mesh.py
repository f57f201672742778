"""Words of a mesh, and what graph or cluster cannot hold, each refused by name."""

from __future__ import annotations

import pytest

from graphcost.analysis import analyze
from graphcost.errors import GraphcostError, PlacementError, UnknownNameError, UsageError
from graphcost.parallel.mesh import Mesh, Schedule, parse_mesh


@pytest.mark.parametrize(
    ("text", "mesh"),
    [
        ("tp=4,pp=2,dp=8", Mesh(4, 2, 8)),
        (" PP=2 , tp=4", Mesh(4, 2)),
        ("tp=2,sp=1,zero=3", Mesh(2, sequence=True, zero=3)),
        ("pp=4,v=2,mb=8", Mesh(pp=4, chunks=2, micro_batches=8, schedule=Schedule.INTERLEAVED)),
        ("dp=8,ep=4", Mesh(dp=8, experts=4)),
    ],
)
def test_words(text: str, mesh: Mesh) -> None:
    assert parse_mesh(text) == mesh
    assert parse_mesh(mesh.name) == mesh


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("tpp=4", UnknownNameError, "no dimension named 'tpp'; did you mean 'tp'?"),
        ("pp=2,schedule=1f1", UnknownNameError, "no schedule named '1f1'; did you mean '1f1b'?"),
        ("tp=0", UsageError, "tp=0: a whole number from 1 to"),
        ("tp=two", UsageError, "tp=two: a whole number from 1 to"),
        ("tp=4,tp=2", UsageError, "tp is given twice"),
        ("tp=4,pp", UsageError, "'pp' is no size; write tp=4,pp=2,dp=8"),
        ("zero=4", UsageError, "zero=4: a whole number from 0 to 3"),
        ("sp=1", UsageError, "sp=1 divides the sequence among tp GPUs"),
        ("sp=2,tp=2", UsageError, "sp=2: 1 divides the sequence, 0 does not"),
        ("v=2", UsageError, "interleaved stages hold several chunks"),
        ("pp=2,schedule=interleaved", UsageError, "interleaved stages hold several chunks"),
        ("pp=2,v=2,schedule=gpipe", UsageError, "v=2 goes with schedule=interleaved, not gpipe"),
        ("pp=4,v=2,mb=6", PlacementError, "in rounds of pp=4, and mb=6 is no multiple"),
        ("dp=4,ep=2,zero=1", UsageError, "ep and zero together are not modelled"),
    ],
)
def test_words_that_are_none(text: str, kind: type[GraphcostError], says: str) -> None:
    with pytest.raises(kind, match="--arch") as caught:
        parse_mesh(text)
    assert says in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("source", "arch", "options", "says"),
    [
        ("gpt-h1024-l12", "tp=4,pp=2,dp=2", {"gpus": 8}, "tp=4 x pp=2 x dp=2 does not make 8 GPUs; --gpus 16 would"),
        ("gpt-h1024-l12", "tp=4,pp=4", {"gpus": 24}, "tp=4 x pp=4 does not make 24 GPUs; a multiple of 16 would"),
        ("gpt-h1024-l12", "tp=3", {"gpus": 3}, "tp=3 does not divide the 16 heads of h.0.attn"),
        ("llama3-8b", "tp=16", {"gpus": 16}, "tp=16 does not divide the 8 heads of layers.0.self_attn"),
        ("gpt-h1024-l12", "pp=16", {"gpus": 16}, "16 stages are more than the 12 layers of gpt-h1024-l12"),
        ("gpt-h1024-l12", "pp=8,v=2", {"gpus": 8}, "16 stages are more than the 12 layers"),
        ("gpt-h1024-l12", "ep=2", {"gpus": 2}, "gpt-h1024-l12 has no operator with experts (com.microsoft.MoE)"),
        ("gpt-h1024-l12", "dp=4,ep=3", {"gpus": 4}, "ep=3 does not divide dp=4"),
        ("gpt-h1024-l12", "tp=3,dp=8", {"gpus": 24}, "groups of tp=3 do not fill servers of dgx-a100 (8 GPUs each)"),
        ("gpt-h1024-l12", "pp=2,v=2", {"gpus": 6, "accumulate": 1}, ""),
        ("mlp", "pp=9", {"gpus": 9}, "9 stages are more than mlp can be cut into"),
    ],
)  # fmt: skip
def test_what_cannot_be_held(source: str, arch: str, options: dict[str, int], says: str) -> None:
    if not says:
        analyze(f"zoo:{source}", batch=1, arch=arch, **options)  # type: ignore[arg-type]
        return
    with pytest.raises(PlacementError) as caught:
        analyze(f"zoo:{source}", batch=1, arch=arch, **options)  # type: ignore[arg-type]
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("arch", "options", "says"),
    [
        ("tp=2", {"profile": "paper"}, "the paper's framework knows no such product"),
        ("tp=2,mb=4", {"accumulate": 2}, "--accumulate 2 and mb=4 are the same"),
    ],
)
def test_options_that_do_not_go_together(arch: str, options: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        analyze("zoo:gpt-h1024-l12", batch=1, arch=arch, gpus=2, **options)  # type: ignore[arg-type]
    assert says in str(caught.value)


def test_one_gpu_stands_for_what_the_sizes_make() -> None:
    assert analyze("zoo:gpt-h1024-l12", batch=1, arch="tp=2,pp=2,dp=3").placement.gpus == 12
