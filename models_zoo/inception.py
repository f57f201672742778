"""Szegedy et al.: Going Deeper with Convolutions (2014), Rethinking Inception (2015), Inception-v4 (2016).

GoogLeNet and Inception v3 are torchvision's, without the auxiliary classifiers that only training sees;
Inception v4 is timm's.
"""

from __future__ import annotations

from collections.abc import Mapping

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder, Sizes
from graphcost.models_zoo._entry import ZOO, ZooEntry


class _Layers:
    """Convolution, normalisation, rectifier, numbered in order."""

    def __init__(self, b: Builder) -> None:
        self._b = b
        self._made = 0

    def conv(self, x: str, channels: int, kernel: Sizes = 1, *, stride: int = 1, pad: Sizes = 0) -> str:
        self._made += 1
        with self._b.scope(f"conv{self._made}"):
            return self._b.relu(self._b.batch_norm(self._b.conv(x, channels, kernel, stride=stride, pad=pad)))

    def chain(self, x: str, *layers: tuple[int, Sizes]) -> str:
        """Convolutions of (channels, kernel) that keep the sides."""
        for channels, kernel in layers:
            sides = kernel if isinstance(kernel, tuple) else (kernel, kernel)
            x = self.conv(x, channels, kernel, pad=(sides[0] // 2, sides[1] // 2))
        return x

    def pooled(self, x: str, channels: int, *, average: bool = True) -> str:
        """3x3 pooling at stride 1, then 1x1."""
        x = self._b.average_pool(x, 3, 1, 1) if average else self._b.max_pool(x, 3, 1, 1)
        return self.conv(x, channels)


# 1x1; 3x3 reduced and made; 5x5 (torchvision: 3x3) reduced and made; pooled (Table 1 of the paper)
GOOGLENET = (
    (64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64), (192, 96, 208, 16, 48, 64), (160, 112, 224, 24, 64, 64),
    (128, 128, 256, 24, 64, 64), (112, 144, 288, 32, 64, 64), (256, 160, 320, 32, 128, 128),
    (256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128),
)  # fmt: skip


def googlenet(b: Builder, batch: int, dims: Mapping[str, int]) -> Model:
    """Stem, nine inception modules with pooling before the third and the eighth, classifier."""
    c = _Layers(b)
    x = b.input("image", (batch, 3, dims["image"], dims["image"]))
    x = b.max_pool(c.conv(x, 64, 7, stride=2, pad=3), 3, 2, ceil=True)
    x = b.max_pool(c.chain(x, (64, 1), (192, 3)), 3, 2, ceil=True)
    for index, (one, reduce3, three, reduce5, five, pool) in enumerate(GOOGLENET):
        if index in (2, 7):
            x = b.max_pool(x, 3 if index == 2 else 2, 2, ceil=True)
        x = b.concat(
            c.conv(x, one),
            c.chain(x, (reduce3, 1), (three, 3)),
            c.chain(x, (reduce5, 1), (five, 3)),
            c.pooled(x, pool, average=False),
        )
    x = b.dropout(b.flatten(b.global_average_pool(x)), 0.2)
    return b.finish(b.gemm(x, 1000))


def inception_v3(b: Builder, batch: int, dims: Mapping[str, int]) -> Model:
    """Stem, three 35x35 modules, four 17x17 with 1x7 and 7x1 kernels, two 8x8, reductions between."""
    c = _Layers(b)
    x = b.input("image", (batch, 3, dims["image"], dims["image"]))
    x = c.chain(c.conv(c.conv(x, 32, 3, stride=2), 32, 3), (64, 3))
    x = b.max_pool(c.conv(c.conv(b.max_pool(x, 3, 2), 80), 192, 3), 3, 2)
    for pool in (32, 64, 64):
        x = b.concat(
            c.conv(x, 64), c.chain(x, (48, 1), (64, 5)), c.chain(x, (64, 1), (96, 3), (96, 3)), c.pooled(x, pool)
        )
    x = b.concat(
        c.conv(x, 384, 3, stride=2), c.conv(c.chain(x, (64, 1), (96, 3)), 96, 3, stride=2), b.max_pool(x, 3, 2)
    )
    for w in (128, 160, 160, 192):
        x = b.concat(
            c.conv(x, 192),
            c.chain(x, (w, 1), (w, (1, 7)), (192, (7, 1))),
            c.chain(x, (w, 1), (w, (7, 1)), (w, (1, 7)), (w, (7, 1)), (192, (1, 7))),
            c.pooled(x, 192),
        )
    x = b.concat(
        c.conv(c.conv(x, 192), 320, 3, stride=2),
        c.conv(c.chain(x, (192, 1), (192, (1, 7)), (192, (7, 1))), 192, 3, stride=2),
        b.max_pool(x, 3, 2),
    )
    for _ in range(2):
        three, twice = c.conv(x, 384), c.chain(x, (448, 1), (384, 3))
        split = [c.chain(y, (384, kernel)) for y in (three, twice) for kernel in ((1, 3), (3, 1))]
        x = b.concat(c.conv(x, 320), *split, c.pooled(x, 192))
    x = b.dropout(b.flatten(b.global_average_pool(x)), 0.5)
    return b.finish(b.gemm(x, 1000))


def inception_v4(b: Builder, batch: int, dims: Mapping[str, int]) -> Model:
    """A branched stem, four A, seven B and three C modules, reductions between."""
    c = _Layers(b)
    x = b.input("image", (batch, 3, dims["image"], dims["image"]))
    x = c.chain(c.conv(c.conv(x, 32, 3, stride=2), 32, 3), (64, 3))
    x = b.concat(b.max_pool(x, 3, 2), c.conv(x, 96, 3, stride=2))
    x = b.concat(c.conv(c.conv(x, 64), 96, 3), c.conv(c.chain(x, (64, 1), (64, (1, 7)), (64, (7, 1))), 96, 3))
    x = b.concat(c.conv(x, 192, 3, stride=2), b.max_pool(x, 3, 2))
    for _ in range(4):
        x = b.concat(
            c.conv(x, 96), c.chain(x, (64, 1), (96, 3)), c.chain(x, (64, 1), (96, 3), (96, 3)), c.pooled(x, 96)
        )
    x = b.concat(
        c.conv(x, 384, 3, stride=2), c.conv(c.chain(x, (192, 1), (224, 3)), 256, 3, stride=2), b.max_pool(x, 3, 2)
    )
    for _ in range(7):
        x = b.concat(
            c.conv(x, 384),
            c.chain(x, (192, 1), (224, (1, 7)), (256, (7, 1))),
            c.chain(x, (192, 1), (192, (7, 1)), (224, (1, 7)), (224, (7, 1)), (256, (1, 7))),
            c.pooled(x, 128),
        )
    x = b.concat(
        c.conv(c.conv(x, 192), 192, 3, stride=2),
        c.conv(c.chain(x, (256, 1), (256, (1, 7)), (320, (7, 1))), 320, 3, stride=2),
        b.max_pool(x, 3, 2),
    )
    for _ in range(3):
        one, long = c.conv(x, 384), c.chain(x, (384, 1), (448, (3, 1)), (512, (1, 3)))
        split = [c.chain(y, (256, kernel)) for y in (one, long) for kernel in ((1, 3), (3, 1))]
        x = b.concat(c.conv(x, 256), *split, c.pooled(x, 256))
    x = b.dropout(b.flatten(b.global_average_pool(x)), 0.2)
    return b.finish(b.gemm(x, 1000))


for _name, _title, _build, _citation, _image, _library, _params, _macs in (
    ("googlenet", "GoogLeNet", googlenet, "Szegedy et al. 2014, arXiv 1409.4842", 224, "torchvision's",
     6_624_904, 1_498_376_192),
    ("inception-v3", "Inception v3", inception_v3, "Szegedy et al. 2015, arXiv 1512.00567", 299, "timm's", 23_834_568,
     5_713_216_096),
    ("inception-v4", "Inception v4", inception_v4, "Szegedy et al. 2016, arXiv 1602.07261", 299, "timm's", 42_679_816,
     12_253_974_624),
):  # fmt: skip
    ZOO.add(
        _name,
        ZooEntry(
            title=_title,
            citation=_citation,
            published_params=_params,
            published_macs=_macs,
            published_source=f"{_library} own parameters; MACs of torch's counter on them",
            build=_build,
            dims={"image": _image},
        ),
    )
