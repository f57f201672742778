"""AlexNet (Krizhevsky et al. 2012), its one-column form (Krizhevsky 2014) and OverFeat (Sermanet et al. 2013)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry


@dataclass(frozen=True)
class Layer:
    """A convolution; ``norm`` is local response normalisation, ``pool`` kernel and stride of a maximum pooling."""

    channels: int
    kernel: int
    stride: int = 1
    pad: int = 0
    pool: tuple[int, int] | None = None
    groups: int = 1
    norm: bool = False


ONE_COLUMN = (
    Layer(64, 11, 4, 2, (3, 2)),
    Layer(192, 5, 1, 2, (3, 2)),
    Layer(384, 3, 1, 1),
    Layer(256, 3, 1, 1),
    Layer(256, 3, 1, 1, (3, 2)),
)
TWO_COLUMNS = (
    Layer(96, 11, 4, 0, (3, 2), norm=True),
    Layer(256, 5, 1, 2, (3, 2), groups=2, norm=True),
    Layer(384, 3, 1, 1),
    Layer(384, 3, 1, 1, groups=2),
    Layer(256, 3, 1, 1, (3, 2), groups=2),
)
OVERFEAT_FAST = (
    Layer(96, 11, 4, 0, (2, 2)),
    Layer(256, 5, 1, 0, (2, 2)),
    Layer(512, 3, 1, 1),
    Layer(1024, 3, 1, 1),
    Layer(1024, 3, 1, 1, (2, 2)),
)


def build(
    b: Builder, batch: int, dims: Mapping[str, int], *, layers: tuple[Layer, ...], hidden: tuple[int, int]
) -> Model:
    """Five convolutions with pooling, then three fully connected layers with dropout."""
    x = b.input("image", (batch, 3, dims["image"], dims["image"]))
    for index, layer in enumerate(layers):
        with b.scope("features", index):
            x = b.conv(
                x, layer.channels, layer.kernel, stride=layer.stride, pad=layer.pad, groups=layer.groups, bias=True
            )
            x = b.relu(x)
            x = b.pointwise("LRN", x, size=5) if layer.norm else x
            x = b.max_pool(x, *layer.pool) if layer.pool else x
    b.note_classifier_grid(x, side=6)
    x = b.flatten(x)
    with b.scope("classifier"):
        for name, width in zip(("1", "4"), hidden, strict=True):
            x = b.relu(b.gemm(b.dropout(x, 0.5), width, name=name))
        return b.finish(b.gemm(x, 1000, name="6"))


for _name, _title, _layers, _hidden, _image, _citation, _params, _rounding, _macs, _source in (
    ("alexnet", "AlexNet, one column", ONE_COLUMN, (4096, 4096), 224, "Krizhevsky 2014, arXiv 1404.5997",
     61_100_840, 1, 714_188_480, "torchvision's own parameters; MACs of torch's counter on them"),
    ("alexnet-2012", "AlexNet, two columns", TWO_COLUMNS, (4096, 4096), 227,
     "Krizhevsky, Sutskever and Hinton 2012, NIPS", 60_965_224, 1, None,
     "recalled: parameters of Caffe's bvlc_alexnet; the paper says 60 million"),
    ("overfeat-fast", "OverFeat, fast", OVERFEAT_FAST, (3072, 4096), 231, "Sermanet et al. 2013, arXiv 1312.6229",
     145_000_000, 2_000_000, None, "recalled from the paper's Table 4: 145 million, which seems cut, not rounded"),
):  # fmt: skip
    ZOO.add(
        _name,
        ZooEntry(
            title=_title,
            citation=_citation,
            published_params=_params,
            published_macs=_macs,
            published_source=_source,
            build=partial(build, layers=_layers, hidden=_hidden),
            dims={"image": _image},
            rounding=_rounding,
        ),
    )
