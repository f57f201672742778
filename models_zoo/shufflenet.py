"""Ma, Zhang, Zheng and Sun: ShuffleNet V2 (2018); torchvision's layout."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry

REPEATS = (4, 8, 4)


def _depthwise(b: Builder, x: str, stride: int, name: str) -> str:
    channels = b.shape(x)[1]
    return b.batch_norm(b.conv(x, channels, 3, stride=stride, pad=1, groups=channels, name=name), f"{name}_bn")


def _pointwise(b: Builder, x: str, channels: int, name: str) -> str:
    return b.relu(b.batch_norm(b.conv(x, channels, 1, name=name), f"{name}_bn"))


def _shuffle(b: Builder, x: str) -> str:
    n, c, h, w = b.shape(x)
    x = b.transpose(b.reshape(x, (n, 2, c // 2, h, w)), (0, 2, 1, 3, 4))
    return b.reshape(x, (n, c, h, w))


def _unit(b: Builder, x: str, channels: int, stride: int) -> str:
    """Half the channels pass (or are made from the input at stride 2), half go through the branch."""
    half = channels // 2
    if stride == 1:
        kept, y = b.part(x, 0, half, name="kept", axis=1), b.part(x, half, channels, name="taken", axis=1)
    else:
        kept, y = _pointwise(b, _depthwise(b, x, 2, "branch1_dw"), half, "branch1_pw"), x
    y = _pointwise(b, y, half, "branch2_in")
    y = _pointwise(b, _depthwise(b, y, stride, "branch2_dw"), half, "branch2_out")
    return _shuffle(b, b.concat(kept, y))


def build(b: Builder, batch: int, dims: Mapping[str, int], *, widths: tuple[int, ...]) -> Model:
    """Stem, three stages, 1x1 head, classifier."""
    x = b.input("image", (batch, 3, dims["image"], dims["image"]))
    x = b.relu(b.batch_norm(b.conv(x, 24, 3, stride=2, pad=1, name="conv1"), "bn1"))
    x = b.max_pool(x, 3, 2, 1)
    for stage, (repeats, width) in enumerate(zip(REPEATS, widths, strict=False)):
        for index in range(repeats):
            with b.scope(f"stage{stage + 2}", index):
                x = _unit(b, x, width, 2 if index == 0 else 1)
    x = _pointwise(b, x, widths[-1], "conv5")
    return b.finish(b.gemm(b.flatten(b.global_average_pool(x)), 1000))


for _scale, _widths, _params, _macs in (
    ("0-5", (48, 96, 192, 1024), 1_366_792, 40_476_448),
    ("1-0", (116, 232, 464, 1024), 2_278_604, 144_907_992),
    ("1-5", (176, 352, 704, 1024), 3_503_624, 295_759_392),
    ("2-0", (244, 488, 976, 2048), 7_393_996, 583_253_464),
):
    ZOO.add(
        f"shufflenet-v2-x{_scale}",
        ZooEntry(
            title=f"ShuffleNetV2 x{_scale.replace('-', '.')}",
            citation="Ma et al. 2018, arXiv 1807.11164",
            published_params=_params,
            published_macs=_macs,
            published_source="torchvision's own parameters; MACs of torch's counter on them",
            build=partial(build, widths=_widths),
            dims={"image": 224},
        ),
    )
