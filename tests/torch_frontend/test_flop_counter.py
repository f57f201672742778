"""Forward and backward FLOPs equal torch's own counter, but for amounts that are derived."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is an extra")
pytest.importorskip("transformers", reason="transformers is an extra")
import graphcost  # noqa: E402
from benchmarks.flop_counter import compare  # noqa: E402 - needs both
from benchmarks.flop_models import COUNTED  # noqa: E402
from graphcost.frontends.torch.libraries import import_transformers  # noqa: E402
from graphcost.graph import totals  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning")

QUICK = ("lstm tagger", "encoder-decoder", "dlrm", "gated cnn", "u-net", "gru speech")
# What torch counts more in dW of grouped convolutions: (groups - 1) x 2 x batch x outputs x C/g x kernel.
EXCESS = {
    "gru speech": 3 * 2 * 2 * 50 * 64 * 10 * 5,
    # 3x3 depthwise, 9 MACs an output: channels x side^2, times channels - 1
    "mobilenet-v2": 2 * 9 * sum(
        count * width * side**2 * (width - 1)
        for width, side, count in (
            (32, 112, 1), (96, 56, 1), (144, 56, 1), (144, 28, 1), (192, 28, 2), (192, 14, 1), (384, 14, 4),
            (576, 14, 2), (576, 7, 1), (960, 7, 3),
        )
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else (pytest.mark.slow,)) for name in COUNTED]
)
def test_against_torchs_counter(name: str) -> None:
    found = compare(COUNTED[name]())
    assert found.excess == EXCESS.get(name, 0)
    assert found.torch_forward == found.forward
    assert found.torch_backward - found.excess == found.backward


SIZES = {
    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 200,
    "intermediate_size": 96, "num_experts_per_tok": 2, "use_cache": False, "pad_token_id": 0,
}  # fmt: skip
LATENT = {
    "n_routed_experts": 4, "n_shared_experts": 1, "first_k_dense_replace": 1, "moe_intermediate_size": 48,
    "q_lora_rank": 32, "kv_lora_rank": 32, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 16,
    "n_group": 2, "topk_group": 1,
}  # fmt: skip
MIXTURES = {
    "Qwen2Moe": {"num_experts": 4, "moe_intermediate_size": 48, "shared_expert_intermediate_size": 80},
    "DeepseekV3": LATENT,
    "GptOss": {"num_local_experts": 4, "head_dim": 16},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MIXTURES)
def test_mixtures_of_experts(name: str) -> None:
    """Experts run one by one under the counter, as one grouped product here: every token meets two of them."""
    cls = getattr(import_transformers(), f"{name}ForCausalLM")
    module = cls(cls.config_class(**SIZES, **MIXTURES[name]))
    graph = graphcost.load(module, (torch.zeros(1, 16, dtype=torch.long),))
    assert totals(graph).coverage.unknown == ()
    assert totals(graph).params == sum(parameter.numel() for parameter in module.parameters())
    assert compare((module, (torch.zeros(1, 16, dtype=torch.long),)), graph).agrees
