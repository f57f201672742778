"""Chen et al.: MobileFaceNets (2018): an embedding of faces, alone and under a classifier of persons."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry

# expansion, channels, repeats, first stride (Table 1 of the paper)
BLOCKS = ((2, 64, 5, 2), (4, 128, 1, 2), (2, 128, 6, 1), (4, 128, 1, 2), (2, 128, 2, 1))
EMBEDDING, PERSONS = 128, 85_742


def _conv(b: Builder, x: str, channels: int, kernel: int, name: str, *, stride: int = 1, groups: int = 1) -> str:
    with b.scope(name):
        x = b.batch_norm(b.conv(x, channels, kernel, stride=stride, pad=kernel // 2, groups=groups))
        return b.pointwise("PRelu", x, b.param("slope", (channels, 1, 1)))


def build(b: Builder, batch: int, dims: Mapping[str, int], *, classified: bool) -> Model:
    """Inverted residuals, a depthwise convolution over the whole grid, an embedding."""
    x = _conv(b, b.input("face", (batch, 3, 112, 112)), 64, 3, "stem", stride=2)
    x = _conv(b, x, 64, 3, "depthwise", groups=64)
    for group, (expansion, channels, repeats, first) in enumerate(BLOCKS):
        for index in range(repeats):
            with b.scope("blocks", group, index):
                hidden, stride = expansion * b.shape(x)[1], first if index == 0 else 1
                y = _conv(b, x, hidden, 1, "expand")
                y = _conv(b, y, hidden, 3, "depthwise", stride=stride, groups=hidden)
                y = b.batch_norm(b.conv(y, channels, 1, name="project"))
                x = b.add(x, y) if stride == 1 and b.shape(x) == b.shape(y) else y
    x = _conv(b, x, 512, 1, "wide")
    x = b.batch_norm(b.conv(x, 512, 7, groups=512, name="global"), "global_bn")
    x = b.batch_norm(b.flatten(b.conv(x, EMBEDDING, 1, name="embedding")), "embedding_bn")
    if not classified:
        return b.finish(x)
    # normalised embeddings times normalised rows: cosines of every person (ArcFace's margin adds a few FLOPs)
    persons = b.param("persons", (dims["persons"], EMBEDDING))
    rows = b.pointwise("LpNormalization", persons, axis=1, p=2)
    x = b.pointwise("LpNormalization", x, axis=1, p=2)
    return b.finish(b.op("Gemm", [x, rows], (batch, dims["persons"]), name="cosines", transB=1))


for _name, _title, _classified, _params, _rounding, _dims in (
    ("mobilefacenet", "MobileFaceNet", False, 990_000, 30_000, {}),
    ("mobilefacenet-arcface", "MobileFaceNet under 85,742 persons", True, 990_000 + PERSONS * EMBEDDING, 30_000,
     {"persons": PERSONS}),
):  # fmt: skip
    ZOO.add(
        _name,
        ZooEntry(
            title=_title,
            citation="Chen et al. 2018, arXiv 1804.07573",
            published_params=_params,
            published_source="recalled from the paper: 0.99 million (without slopes); the classifier is one matrix",
            build=partial(build, classified=_classified),
            dims=_dims,
            rounding=_rounding,
        ),
    )
