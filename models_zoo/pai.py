"""Case studies of the Alibaba-PAI workload study (Wang et al. 2019, arXiv 1910.05930) that are not public networks.

The study gives sizes, not layers, and those are recalled: weights with optimizer slots, FLOPs of a
training step. The layers here are assumed, chosen so that weights and FLOPs come out at these sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from graphcost.ir import Model
from graphcost.models_zoo import deepspeech, translation
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry

STUDY = "Wang et al. 2019, arXiv 1910.05930 (Alibaba-PAI)"
ASSUMED = "assumed: the study gives this network's sizes, its layers are chosen to meet them"


@dataclass(frozen=True)
class Tower:
    """``keys`` of a sample through layers each, averaged, then through layers once."""

    rows: int
    width: int
    keys: int
    each: tuple[int, ...]
    once: tuple[int, ...]


def embedded(b: Builder, batch: int, dims: Mapping[str, int], *, tower: Tower) -> Model:
    """A sparse table, layers on every key, their mean, layers on it, one score."""
    b.note(ASSUMED)
    keys = b.input("keys", (batch, dims["keys"]), "int64")
    x = b.embedding(keys, tower.rows, tower.width, name="table", sparse=True)
    for index, width in enumerate(tower.each):
        x = b.relu(b.linear(x, width, name=f"each.{index}"))
    x = b.op("ReduceMean", [x, b.integers("axis", [1])], (batch, tower.each[-1]), keepdims=0)
    for index, width in enumerate(tower.once):
        x = b.relu(b.gemm(x, width, name=f"once.{index}"))
    return b.finish(b.gemm(x, 1, name="score"))


def nmt(b: Builder, batch: int, dims: Mapping[str, int]) -> Model:
    """Transformer base with a table each for source and target."""
    b.note(ASSUMED)
    return translation.build(b, batch, dims, shape=translation.BASE, one_table=False)


def speech(b: Builder, batch: int, dims: Mapping[str, int]) -> Model:
    """Deep Speech 2 with LSTMs and a larger alphabet."""
    b.note(ASSUMED)
    return deepspeech.build(b, batch, dims, cell="LSTM", labels=1500)


# two copies (weight, one slot): 239.45 GB and 1.19 MB; 54 GB and 207 MB
INTERESTS = Tower(467_676_000, 64, 116, (256, 224), (256, 64))
GCN = Tower(52_734_000, 128, 5720, (112,), (4096, 4096, 2048))
_FOUR = "recalled: 706 MB dense and 819 MB of tables, four copies; 2.5 TFLOP for 6,144 tokens"
for _name, _title, _build, _dims, _domain, _params, _rounding, _source in (
    ("pai-nmt", "PAI's NMT (assumed layers)", nmt,
     {"source": 32, "target": 32, "source_vocabulary": 50_000, "target_vocabulary": 50_000}, "language",
     (706_000_000 + 819_000_000) // 16, 200_000, _FOUR),
    ("pai-speech", "PAI's Speech (assumed layers)", speech, {"seconds": 13, "hidden": 768}, "speech",
     416_000_000 // 8, 250_000, "recalled: 416 MB, two copies; 7.9 TFLOP for 32 samples"),
    ("pai-multi-interests", "PAI's Multi-Interests (assumed layers)", partial(embedded, tower=INTERESTS),
     {"keys": INTERESTS.keys}, "recommendation", (239_450_000_000 + 1_190_000) // 8, 2_000_000,
     "recalled: 1.19 MB dense and 239.45 GB of tables; 105.8 GFLOP for 2,048 samples; assumed: two copies"),
    ("pai-gcn", "PAI's GCN (assumed layers)", partial(embedded, tower=GCN), {"keys": GCN.keys}, "recommendation",
     (54_000_000_000 + 207_000_000) // 8, 2_000_000,
     "recalled: 207 MB dense and 54 GB of tables; 330.7 GFLOP for 512 samples; assumed: two copies"),
):  # fmt: skip
    ZOO.add(
        _name,
        ZooEntry(
            title=_title,
            citation=STUDY,
            published_params=_params,
            published_source=_source,
            build=_build,
            dims=_dims,
            domain=_domain,
            rounding=_rounding,
        ),
    )
