"""The zoo against the libraries whose layouts it follows: parameters, and torch's counter of MACs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from graphcost.errors import UsageError  # noqa: E402
from graphcost.frontends.torch.libraries import import_timm, import_transformers  # noqa: E402
from graphcost.graph import build_graph, totals  # noqa: E402
from graphcost.models_zoo import build, describe, names  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning")


def counted(name: str, **dims: int) -> tuple[int, int]:
    found = totals(build_graph(build(name, batch=1, dims=dims)))
    return found.params, found.macs


def parameters(module: Any) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def macs_of(module: Any, *inputs: Any) -> int:
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter, torch.no_grad():
        module(*inputs)
    return counter.get_total_flops() // 2


IMAGES = [name for name in names() if "torchvision's own parameters; MACs" in describe(name).published_source]
OTHERS = {  # zoo name -> torchvision's, where dashes for underscores do not make it
    "mobilenet-v2": "mobilenet_v2", "mobilenet-v3-small": "mobilenet_v3_small",
    "mobilenet-v3-large": "mobilenet_v3_large", "googlenet": "googlenet",
}  # fmt: skip
TIMM = {
    "resnet200": "resnet200", "resnext101-32x4d": "resnext101_32x4d", "seresnet50": "seresnet50",
    "seresnext50-32x4d": "seresnext50_32x4d", "seresnext101-32x4d": "seresnext101_32x4d",
    "inception-v3": "inception_v3", "inception-v4": "inception_v4", "mobilenet-v1": "mobilenetv1_100",
}  # fmt: skip


def libraries() -> tuple[Any, Any]:
    """timm and torchvision, or a skip that says why."""
    try:
        timm = import_timm()
        import torchvision
    except (ImportError, UsageError) as error:
        pytest.skip(str(error))
    return timm, torchvision


def check_image_model(name: str, module: Any) -> None:
    side = describe(name).dims["image"]
    module = module.eval().to("meta")
    image = torch.zeros(1, 3, side, side, device="meta")
    assert counted(name) == (parameters(module), macs_of(module, image))


def test_every_name_has_its_torchvision_model() -> None:
    _, torchvision = libraries()
    assert len(IMAGES) > 50
    for name in IMAGES:
        assert hasattr(torchvision.models, OTHERS.get(name, name.replace("-", "_"))), name


@pytest.mark.slow
@pytest.mark.parametrize("name", IMAGES)
def test_torchvision(name: str) -> None:
    _, torchvision = libraries()
    options = {"aux_logits": False, "init_weights": False} if name == "googlenet" else {}
    make = getattr(torchvision.models, OTHERS.get(name, name.replace("-", "_")))
    check_image_model(name, make(weights=None, **options))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TIMM))
def test_timm(name: str) -> None:
    timm, _ = libraries()
    check_image_model(name, timm.create_model(TIMM[name], pretrained=False))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("retinanet-resnet50", "retinanet_resnet50_fpn"),
        ("maskrcnn-resnet50", "maskrcnn_resnet50_fpn"),
        ("ssd300-vgg16", "ssd300_vgg16"),
    ],
)
def test_torchvision_detectors(name: str, make: str) -> None:
    """Weights of a backbone freeze its normalisation in torchvision; without them it is trained."""
    _, torchvision = libraries()
    module = getattr(torchvision.models.detection, make)(weights=None, weights_backbone=None)
    frozen = 53_120 if "resnet50" in name else 0
    assert counted(name)[0] == parameters(module) - frozen


def transformers_models() -> dict[str, Callable[[], Any]]:
    t = import_transformers()

    def gpt2(**sizes: int) -> Callable[[], Any]:
        return lambda: t.GPT2LMHeadModel(t.GPT2Config(**sizes))

    def llama(width: int, layers: int, heads: int, kv: int, inner: int, words: int, bias: bool = False) -> Any:
        config = t.LlamaConfig(
            hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=kv,
            intermediate_size=inner, vocab_size=words, attention_bias=bias,
        )  # fmt: skip
        return t.LlamaForCausalLM(config)

    def t5(**sizes: int) -> Callable[[], Any]:
        return lambda: t.T5ForConditionalGeneration(t.T5Config(**sizes))

    large = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
    opt = {
        "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 32, "ffn_dim": 8192,
        "word_embed_proj_dim": 2048,
    }  # fmt: skip
    electra = {"embedding_size": 768, "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}
    return {
        "bert-base": lambda: t.BertModel(t.BertConfig()),
        "bert-large": lambda: t.BertModel(t.BertConfig(**large)),
        "bert-base-pretraining": lambda: t.BertForPreTraining(t.BertConfig()),
        "bert-large-pretraining": lambda: t.BertForPreTraining(t.BertConfig(**large)),
        "pai-bert": lambda: t.BertForQuestionAnswering(t.BertConfig()),
        "electra-base": lambda: t.ElectraModel(t.ElectraConfig(**electra)),
        "gpt2": gpt2(),
        "gpt2-medium": gpt2(n_embd=1024, n_layer=24, n_head=16),
        "gpt2-large": gpt2(n_embd=1280, n_layer=36, n_head=20),
        "gpt2-xl": gpt2(n_embd=1600, n_layer=48, n_head=25),
        "gpt3-xl": gpt2(n_embd=2048, n_layer=24, n_head=16, n_positions=2048),
        "gpt3-2-7b": gpt2(n_embd=2560, n_layer=32, n_head=32, n_positions=2048),
        "opt-1-3b": lambda: t.OPTForCausalLM(t.OPTConfig(**opt)),
        "bart-large": lambda: t.BartForConditionalGeneration(t.BartConfig()),
        "t5-small": t5(),
        "t5-base": t5(d_model=768, d_ff=3072, num_layers=12, num_heads=12),
        "t5-large": t5(d_model=1024, d_ff=4096, num_layers=24, num_heads=16),
        "llama2-7b": partial(llama, 4096, 32, 32, 32, 11008, 32000),
        "llama2-13b": partial(llama, 5120, 40, 40, 40, 13824, 32000),
        "llama2-34b": partial(llama, 8192, 48, 64, 8, 22016, 32000),
        "llama2-70b": partial(llama, 8192, 80, 64, 8, 28672, 32000),
        "llama3-8b": partial(llama, 4096, 32, 32, 8, 14336, 128256),
        "llama3-70b": partial(llama, 8192, 80, 64, 8, 28672, 128256),
        "mistral-7b": partial(llama, 4096, 32, 32, 8, 14336, 32000),
        "internlm-7b": partial(llama, 4096, 32, 32, 32, 11008, 103168, True),
        "wav2vec2-base": lambda: t.Wav2Vec2ForCTC(t.Wav2Vec2Config()),
    }


IN_TRANSFORMERS = sorted(name for name in names() if "transformers" in describe(name).published_source)


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_TRANSFORMERS)
def test_transformers(name: str) -> None:
    pytest.importorskip("transformers")
    models = transformers_models()
    if name == "electra-base-pretraining":
        pytest.skip("two models of the library that share a table; tested below")
    with torch.device("meta"):
        assert counted(name)[0] == parameters(models[name]())


def test_electra_and_its_generator_share_one_table() -> None:
    pytest.importorskip("transformers")
    transformers = import_transformers()
    sizes = {"embedding_size": 768, "num_hidden_layers": 12}
    with torch.device("meta"):
        both = parameters(
            transformers.ElectraForPreTraining(
                transformers.ElectraConfig(hidden_size=768, num_attention_heads=12, intermediate_size=3072, **sizes)
            )
        ) + parameters(
            transformers.ElectraForMaskedLM(
                transformers.ElectraConfig(hidden_size=256, num_attention_heads=4, intermediate_size=1024, **sizes)
            )
        )
    assert counted("electra-base-pretraining")[0] == both - 30522 * 768


@pytest.mark.slow
@pytest.mark.parametrize("name", ["t5-small", "llama3-8b", "bart-large", "wav2vec2-base", "bert-base-pretraining"])
def test_macs_of_transformers_models(name: str) -> None:
    """Torch's counter on meta tensors with attention as products: it counts the full square, as the zoo does."""
    pytest.importorskip("transformers")
    with torch.device("meta"):
        module = transformers_models()[name]().eval()
        if name == "wav2vec2-base":
            inputs: dict[str, Any] = {"input_values": torch.zeros(1, 16_000)}
            dims = {"seconds": 1}
        else:
            ids = torch.zeros(1, 16, dtype=torch.int64)
            sides = "decoder_input_ids" in inspect.signature(module.forward).parameters
            inputs = {"input_ids": ids, **({"decoder_input_ids": ids} if sides else {})}
            dims = {"source": 16, "target": 16} if sides else {"seq": 16}
    module.set_attn_implementation("eager")
    assert counted(name, **dims)[1] == macs_of(lambda: module(**inputs))


