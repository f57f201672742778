"""Decoders with learned positions: GPT-2 (Radford 2019), GPT-3 (Brown 2020), OPT (Zhang 2022), MPT, Megatron-LM."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry
from graphcost.models_zoo.bert import checked_length


@dataclass(frozen=True)
class Shape:
    """A decoder; ``positions`` 0: a row for every token asked for. ``fused``: attention is one kernel."""

    layers: int
    width: int
    heads: int
    vocabulary: int = 50257
    positions: int = 1024
    activation: str = "Gelu"
    fused: bool = False

    def params(self, seq: int = 0) -> int:
        """Four projections and two layers with biases, two normalisations a layer and a last one, tied head.

        Source: 12 l h^2 (1 + 13 / (12 h)) + (V + s) h of arXiv 2104.04473, and 2 h of the last normalisation.
        """
        h = self.width
        return self.layers * (12 * h * h + 13 * h) + (self.vocabulary + (self.positions or seq) + 2) * h

    def macs(self, seq: int) -> int:
        """Attention counts the full square."""
        each = 12 * self.width**2 * seq + 2 * seq * seq * self.width
        return self.layers * each + seq * self.width * self.vocabulary


def decoder(b: Builder, batch: int, dims: Mapping[str, int], *, shape: Shape) -> Model:
    """Pre-norm decoder with tied head (GPT2LMHeadModel). Attention counts the full square."""
    width, heads = shape.width, shape.heads
    seq = checked_length(b, dims, shape.positions) if shape.positions else dims["seq"]
    ids = b.input("input_ids", (batch, seq), "int64")
    mask = None if shape.fused else b.constant("causal_mask", (1, 1, seq, seq), "float32")
    x = b.embedding(ids, shape.vocabulary, width, name="wte")
    x = b.add(x, b.embedding(b.constant("position_ids", (1, seq)), shape.positions or seq, width, name="wpe"))
    x = b.dropout(x)
    for layer in range(shape.layers):
        with b.scope("h", layer):
            y = b.layer_norm(x, "ln_1")
            with b.scope("attn"):
                qkv = b.linear(y, 3 * width, name="c_attn")
                q, k, v = (b.part(qkv, i * width, (i + 1) * width, name=part) for i, part in enumerate("qkv"))
                if shape.fused:
                    y = b.fused_attention(q, k, v, heads, heads)
                else:
                    y = b.attention(q, k, v, heads, mask, dropout=True)
                y = b.dropout(b.linear(y, width, name="c_proj"))
            x = b.add(x, y)
            with b.scope("mlp"):
                y = b.linear(b.layer_norm(x, "ln_2"), 4 * width, name="c_fc")
                attrs = {"approximate": "tanh"} if shape.activation == "Gelu" else {}
                y = b.pointwise(shape.activation, y, **attrs)
                x = b.add(x, b.dropout(b.linear(y, width, name="c_proj")))
    return b.finish(b.tied_head(b.layer_norm(x, "ln_f"), "wte.weight"))


def megatron(b: Builder, batch: int, dims: Mapping[str, int]) -> Model:
    """A decoder of any ``layers``, ``hidden`` and ``heads``, as Megatron-LM builds it."""
    if dims["hidden"] % dims["heads"]:
        raise b.refuse("heads", dims["heads"], f"divisors of its hidden size {dims['hidden']}")
    shape = Shape(dims["layers"], dims["hidden"], dims["heads"], dims["vocabulary"], positions=0)
    return decoder(b, batch, dims, shape=shape)


MEGATRON = "Narayanan et al. 2021, arXiv 2104.04473"
NAMED = re.compile(r"gpt-h(?P<hidden>\d+)-l(?P<layers>\d+)(?:-a(?P<heads>\d+))?")
"""``gpt-h1024-l12`` or ``gpt-h1024-l12-a16``: a Megatron decoder by its sizes."""

HEADS = {768: 12, 1024: 16, 2048: 16, 2304: 24, 3072: 32, 4096: 32, 20_480: 128, 25_600: 160}
"""Heads of the published shapes; wider ones have 128 channels a head."""


def by_name(name: str) -> ZooEntry | None:
    """The entry of a name like ``gpt-h1024-l12``, made on the spot; None for other names."""
    found = NAMED.fullmatch(name)
    if found is None:
        return None
    hidden, layers = int(found["hidden"]), int(found["layers"])
    heads = int(found["heads"] or HEADS.get(hidden, max(1, hidden // 128)))
    return _megatron_entry(f"GPT, {layers} layers of {hidden}, {heads} heads", hidden, layers, heads)


def _megatron_entry(title: str, hidden: int, layers: int, heads: int, seq: int = 1024) -> ZooEntry:
    shape = Shape(layers, hidden, heads, 51_200, positions=0)
    return ZooEntry(
        title=title,
        citation=MEGATRON,
        published_params=shape.params(seq),
        published_macs=shape.macs(seq),
        published_source="closed form of the paper's section 5, and the last normalisation",
        build=megatron,
        dims={"seq": seq, "hidden": hidden, "layers": layers, "heads": heads, "vocabulary": 51_200},
        domain="language",
    )


RADFORD = "Radford et al. 2019, Language Models are Unsupervised Multitask Learners"
BROWN = "Brown et al. 2020, arXiv 2005.14165"
TIED = "parameters of transformers' GPT2LMHeadModel, head tied; MACs by the closed form"
for _name, _title, _shape, _params, _citation, _source in (
    ("gpt2", "GPT-2", Shape(12, 768, 12), 124_439_808, RADFORD, TIED),
    ("gpt2-medium", "GPT-2-medium", Shape(24, 1024, 16), 354_823_168, RADFORD, TIED),
    ("gpt2-large", "GPT-2-large", Shape(36, 1280, 20), 774_030_080, RADFORD, TIED),
    ("gpt2-xl", "GPT-2-xl", Shape(48, 1600, 25), 1_557_611_200, RADFORD, TIED),
    ("gpt3-xl", "GPT-3 XL", Shape(24, 2048, 16, positions=2048), 1_315_723_264, BROWN, TIED),
    ("gpt3-2-7b", "GPT-3 2.7B", Shape(32, 2560, 32, positions=2048), 2_651_553_280, BROWN, TIED),
    ("opt-1-3b", "OPT-1.3B", Shape(24, 2048, 32, 50272, positions=2050, activation="Relu"), 1_315_758_080,
     "Zhang et al. 2022, arXiv 2205.01068", "parameters of transformers' OPTForCausalLM; MACs by the closed form"),
):  # fmt: skip
    _seq = min(_shape.positions, 2048)
    ZOO.add(
        _name,
        ZooEntry(
            title=_title,
            citation=_citation,
            published_params=_params,
            published_macs=_shape.macs(_seq),
            published_source=_source,
            build=partial(decoder, shape=_shape),
            dims={"seq": _seq},
            domain="language",
        ),
    )
_MPT = Shape(0, 0, 0, vocabulary=50368, positions=0, fused=True)
for _size, _layers, _width, _heads, _params in (
    ("125m", 12, 768, 12, 125_311_488), ("350m", 24, 1024, 16, 355_985_408), ("760m", 24, 1536, 12, 760_470_528),
    ("1b", 24, 2048, 16, 1_315_950_592), ("3b", 32, 2560, 20, 2_651_837_440), ("7b", 32, 4096, 32, 6_658_859_008),
    ("13b", 40, 5120, 40, 12_853_954_560), ("30b", 48, 7168, 56, 29_975_214_080),
    ("70b", 80, 8192, 64, 64_862_437_376),
):  # fmt: skip
    _shape = replace(_MPT, layers=_layers, width=_width, heads=_heads)
    ZOO.add(
        f"mpt-{_size}",
        ZooEntry(
            title=f"MPT {_size.upper()}",
            citation="MosaicML llm-foundry, scripts/train/benchmarking",
            published_params=_params,
            published_macs=_shape.macs(2048),
            published_source=(
                "n_params of llm-foundry's benchmark tables at 2048 tokens (1b, 3b, 13b, 30b; the others recalled); "
                "MACs by the closed form"
            ),
            build=partial(decoder, shape=_shape),
            dims={"seq": 2048},
            domain="language",
        ),
    )
ZOO.add("gpt", _megatron_entry("GPT of any size, as Megatron-LM's", 1024, 24, 16))
