"""transformers' own models, random weights never allocated, against published and hand-derived FLOPs.

Matmul-class FLOPs, forward, batch 1: torch's counter with math attention and the models'
closed forms agree on them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import graphcost
from graphcost.cli.main import main
from graphcost.errors import ModelFileError
from graphcost.frontends.torch.libraries import fake, import_transformers
from graphcost.graph import totals

torch = pytest.importorskip("torch", reason="torch is an extra")
pytest.importorskip("transformers", reason="transformers is an extra")
T = import_transformers()
pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning"),
    pytest.mark.slow,
]


def ids(length: int) -> Any:
    return torch.zeros(1, length, dtype=torch.long)


T5_SMALL = {"d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8}
WHISPER_TINY = {
    "encoder_layers": 4, "decoder_layers": 4, "d_model": 384, "encoder_attention_heads": 6,
    "decoder_attention_heads": 6, "encoder_ffn_dim": 1536, "decoder_ffn_dim": 1536,
}  # fmt: skip
MIXTRAL = {
    "hidden_size": 256, "num_hidden_layers": 4, "num_local_experts": 8, "num_experts_per_tok": 2,
    "vocab_size": 32000, "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 688,
}  # fmt: skip
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any], int]] = {
    "bert": ("BertModel", {}, {"input_ids": ids(128)}, 22_348_431_360),
    "gpt2": ("GPT2LMHeadModel", {}, {"input_ids": ids(128)}, 32_228_179_968),
    "vit-b-16": (
        "ViTForImageClassification", {"num_labels": 1000},
        {"pixel_values": torch.zeros(1, 3, 224, 224)}, 35_127_656_448,
    ),
    "t5-small": (
        "T5ForConditionalGeneration", T5_SMALL,
        {"input_ids": ids(32), "decoder_input_ids": ids(16)}, 2_662_334_464,
    ),
    "whisper-tiny": (
        "WhisperForConditionalGeneration", WHISPER_TINY,
        {"input_features": torch.zeros(1, 80, 3000), "decoder_input_ids": ids(8)}, 41_001_572_352,
    ),
    "albert-base": (
        "AlbertModel", {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072},
        {"input_ids": ids(128)}, 22_373_597_184,
    ),
    "mamba": (
        "MambaForCausalLM", {"hidden_size": 128, "num_hidden_layers": 2, "vocab_size": 1000},
        {"input_ids": ids(32)}, 23_015_424,
    ),
    "mixtral": ("MixtralForCausalLM", MIXTRAL, {"input_ids": ids(32)}, 841_482_240),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_known_flops(name: str) -> None:
    cls, sizes, inputs, flops = CASES[name]
    model = getattr(T, cls)
    built = fake(torch, lambda: model(model.config_class(**sizes)))
    graph = graphcost.load(built, inputs)
    found = totals(graph)
    assert found.cost.matmul_flops == flops
    assert found.coverage.unknown == ()
    assert found.params == sum(
        p.numel() for p in fake(torch, lambda: model(model.config_class(**sizes))).parameters()
    )


@pytest.mark.parametrize("name", ["OPTForCausalLM", "Qwen2ForCausalLM"])
def test_models_that_return_a_cache_export(name: str) -> None:
    cls = getattr(T, name)
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100}
    sizes |= (
        {"ffn_dim": 128, "word_embed_proj_dim": 64}
        if "OPT" in name
        else {"intermediate_size": 128, "num_key_value_heads": 2}
    )
    graph = graphcost.load(fake(torch, lambda: cls(cls.config_class(**sizes))), {"input_ids": ids(16)})
    assert totals(graph).coverage.unknown == () and totals(graph).macs > 0


def test_a_configuration_file_is_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "bert", "num_hidden_layers": 1, "architectures": ["BertModel"]}))
    assert (
        main(["count", f"transformers:{path}", "--batch", "2", "--dim", "seq=16", "--format", "json", "--quiet"]) == 0
    )
    found = json.loads(capsys.readouterr().out)["graph"]["macs"]
    assert found == 2 * (12 * 768**2 * 16 + 2 * 16**2 * 768 + 768**2)  # one layer and the pooler
    path.write_text("{}")
    with pytest.raises(ModelFileError, match="no transformers configuration"):
        graphcost.load(f"transformers:{path}")
    with pytest.raises(ModelFileError, match="no such file"):
        graphcost.load("transformers:missing.json")


def test_seven_billion_parameters_take_no_memory() -> None:
    """The default Llama configuration is the 7-billion one; its weights would be 27 GB."""
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    graph = graphcost.load(fake(torch, lambda: T.LlamaForCausalLM(T.LlamaConfig())), {"input_ids": ids(64)})
    assert totals(graph).params == 6_738_415_616
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2 * 2**20  # KiB