def recurrent_reference(kind: str, sizes: list[tuple[int, int, bool]]) -> int:
    return sum(parameters(getattr(torch.nn, kind)(i, h, bidirectional=both)) for i, h, both in sizes)


def test_recurrent_models_hold_torchs_cells() -> None:
    """Cells by torch; convolutions, normalisations, tables and heads by hand."""
    with torch.device("meta"):
        gru = recurrent_reference("GRU", [(1312, 800, True), *[(800, 800, True)] * 4])
        encoder = recurrent_reference("LSTM", [(1024, 1024, True), (2048, 1024, False), *[(1024, 1024, False)] * 2])
        decoder = recurrent_reference("LSTM", [(1024, 1024, False), *[(2048, 1024, False)] * 3])
        words = recurrent_reference("LSTM", [(200, 200, False)] * 2)
    convolutions = 32 * 41 * 11 + 32 + 64 + 32 * 32 * 21 * 11 + 32 + 64
    assert counted("deepspeech2")[0] == gru + convolutions + 5 * 2 * 800 + 800 * 29
    attention = 2 * 1024 * 1024 + 1024 + 1024 + 1
    assert counted("gnmt")[0] == encoder + decoder + attention + 32_320 * (1024 + 1025)
    assert counted("lstm-lm-wikitext2")[0] == words + 33_278 * (200 + 201)


@pytest.mark.parametrize(("name", "width", "heads", "inner"), [("base", 512, 8, 2048), ("big", 1024, 16, 4096)])
def test_translation_models_are_torchs(name: str, width: int, heads: int, inner: int) -> None:
    """torch.nn.Transformer ends each side with a normalisation that the paper's post-norm layers do not need."""
    with torch.device("meta"):
        module = torch.nn.Transformer(width, heads, 6, 6, inner)
    assert counted(f"transformer-{name}")[0] == parameters(module) - 4 * width + 37_000 * width
