"""Li et al.: Jasper (2019), and Kriman et al.: QuartzNet (2019), at the sizes of NVIDIA's examples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry

FILTERS, FRAMES_PER_SECOND, LETTERS = 64, 100, 29


@dataclass(frozen=True)
class Shape:
    """Blocks of five (channels, kernel); ``separable`` convolutions, ``dense`` residuals from all blocks before."""

    first: tuple[int, int]
    blocks: tuple[tuple[int, int], ...]
    last: tuple[int, int]
    separable: bool
    dense: bool


JASPER = Shape(
    (256, 11),
    tuple(size for size in ((256, 11), (384, 13), (512, 17), (640, 21), (768, 25)) for _ in range(2)),
    (896, 29),
    separable=False,
    dense=True,
)
QUARTZNET = Shape(
    (256, 33),
    tuple(size for size in ((256, 33), (256, 39), (512, 51), (512, 63), (512, 75)) for _ in range(3)),
    (512, 87),
    separable=True,
    dense=False,
)


def _conv(
    b: Builder, x: str, channels: int, kernel: int, *, separable: bool, stride: int = 1, dilation: int = 1
) -> str:
    """A convolution over time with normalisation; separable: one tap sequence a channel, then 1x1."""
    pad = dilation * (kernel - 1) // 2
    if not separable:
        return b.batch_norm(b.conv(x, channels, kernel, stride=stride, pad=pad, dilation=dilation))
    inputs = b.shape(x)[1]
    x = b.conv(x, inputs, kernel, stride=stride, pad=pad, dilation=dilation, groups=inputs, name="depthwise")
    return b.batch_norm(b.conv(x, channels, 1, name="pointwise"))


def build(b: Builder, batch: int, dims: Mapping[str, int], *, shape: Shape) -> Model:
    """A strided convolution, residual blocks of five convolutions, two more, letters."""
    x = b.input("features", (batch, FILTERS, dims["seconds"] * FRAMES_PER_SECOND))
    with b.scope("first"):
        x = b.dropout(b.relu(_conv(b, x, *shape.first, separable=shape.separable, stride=2)))
    inputs = [x]
    for index, (channels, kernel) in enumerate(shape.blocks):
        with b.scope("block", index):
            for step in range(5):
                with b.scope(step):
                    x = _conv(b, x, channels, kernel, separable=shape.separable)
                    x = x if step == 4 else b.dropout(b.relu(x))
            for source, value in enumerate(inputs if shape.dense else inputs[-1:]):
                with b.scope("residual", source):
                    x = b.add(x, b.batch_norm(b.conv(value, channels, 1)))
            x = b.dropout(b.relu(x))
        inputs.append(x)
    with b.scope("last"):
        x = b.dropout(b.relu(_conv(b, x, *shape.last, separable=shape.separable, dilation=2)))
    with b.scope("wide"):
        x = b.dropout(b.relu(_conv(b, x, 1024, 1, separable=False)))
    x = b.transpose(b.conv(x, LETTERS, 1, bias=True, name="decoder"), (0, 2, 1))
    return b.finish(b.pointwise("LogSoftmax", x, axis=-1))


for _name, _title, _shape, _citation, _params, _rounding, _source in (
    ("jasper-10x5", "Jasper 10x5, dense residuals", JASPER, "Li et al. 2019, arXiv 1904.03288",
     333_000_000, 1_000_000, "recalled from the paper's Table 2"),
    ("quartznet-15x5", "QuartzNet 15x5", QUARTZNET, "Kriman et al. 2019, arXiv 1910.10261", 18_900_000, 100_000,
     "recalled from the paper's Table 2"),
):  # fmt: skip
    ZOO.add(
        _name,
        ZooEntry(
            title=_title,
            citation=_citation,
            published_params=_params,
            published_source=_source,
            build=partial(build, shape=_shape),
            dims={"seconds": 15},
            domain="speech",
            rounding=_rounding,
        ),
    )
