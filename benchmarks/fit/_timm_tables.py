"""timm's result tables as samples, and which family a network is of."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.fit._features import timm_features
from benchmarks.fit._problem import Sample
from graphcost.validation import Skipped, job_of, read_table

TABLES = {
    "train-channels-last": "timm_train_amp_nhwc_pt112_rtx3090.csv",
    "train-nchw": "timm_train_amp_nchw_pt112_rtx3090.csv",
    "infer-nchw": "timm_infer_amp_nchw_pt240_rtx3090.csv",
}
"""How each was run: ``recipe`` in ``graphcost/validation/names.toml``."""

CHANGED = ("tresnet", "ecaresnext50t_32x4d", "ig_resnext101_32x32d", "vit_base_patch16_224_miil")
"""Left out: networks whose definition is another one today. But for the first (its times show it) these are all whose
parameters differ from the table's ``param_count`` by more than 3 %."""

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
    found: dict[tuple[object, ...], Sample] = {}
    for row in read_table(folder / TABLES[which]):
        job = job_of(row)
        if isinstance(job, Skipped) or not row.step_s:
            continue
        name, image = job.source.removeprefix("timm:"), job.dims["image"]
        if name.startswith(CHANGED):
            continue
        device = job.cluster.device
        features = timm_features(name, image, job.batch, job.recipe, device, fast_norms=job.fast_norms)
        if features is None:
            continue
        key = (features.rows, features.terms.tobytes())
        found.setdefault(key, Sample(f"{name}@{image}", family_of(name), features, row.step_s))
    return list(found.values())
