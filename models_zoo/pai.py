"""Case studies of the Alibaba-PAI workload study that are known networks: ResNet-50, BERT and a translator."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from graphcost.ir import Model
from graphcost.models_zoo import bert, resnet, translation
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry
from graphcost.models_zoo.pai_study import CASES, STUDY

WORDS = 50_000
"""Rows of either table: chosen so that tables of 512 values are 819 MB with four copies."""


def question_answering(b: Builder, batch: int, dims: Mapping[str, int]) -> Model:
    """BERT-base with a span head; int32 ids, as TensorFlow feeds them."""
    b.note("assumed: 320 tokens, chosen so that the input copy (three int32 ids a token) and FLOPs are the study's")
    b.id_dtype = "int32"
    return bert.question_answering(b, batch, dims, shape=bert.BASE, sparse=True)


def nmt(b: Builder, batch: int, dims: Mapping[str, int]) -> Model:
    """Transformer base with a table each for source and target; the target's is the head too, so dense."""
    b.note(
        "assumed: Transformer base, whose 44.1 million weights are the study's 706 MB with four copies; 50,000 rows "
        "a table, chosen so that both are 819 MB; sentences of 32 tokens, 6,144 tokens on either side"
    )
    b.id_dtype = "int32"
    return translation.build(b, batch, dims, shape=translation.BASE, one_table=False, sparse=True)


ZOO.add(
    "pai-resnet50",
    ZooEntry(
        title="PAI's ResNet-50",
        citation=f"{resnet.HE}; {STUDY}",
        published_params=25_557_032,
        published_macs=4_089_184_256,
        published_source="torchvision's own parameters; recalled: 204 MB of the study are two copies of them",
        build=partial(resnet.build, shape=resnet.RESNET50),
        dims={"image": 224},
        batch=CASES["pai-resnet50"].batch,
    ),
)
ZOO.add(
    "pai-bert",
    ZooEntry(
        title="PAI's BERT for question answering (assumed length)",
        citation=f"{bert.DEVLIN}; {STUDY}",
        published_params=108_893_186,
        published_macs=bert.BASE.macs(320) + 320 * 2 * 768,
        published_source="transformers BertForQuestionAnswering; recalled: 1 GB and 284 MB, three copies",
        build=question_answering,
        dims={"seq": 320},
        domain="language",
        batch=CASES["pai-bert"].batch,
    ),
)
ZOO.add(
    "pai-nmt",
    ZooEntry(
        title="PAI's NMT (assumed layers)",
        citation=STUDY,
        published_params=CASES["pai-nmt"].params,
        published_source="recalled: 706 MB dense and 819 MB of tables, four copies; 2.5 TFLOP for 6,144 tokens",
        build=nmt,
        dims={"source": 32, "target": 32, "source_vocabulary": WORDS, "target_vocabulary": WORDS},
        domain="language",
        rounding=200_000,
        batch=CASES["pai-nmt"].batch,
    ),
)
