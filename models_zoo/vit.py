"""Dosovitskiy et al.: An Image is Worth 16x16 Words (2020); torchvision's layout."""

from __future__ import annotations

from collections.abc import Mapping

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry

WIDTH, HEADS, LAYERS, PATCH = 768, 12, 12, 16


def build(b: Builder, batch: int, dims: Mapping[str, int]) -> Model:
    """Patches, a class token, a pre-norm encoder, a head on the class token."""
    if dims["image"] % PATCH:
        raise b.refuse("image", dims["image"], f"multiples of its {PATCH}-pixel patch")
    x = b.input("image", (batch, 3, dims["image"], dims["image"]))
    x = b.conv(x, WIDTH, PATCH, stride=PATCH, bias=True, name="conv_proj")
    side = b.shape(x)[2]
    tokens = side * side
    x = b.transpose(b.reshape(x, (batch, WIDTH, tokens)), (0, 2, 1))
    token = b.op(
        "Expand",
        [b.param("class_token", (1, 1, WIDTH)), b.integers("token_shape", (batch, 1, WIDTH))],
        (batch, 1, WIDTH),
    )
    x = b.op("Concat", [token, x], (batch, tokens + 1, WIDTH), axis=1)
    x = b.pointwise("Add", x, b.param("pos_embedding", (1, tokens + 1, WIDTH)))
    for layer in range(LAYERS):
        with b.scope("encoder", layer):
            y = b.layer_norm(x, "ln_1")
            with b.scope("self_attention"):
                q, k, v = (b.linear(y, WIDTH, name=part) for part in ("query", "key", "value"))
                x = b.pointwise("Add", x, b.linear(b.attention(q, k, v, HEADS), WIDTH, name="out_proj"))
            with b.scope("mlp"):
                y = b.pointwise("Gelu", b.linear(b.layer_norm(x, "ln_2"), 4 * WIDTH, name="0"))
                x = b.pointwise("Add", x, b.linear(y, WIDTH, name="3"))
    x = b.layer_norm(x, "ln")
    return b.finish(b.gemm(b.first_token(x), 1000, name="head"))


_TOKENS = 197
ZOO.add(
    "vit-base-16",
    ZooEntry(
        title="ViT-B/16",
        citation="Dosovitskiy et al. 2020, arXiv 2010.11929",
        published_params=86_567_656,
        published_macs=(
            196 * 3 * PATCH * PATCH * WIDTH
            + LAYERS * (12 * WIDTH * WIDTH * _TOKENS + 2 * _TOKENS * _TOKENS * WIDTH)
            + WIDTH * 1000
        ),
        published_source="parameters recalled from torchvision's model card; MACs by the closed form",
        build=build,
        dims={"image": 224},
    ),
)
