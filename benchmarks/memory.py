"""Memory of a training step against torch's own MemTracker, eight models under fake tensors.

``python -m benchmarks.memory [NAME ...]``. MemTracker (torch.distributed._tools) follows
every tensor of two real steps with Adam; nothing is allocated. Activations, the
tensors made in the forward pass that are alive when the backward pass begins, and the
inputs must agree within 5 %; weights, gradients and optimizer state exactly.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker
from torch.utils._pytree import tree_leaves

import graphcost
from benchmarks._measure import machine
from benchmarks.agreement_models import Built, dlrm, encoder_decoder, mobilenet_v2, resnet50, vgg16
from graphcost.frontends.torch.libraries import import_transformers
from graphcost.report.tables import table_text
from graphcost.training import plan_step

TOLERANCE = 0.05
STEP_COUNTER_BYTES = 4
"""Adam's step counter of one parameter, which torch keeps on the host."""


def vit() -> Built:
    """transformers' ViT-B/16 at 224 x 224."""
    t = import_transformers()
    config = t.ViTConfig(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, attn_implementation="eager")
    return t.ViTModel(config), (torch.zeros(1, 3, 224, 224),)


def gpt2() -> Built:
    """transformers' GPT2LMHeadModel, two layers, 64 tokens, attention written out."""
    t = import_transformers()
    config = t.GPT2Config(n_layer=2, use_cache=False, attn_implementation="eager", attn_pdrop=0.0)
    return t.GPT2LMHeadModel(config), (torch.zeros(1, 64, dtype=torch.long),)


def bert_base() -> Built:
    """transformers' BertModel at 128 tokens, attention written out."""
    t = import_transformers()
    ids = torch.zeros(1, 128, dtype=torch.long)
    config = t.BertConfig(attn_implementation="eager", attention_probs_dropout_prob=0.0)
    return t.BertModel(config), (ids, torch.ones_like(ids), torch.zeros_like(ids))


def _without_dropout(built: Built) -> Built:
    """The CPU's dropout keeps four bytes an element where a GPU's keeps one: left out of the comparison."""
    for module in built[0].modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return built


MODELS: dict[str, Callable[[], Built]] = {
    "resnet50": resnet50,
    "mobilenet-v2": mobilenet_v2,
    "vgg16": vgg16,
    "bert-base": bert_base,
    "gpt2 (2 layers)": gpt2,
    "vit-b16": vit,
    "encoder-decoder": encoder_decoder,
    "dlrm": dlrm,
}


def _fake(module: nn.Module, mode: FakeTensorMode) -> None:
    """Every stored tensor replaced by one without storage, tied ones by the same."""
    made: dict[int, Any] = {}
    for part in module.modules():
        for name, parameter in part.named_parameters(recurse=False):
            if id(parameter) not in made:
                made[id(parameter)] = nn.Parameter(mode.from_tensor(parameter.detach()), parameter.requires_grad)
            setattr(part, name, made[id(parameter)])
        for name, buffer in part.named_buffers(recurse=False):
            setattr(part, name, mode.from_tensor(buffer))


def tracked(make: Callable[[], Built], batch: int) -> dict[str, int]:
    """Bytes by MemTracker's categories: activations and inputs at the turn, the rest later in the second step."""
    module, inputs = _without_dropout(make())
    mode = FakeTensorMode()
    _fake(module.train(), mode)
    inputs = tuple(mode.from_tensor(torch.cat([value] * batch)) for value in inputs)
    with mode:
        optimizer = torch.optim.Adam(module.parameters(), lr=1e-3)
        tracker = MemTracker()
        tracker.track_external(module, optimizer, *inputs)
        found: dict[str, int] = {}
        with tracker:
            for _ in range(2):
                tracker.reset_mod_stats()
                outputs = [leaf for leaf in tree_leaves(module(*inputs)) if isinstance(leaf, torch.Tensor)]
                loss = sum(leaf.sum() for leaf in outputs if leaf.is_floating_point() and leaf.requires_grad)
                del outputs
                at_turn = _snapshot(tracker)
                found["activations"] = at_turn["Activation"] + at_turn["Other"]
                loss.backward()
                del loss
                found["gradients"] = _snapshot(tracker)["Gradient"]
                optimizer.step()
                end = _snapshot(tracker)
                counters = STEP_COUNTER_BYTES * sum(1 for _ in module.parameters())
                found.update(weights=end["Parameter"], optimizer=end["Optstate"] - counters)
                optimizer.zero_grad()
    return found


def _snapshot(tracker: MemTracker) -> dict[str, int]:
    (device,) = tracker.get_tracker_snapshot("current").values()
    return {getattr(kind, "value", str(kind)): int(size) for kind, size in device.items()}


def ours(make: Callable[[], Built], batch: int) -> dict[str, int]:
    """The same by graphcost. Inputs are no activations, Adam's step counters no state of a parameter."""
    module, inputs = _without_dropout(make())
    inputs = tuple(torch.cat([value] * batch) for value in inputs)
    memory = plan_step(graphcost.load(module, inputs)).memory
    return {
        "activations": memory.activations_bytes,
        "gradients": memory.gradients_bytes,
        "weights": memory.weights_bytes,
        "optimizer": memory.optimizer_bytes,
    }


def main() -> int:
    """Print the table; 1 where a model misses."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(MODELS)}")
    parser.add_argument("--batch", type=int, default=2)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    rows, missed = [], 0
    for name in arguments.names or MODELS:
        theirs, mine = tracked(MODELS[name], arguments.batch), ours(MODELS[name], arguments.batch)
        for what in ("activations", "weights", "gradients", "optimizer"):
            ratio = mine[what] / theirs[what]
            agrees = abs(ratio - 1) <= TOLERANCE if what == "activations" else mine[what] == theirs[what]
            missed += not agrees
            rows.append(
                [name, what, f"{theirs[what]:,}", f"{mine[what]:,}", f"{ratio:.4f}", "" if agrees else "MISSED"]
            )
    print(f"$ python -m benchmarks.memory {' '.join(sys.argv[1:])}".rstrip())
    print(machine())
    print(table_text(["model", "bytes", "MemTracker", "graphcost", "ratio", ""], rows, right=(2, 3, 4), width=120))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
