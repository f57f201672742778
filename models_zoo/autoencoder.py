"""Autoencoders for recommendation: Recoder's (Mohamed 2018) and Mult-VAE (Liang et al. 2018), MovieLens 20M."""

from __future__ import annotations

from collections.abc import Mapping

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry

ITEMS = 20_108
"""Films left by the filter of Liang et al. 2018."""


def recoder(b: Builder, batch: int, dims: Mapping[str, int]) -> Model:
    """One hidden layer of 200; every item is scored (the public code scores those of the batch and sampled ones)."""
    x = b.dropout(b.input("interactions", (batch, dims["items"])), 0.5)
    x = b.pointwise("Tanh", b.gemm(x, 200, name="encoder"))
    b.note("assumed: every item is scored; the public code scores the items that the batch touches")
    return b.finish(b.gemm(x, dims["items"], name="decoder"))


def vae_cf(b: Builder, batch: int, dims: Mapping[str, int]) -> Model:
    """Items to 600 to mean and variance of 200, a sample, 600, items."""
    x = b.dropout(b.input("interactions", (batch, dims["items"])), 0.5)
    x = b.pointwise("Tanh", b.gemm(x, 600, name="encoder.0"))
    x = b.gemm(x, 400, name="encoder.1")
    mean, log_variance = b.part(x, 0, 200, name="mean"), b.part(x, 200, 400, name="log_variance")
    noise = b.constant("noise", (batch, 200), "float32")
    x = b.add(mean, b.pointwise("Mul", b.pointwise("Exp", log_variance), noise))
    x = b.pointwise("Tanh", b.gemm(x, 600, name="decoder.0"))
    return b.finish(b.gemm(x, dims["items"], name="decoder.1"))


ZOO.add(
    "recoder-ml20m",
    ZooEntry(
        title="Recoder autoencoder, MovieLens 20M",
        citation="Mohamed 2018, github.com/amoussawi/recoder (hidden layer of 200)",
        published_params=ITEMS * 200 + 200 + 200 * ITEMS + ITEMS,
        published_source="closed form",
        build=recoder,
        dims={"items": ITEMS},
        domain="recommendation",
    ),
)
ZOO.add(
    "vae-cf",
    ZooEntry(
        title="Mult-VAE, MovieLens 20M",
        citation="Liang et al. 2018, arXiv 1802.05814",
        published_params=ITEMS * 600 + 600 + 600 * 400 + 400 + 200 * 600 + 600 + 600 * ITEMS + ITEMS,
        published_source="closed form at the paper's widths",
        build=vae_cf,
        dims={"items": ITEMS},
        domain="recommendation",
    ),
)
