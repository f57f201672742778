"""Amodei et al.: Deep Speech 2 (2015), in the layout of the public deepspeech.pytorch."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry

BINS, FRAMES_PER_SECOND, LABELS, LAYERS = 161, 100, 29, 5
"""Spectrogram of 20 ms windows at 16 kHz, one every 10 ms; letters, space, apostrophe, blank."""


def build(
    b: Builder, batch: int, dims: Mapping[str, int], *, cell: str, labels: int, planes: int = 1,
    strides: tuple[int, int] = (2, 1),
) -> Model:  # fmt: skip
    """Two strided convolutions over the spectrogram, bidirectional cells whose directions are summed, letters.

    ``planes`` are spectrograms a frame, ``strides`` those of the convolutions in time.
    """
    frames = dims["seconds"] * FRAMES_PER_SECOND + 1
    x = b.input("spectrogram", (batch, planes, BINS, frames))
    with b.scope("conv"):
        x = b.clip(
            b.batch_norm(b.conv(x, 32, (41, 11), stride=(2, strides[0]), pad=(20, 5), bias=True, name="0"), "1")
        )
        x = b.clip(
            b.batch_norm(b.conv(x, 32, (21, 11), stride=(2, strides[1]), pad=(10, 5), bias=True, name="3"), "4")
        )
    _, channels, height, steps = b.shape(x)
    x = b.transpose(b.reshape(x, (batch, channels * height, steps)), (2, 0, 1))
    for layer in range(LAYERS):
        with b.scope("rnns", layer):
            x = _normalised(b, x) if layer else x
            x = b.recurrent(cell, x, dims["hidden"], name="rnn", both=True, summed=True)
    with b.scope("fc"):
        x = b.linear(_normalised(b, x), labels, bias=False)
    return b.finish(b.pointwise("LogSoftmax", x, axis=-1))


def _normalised(b: Builder, x: str) -> str:
    """Batch normalisation over every step and sample."""
    steps, batch, width = b.shape(x)
    return b.reshape(b.batch_norm(b.reshape(x, (steps * batch, width))), (steps, batch, width))


def params(hidden: int, gates: int, labels: int) -> int:
    """Parameters with cells of ``gates`` gates and two bias vectors each."""
    convolutions = 32 * 41 * 11 + 32 + 64 + 32 * 32 * 21 * 11 + 32 + 64
    recurrent = sum(2 * gates * hidden * (i + hidden + 2) for i in (32 * 41, *[hidden] * (LAYERS - 1)))
    return convolutions + recurrent + LAYERS * 2 * hidden + hidden * labels


ZOO.add(
    "deepspeech2",
    ZooEntry(
        title="Deep Speech 2, 5 bidirectional GRUs of 800",
        citation="Amodei et al. 2015, arXiv 1512.02595; sizes: petuum/adaptdl, benchmark/models/deepspeech2",
        published_params=params(800, 3, LABELS),
        published_source="closed form at the public code's defaults",
        build=partial(build, cell="GRU", labels=LABELS),
        dims={"seconds": 4, "hidden": 800},
        domain="speech",
    ),
)
