"""PAI's Speech: convolutions over spectrograms, then LSTMs, in the manner of Deep Speech 2 (Amodei et al. 2015).

The study gives sizes alone (recalled): 416 MB of weights with one slot, 7.9 TFLOP, 804 MB of input for 32 samples.
"""

from __future__ import annotations

from collections.abc import Mapping

from graphcost.ir import Model
from graphcost.models_zoo import deepspeech
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry
from graphcost.models_zoo.pai_study import CASES, STUDY

CASE = CASES["pai-speech"]
PLANES = 24
"""Spectrogram planes a frame: itself and seven neighbours, each with first and second differences.
Chosen so that 16 seconds for 32 samples are 804 MB; a plain spectrogram would be a thirtieth."""

STRIDE = 2
"""In time, of both convolutions: chosen so that the LSTMs' share leaves 7.9 TFLOP in all."""

HIDDEN, LABELS = 768, 1024
"""Chosen so that weights and one slot are 416 MB."""


def build(b: Builder, batch: int, dims: Mapping[str, int]) -> Model:
    """Deep Speech 2 with LSTMs over spliced frames, both convolutions at stride 2 in time."""
    b.note(
        "assumed: layers; 16 s of 24 spectrogram planes so that the input copy is the study's, strides so that FLOPs "
        "are, widths so that weights are"
    )
    return deepspeech.build(b, batch, dims, cell="LSTM", labels=LABELS, planes=PLANES, strides=(STRIDE, STRIDE))


ZOO.add(
    "pai-speech",
    ZooEntry(
        title="PAI's Speech (assumed layers)",
        citation=STUDY,
        published_params=CASE.params,
        published_source="recalled: 416 MB, two copies; 7.9 TFLOP for 32 samples",
        build=build,
        dims={"seconds": 16, "hidden": HIDDEN},
        domain="speech",
        rounding=250_000,
        batch=CASE.batch,
    ),
)
