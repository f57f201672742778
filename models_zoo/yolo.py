"""Redmon and Farhadi: YOLOv3, An Incremental Improvement (2018)."""

from __future__ import annotations

from collections.abc import Mapping

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry

STAGES = ((64, 1), (128, 2), (256, 8), (512, 8), (1024, 4))
"""Channels and residual blocks of Darknet-53 after each strided convolution."""


def _conv(b: Builder, x: str, channels: int, kernel: int, name: str, stride: int = 1) -> str:
    with b.scope(name):
        x = b.batch_norm(b.conv(x, channels, kernel, stride=stride, pad=kernel // 2))
        return b.pointwise("LeakyRelu", x, alpha=0.1)


def build(b: Builder, batch: int, dims: Mapping[str, int]) -> Model:
    """Darknet-53, then three grids, each reading the one before it, upsampled; 3 boxes a cell."""
    image, outputs = dims["image"], 3 * (dims["classes"] + 5)
    if image % 32:
        raise b.refuse("image", image, "multiples of 32, the stride of its coarsest grid")
    x = _conv(b, b.input("image", (batch, 3, image, image)), 32, 3, "stem")
    maps = []
    for stage, (channels, blocks) in enumerate(STAGES):
        with b.scope(f"stage{stage + 1}"):
            x = _conv(b, x, channels, 3, "down", stride=2)
            for index in range(blocks):
                with b.scope(index):
                    x = b.add(x, _conv(b, _conv(b, x, channels // 2, 1, "1"), channels, 3, "2"))
        maps.append(x)
    results, route = [], ""
    for index, (width, x) in enumerate(zip((512, 256, 128), reversed(maps), strict=False)):
        with b.scope(f"head{index}"):
            x = b.concat(route, x) if route else x
            for step in range(5):
                x = _conv(b, x, width * (1 + step % 2), 1 + 2 * (step % 2), f"set{step}")
            y = _conv(b, x, 2 * width, 3, "out")
            results.append(b.conv(y, outputs, 1, bias=True, name="predict"))
            if index < 2:
                side = 2 * b.shape(x)[2]
                route = b.resize(_conv(b, x, width // 2, 1, "route"), (side, side))
    return b.finish(*results)


ZOO.add(
    "yolov3",
    ZooEntry(
        title="YOLOv3",
        citation="Redmon and Farhadi 2018, arXiv 1804.02767",
        published_params=61_949_149,
        published_source="recalled from the PyTorch port of Ultralytics, COCO's 80 classes",
        build=build,
        dims={"image": 416, "classes": 80},
        domain="detection and segmentation",
    ),
)
