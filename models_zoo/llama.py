"""Touvron et al.: Llama (2023), its successors, and InternLM: gated decoders with rotary positions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from graphcost.ir import Model
from graphcost.models_zoo._builder import Builder
from graphcost.models_zoo._entry import ZOO, ZooEntry


@dataclass(frozen=True)
class Shape:
    """``kv_heads`` are shared by groups of query heads; ``biased``: the four projections have biases."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    inner: int
    vocabulary: int
    biased: bool = False

    def macs(self, seq: int) -> int:
        """Attention counts the full square."""
        d, kv = self.width, self.width // self.heads * self.kv_heads
        each = seq * (2 * d * d + 2 * d * kv + 3 * d * self.inner) + 2 * seq * seq * d
        return self.layers * each + seq * d * self.vocabulary


def build(b: Builder, batch: int, dims: Mapping[str, int], *, shape: Shape) -> Model:
    """Pre-norm by root mean square, rotary queries and keys, one attention kernel, SwiGLU, untied head."""
    seq, width, heads = dims["seq"], shape.width, shape.heads
    kv = width // heads * shape.kv_heads
    ids = b.input("input_ids", (batch, seq), "int64")
    positions = b.constant("positions", (batch, seq))
    x = b.embedding(ids, shape.vocabulary, width, name="embed_tokens")
    for layer in range(dims["layers"]):
        with b.scope("layers", layer):
            y = b.rms_norm(x, "input_layernorm")
            with b.scope("self_attn"):
                q = b.rotary(b.linear(y, width, bias=shape.biased, name="q_proj"), heads, seq, positions, "rotary_q")
                k = b.linear(y, kv, bias=shape.biased, name="k_proj")
                k = b.rotary(k, shape.kv_heads, seq, positions, "rotary_k")
                v = b.linear(y, kv, bias=shape.biased, name="v_proj")
                y = b.fused_attention(q, k, v, heads, shape.kv_heads)
                x = b.add(x, b.linear(y, width, bias=shape.biased, name="o_proj"))
            y = b.rms_norm(x, "post_attention_layernorm")
            with b.scope("mlp"):
                gate = b.swish(b.linear(y, shape.inner, bias=False, name="gate_proj"))
                y = b.pointwise("Mul", gate, b.linear(y, shape.inner, bias=False, name="up_proj"))
                x = b.add(x, b.linear(y, width, bias=False, name="down_proj"))
    return b.finish(b.linear(b.rms_norm(x, "norm"), shape.vocabulary, bias=False, name="lm_head"))


LLAMA2, LLAMA3 = "Touvron et al. 2023, arXiv 2307.09288", "Grattafiori et al. 2024, arXiv 2407.21783"
CARD = "transformers LlamaForCausalLM at the public configuration; MACs by the closed form"
for _name, _title, _shape, _seq, _citation, _params in (
    ("llama2-7b", "Llama 2 7B", Shape(32, 4096, 32, 32, 11008, 32000), 4096, LLAMA2, 6_738_415_616),
    ("llama2-13b", "Llama 2 13B", Shape(40, 5120, 40, 40, 13824, 32000), 4096, LLAMA2, 13_015_864_320),
    ("llama2-34b", "Llama 2 34B (Code Llama)", Shape(48, 8192, 64, 8, 22016, 32000), 4096,
     "Roziere et al. 2023, arXiv 2308.12950", 33_743_970_304),
    ("llama2-70b", "Llama 2 70B", Shape(80, 8192, 64, 8, 28672, 32000), 4096, LLAMA2, 68_976_648_192),
    ("llama3-8b", "Llama 3 8B", Shape(32, 4096, 32, 8, 14336, 128256), 8192, LLAMA3, 8_030_261_248),
    ("llama3-70b", "Llama 3 70B", Shape(80, 8192, 64, 8, 28672, 128256), 8192, LLAMA3, 70_553_706_496),
    ("mistral-7b", "Mistral 7B", Shape(32, 4096, 32, 8, 14336, 32000), 4096, "Jiang et al. 2023, arXiv 2310.06825",
     7_241_732_096),
    ("internlm-7b", "InternLM 7B", Shape(32, 4096, 32, 32, 11008, 103168, biased=True), 2048,
     "InternLM Team 2023, github.com/InternLM/InternLM", 7_321_948_160),
):  # fmt: skip
    ZOO.add(
        _name,
        ZooEntry(
            title=_title,
            citation=_citation,
            published_params=_params,
            published_macs=_shape.macs(_seq),
            published_source=CARD,
            build=partial(build, shape=_shape),
            dims={"seq": _seq, "layers": _shape.layers},
            domain="language",
        ),
    )
