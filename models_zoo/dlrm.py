"""Naumov et al.: Deep Learning Recommendation Model (2019), in the form of the Criteo 1TB benchmarks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import pairwise

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry

WIDTH = 128
BOTTOM, TOP = (512, 256, WIDTH), (1024, 1024, 512, 256)
# keys of the 26 fields: at most 40 million each (MLPerf), and those seen at least 15 times (NVIDIA's small model)
MLPERF = (
    39884406, 39043, 17289, 7420, 20263, 3, 7120, 1543, 63, 38532951, 2953546, 403346, 10, 2208, 11938, 155, 4, 976,
    14, 39979771, 25641295, 39664984, 585935, 12972, 108, 36,
)  # fmt: skip
SMALL = (
    7912889, 33823, 17139, 7339, 20046, 4, 7105, 1382, 63, 5554114, 582469, 245828, 11, 2209, 10667, 104, 4, 968, 15,
    8165896, 2675940, 7156453, 302516, 12022, 97, 35,
)  # fmt: skip


def scaled(rows: int) -> tuple[int, ...]:
    """MLPerf's tables with those over a million keys scaled to ``rows`` in all."""
    large = sum(size for size in MLPERF if size > 1_000_000)
    wanted = rows - (sum(MLPERF) - large)
    return tuple(size * wanted // large if size > 1_000_000 else size for size in MLPERF)


def build(b: Builder, batch: int, dims: Mapping[str, int], *, tables: tuple[int, ...]) -> Model:
    """A perceptron over 13 numbers, 26 tables, products of all pairs, a perceptron on them; tables are sparse."""
    x = b.input("numbers", (batch, 13))
    for index, width in enumerate(BOTTOM):
        x = b.relu(b.gemm(x, width, name=f"bottom.{index}"))
    fields = [
        b.embedding(b.input(f"key_{i}", (batch,), "int64"), rows, WIDTH, name=f"table_{i}", sparse=True)
        for i, rows in enumerate(tables)
    ]
    count = len(fields) + 1
    stacked = b.reshape(b.concat(x, *fields), (batch, count, WIDTH))
    products = b.op("MatMul", [stacked, b.transpose(stacked, (0, 2, 1))], (batch, count, count), name="interaction")
    pairs = count * (count - 1) // 2
    flat = b.reshape(products, (batch, count * count))
    lower = b.op("Gather", [flat, b.constant("lower", (pairs,))], (batch, pairs), axis=1)
    padding = b.constant("padding", (batch, 1), "float32")
    x = b.concat(x, lower, padding)
    for index, width in enumerate(TOP):
        x = b.relu(b.gemm(x, width, name=f"top.{index}"))
    return b.finish(b.gemm(x, 1, name="top.out"))


def _dense() -> int:
    widths = [(13, *BOTTOM), (WIDTH + 27 * 26 // 2 + 1, *TOP, 1)]
    return sum((i + 1) * o for chain in widths for i, o in pairwise(chain))


LARGE, EXTRA_LARGE = scaled(int(84.9 * 2**30) // (4 * WIDTH)), scaled(142 * 2**30 // (4 * WIDTH))
_SCALED = "recalled: NVIDIA states the size of all tables, 84.9 GiB and 142 GiB; assumed: how they divide"
for _name, _title, _tables, _source in (
    ("dlrm-small", "DLRM, Criteo 1TB, keys seen 15 times", SMALL, "recalled: NVIDIA states tables of 15.6 GiB"),
    ("dlrm-large", "DLRM, Criteo 1TB, keys seen 3 times", LARGE, _SCALED),
    ("dlrm-extra-large", "DLRM, Criteo 1TB, keys seen twice", EXTRA_LARGE, _SCALED),
    ("dlrm-mlperf", "DLRM, Criteo 1TB, 40 million keys a table", MLPERF, "recalled: MLPerf's 187,767,399 keys"),
):
    ZOO.add(
        _name,
        ZooEntry(
            title=_title,
            citation="Naumov et al. 2019, arXiv 1906.00091",
            published_params=sum(_tables) * WIDTH + _dense(),
            published_source=f"{_source}; perceptrons by the closed form",
            build=partial(build, tables=_tables),
            domain="recommendation",
        ),
    )
