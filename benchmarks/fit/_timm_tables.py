"""timm's result tables as samples: what a row ran, as a recipe, and which family its network is of."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.fit import graphs
from benchmarks.fit._features import timm_features
from benchmarks.fit._problem import Sample
from graphcost.device_db import load_device
from graphcost.recipe import OPTIMIZERS, Layout, OptimizerKernels, Precision, Recipe, Stack

TRAIN = Recipe(
    optimizer=OPTIMIZERS["nesterov"],
    precision=Precision.AMP_BF16,  # stands for fp16 without a scaler: the same bytes and rates, no unscaling
    kernels=OptimizerKernels.FOR_LOOP,
    keep_gradients=True,
    fused_attention=False,
    stack=Stack.TORCH_1,
)
"""timm's benchmark script of 2022 under torch 1.12: autocast, nesterov momentum without ``foreach``, gradients
zeroed in place, attention as products."""

INFER = Recipe(optimizer=OPTIMIZERS["none"], precision=Precision.AMP_BF16, stack=Stack.TORCH_2)
"""The same script of 2024 under torch 2.4: fused attention, and very likely the library's fast norms."""


@dataclass(frozen=True)
class Table:
    """A table's file name, its columns' prefix, and how it was run."""

    file: str
    prefix: str
    recipe: Recipe
    fast_norms: bool = False


TABLES = {
    "train-channels-last": Table(
        "timm_train_amp_nhwc_pt112_rtx3090.csv", "train", replace(TRAIN, layout=Layout.CHANNELS_LAST)
    ),
    "train-nchw": Table("timm_train_amp_nchw_pt112_rtx3090.csv", "train", TRAIN),
    "infer-nchw": Table("timm_infer_amp_nchw_pt240_rtx3090.csv", "infer", INFER, fast_norms=True),
}

CHANGED = ("tresnet", "ecaresnext50t_32x4d")
"""Left out: networks whose definition is another one today (times show it: equal to those of a smaller network)."""

FAMILIES = (
    ("vit", r"vit_|deit|flexivit|eva|beit|samvit|hiera"), ("swin", r"swin"), ("mixer", r"mixer|resmlp|gmlp|gmixer"),
    ("efficientnet", r"(tf_)?efficientnet|(tf_)?mixnet|tinynet|gc_efficient|eca_efficient|rexnet|ese?_efficient"),
    ("mobile", r"(tf_)?mobilenet|mnasnet|semnasnet|fbnet|spnasnet|lcnet|hardcorenas|mobilevit|ghost"),
    ("regnet", r"regnet|haloregnet|lamhalobotnet"), ("resnext", r"\w*resnext|ssl_resnext|swsl_resnext|ig_resnext"),
    ("resnest", r"resnest"), ("resnetrs", r"resnetrs"), ("resnetv2", r"resnetv2|vit_\w+_r\d+"),
    ("sknet", r"sk(resnet|resnext)"), ("resnet", r"\w*resnet|senet|ssl_resnet|swsl_resnet|gluon_resnet|resnetblur"),
    ("nfnet", r"\w*nfnet|nf_\w+"), ("densenet", r"densenet|tv_densenet"), ("dpn", r"dpn"), ("dla", r"dla"),
    ("vgg", r"vgg|repvgg"), ("gernet", r"gernet"), ("hrnet", r"hrnet"), ("inception", r"\w*inception"),
    ("xception", r"xception|gluon_xception"), ("darknet", r"\w*darknet|cs\w*darknet"),
    ("convnext", r"convnext"), ("convmixer", r"convmixer"), ("poolformer", r"poolformer"), ("cait", r"cait"),
    ("coat", r"coat|crossvit"), ("xcit", r"xcit"), ("levit", r"levit"), ("pit", r"pit_"), ("tnt", r"tnt"),
    ("twins", r"twins"), ("visformer", r"visformer"), ("edgenext", r"edgenext"), ("sequencer", r"sequencer"),
    ("botnet", r"\w*botnet|\w*halonet"), ("vovnet", r"\w*vovnet"), ("selecsls", r"selecsls"), ("nasnet", r"p?nasnet"),
    ("volo", r"volo"), ("nest", r"nest|jx_nest"), ("convit", r"convit"), ("cspresnet", r"csp\w+"),
    ("res2net", r"res2ne"),
    ("maxvit", r"maxvit|maxxvit|coatnet"), ("lambda", r"lambda|bat_|gcres|gcresnext"), ("focal", r"focal|davit|mvit"),
)  # fmt: skip
"""Architecture family -> how its names begin; the first that fits, in order of length of the match."""


def family_of(name: str) -> str:
    """The family a network is split by.

    >>> family_of("tf_efficientnet_b0"), family_of("seresnext26d_32x4d"), family_of("resnest50d")
    ('efficientnet', 'resnext', 'resnest')
    """
    found = [(len(match.group(0)), family) for family, rule in FAMILIES if (match := re.match(rule, name))]
    return max(found)[1] if found else name.partition("_")[0]


def samples(folder: Path, which: str) -> list[Sample]:
    """One sample a distinct graph of the table ``which``, of the rows whose networks are traced."""
    table, device = TABLES[which], load_device("rtx3090")
    found: dict[tuple[object, ...], Sample] = {}
    with (folder / table.file).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        name = row["model"].partition(".")[0]
        if name.startswith(CHANGED):
            continue
        size, batch = int(row[f"{table.prefix}_img_size"]), int(row[f"{table.prefix}_batch_size"])
        if not graphs.graph_file(name, size).exists():
            continue
        features = timm_features(name, size, batch, table.recipe, device, fast_norms=table.fast_norms)
        if features is None:
            continue
        key = (features.rows, features.terms.tobytes())
        seconds = float(row[f"{table.prefix}_step_time"]) / 1e3
        found.setdefault(key, Sample(f"{name}@{size}", family_of(name), features, seconds))
    return list(found.values())
