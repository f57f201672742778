"""Baevski et al.: wav2vec 2.0 (2020); transformers' layout."""

from __future__ import annotations

from collections.abc import Mapping

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry

CONVOLUTIONS = ((10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2))
"""Kernel and stride of the feature encoder, 512 channels each."""
WIDTH, INNER, HEADS, LAYERS, LETTERS = 768, 3072, 12, 12, 32
TAPS, GROUPS = 128, 16
SAMPLES_PER_SECOND = 16_000


def _positions(b: Builder, x: str) -> str:
    """A grouped convolution over time whose weight is a length and a direction (weight normalisation)."""
    batch, steps, _ = b.shape(x)
    direction, length = b.param("weight_v", (WIDTH, WIDTH // GROUPS, TAPS)), b.param("weight_g", (1, 1, TAPS))
    axes = b.integers("norm_axes", (0, 1))
    norm = b.op("ReduceL2", [direction, axes], (1, 1, TAPS), keepdims=1)
    weight = b.op("Mul", [direction, b.op("Div", [length, norm], (1, 1, TAPS))], (WIDTH, WIDTH // GROUPS, TAPS))
    y = b.op(
        "Conv", [b.transpose(x, (0, 2, 1)), weight, b.param("bias", (WIDTH,))], (batch, WIDTH, steps + 1),
        kernel_shape=(TAPS,), strides=(1,), pads=(TAPS // 2, TAPS // 2), group=GROUPS, dilations=(1,),
    )  # fmt: skip
    y = b.pointwise("Gelu", b.part(y, 0, steps, name="same"))
    return b.add(x, b.transpose(y, (0, 2, 1)))


def build(b: Builder, batch: int, dims: Mapping[str, int]) -> Model:
    """Seven convolutions over the waveform, masked spans, a post-norm encoder, letters (CTC)."""
    samples = dims["seconds"] * SAMPLES_PER_SECOND
    x = b.input("waveform", (batch, 1, samples))
    for index, (kernel, stride) in enumerate(CONVOLUTIONS):
        with b.scope("feature_extractor", index):
            x = b.conv(x, 512, kernel, stride=stride)
            x = b.pointwise("Gelu", x if index else b.instance_norm(x, "group_norm"))
    x = b.transpose(x, (0, 2, 1))
    x = b.dropout(b.linear(b.layer_norm(x, "feature_projection.norm"), WIDTH, name="feature_projection"))
    spans = b.input("masked", (*b.shape(x)[:2], 1), "bool")
    x = b.op("Where", [spans, b.param("masked_spec_embed", (WIDTH,)), x], b.shape(x), name="mask")
    with b.scope("pos_conv_embed"):
        x = _positions(b, x)
    x = b.dropout(b.layer_norm(x, "encoder.norm"))
    for layer in range(LAYERS):
        with b.scope("encoder", layer):
            q, k, v = (b.linear(x, WIDTH, name=part) for part in "qkv")
            y = b.linear(b.attention(q, k, v, HEADS, dropout=True), WIDTH, name="out_proj")
            x = b.layer_norm(b.add(x, b.dropout(y)), "layer_norm")
            y = b.dropout(b.pointwise("Gelu", b.linear(x, INNER, name="intermediate")))
            x = b.layer_norm(b.add(x, b.dropout(b.linear(y, WIDTH, name="output"))), "final_layer_norm")
    return b.finish(b.pointwise("LogSoftmax", b.linear(b.dropout(x), LETTERS, name="lm_head"), axis=-1))


ZOO.add(
    "wav2vec2-base",
    ZooEntry(
        title="wav2vec 2.0 base with a CTC head",
        citation="Baevski et al. 2020, arXiv 2006.11477",
        published_params=94_396_320,
        published_source="transformers Wav2Vec2ForCTC",
        build=build,
        dims={"seconds": 15},
        domain="speech",
    ),
)
