"""Forward and backward FLOPs against torch's own counter: one table, exit 1 where a difference has no derivation.

``python -m benchmarks.flop_counter [NAME ...]`` runs every network forward and backward under
``torch.utils.flop_counter.FlopCounterMode`` (the loss is the sum of all float outputs) and
compares with the plan of a training step. A difference must equal an amount that is derived
from the graph, operator by operator; there is no tolerance.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

import graphcost
from benchmarks._measure import machine
from benchmarks.agreement_models import Built
from benchmarks.flop_models import COUNTED
from graphcost.graph import operators
from graphcost.ir import Phase
from graphcost.report.tables import table_text
from graphcost.training import plan_step

GROUPED = "torch counts dW of a grouped convolution `groups` times"


@dataclass(frozen=True, slots=True)
class Figures:
    """Matmul FLOPs of both passes, ours and torch's; ``excess`` is what torch's backward derives to have more."""

    forward: int
    backward: int
    torch_forward: int
    torch_backward: int
    excess: int

    @property
    def agrees(self) -> bool:
        """Whether every difference is accounted for, to the FLOP."""
        return (self.forward, self.backward + self.excess) == (self.torch_forward, self.torch_backward)


@contextmanager
def countable(module: Any) -> Iterator[None]:
    """Operators that the counter can see into.

    Attention as its two products; recurrent layers step by step instead of one oneDNN
    operator; ``torch.cond``, which compiles its branches, as its first (in these networks
    the dearer) branch. transformers' experts run one by one: its grouped product is one
    operator that the counter has no formula for.
    """
    with ExitStack() as stack:
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        if any(isinstance(part, torch.nn.RNNBase) for part in module.modules()):
            stack.enter_context(torch.backends.mkldnn.flags(enabled=False))
        stack.enter_context(mock.patch.object(torch, "cond", lambda _, first, __, operands: first(*operands)))
        yield


def torch_flops(module: Any, inputs: Any) -> tuple[int, int]:
    """(forward, backward) FLOPs that torch counts in one real pass of each."""
    for part in module.modules():
        config: Any = getattr(part, "config", None)
        if getattr(config, "_experts_implementation", None):
            config._experts_implementation = "eager"
    counter = FlopCounterMode(display=False)
    with countable(module), counter:
        outputs = module(*inputs)
        forward = counter.get_total_flops()
        leaves = tree_leaves(dict(outputs) if hasattr(outputs, "keys") else outputs)
        loss = sum(leaf.sum() for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad)
        loss.backward()
    return int(forward), int(counter.get_total_flops()) - int(forward)


def grouped_excess(graph: Any) -> int:
    """``(groups - 1)`` times dW's FLOPs, one forward's each, over all trained grouped convolutions."""
    return sum(
        (node.attrs.get("group", 1) - 1) * cost.matmul_flops * node.repeat
        for _, node, cost in operators(graph)
        if node.op_type in ("Conv", "ConvTranspose") and any(index == 1 and p.trainable for index, p in node.params)
    )


def compare(built: Built, graph: Any = None) -> Figures:
    """One network, both ways; ``graph`` where it is loaded by another road than from the module."""
    module, inputs = built
    if graph is None:
        graph = graphcost.load(module, inputs)
    plan = plan_step(graph)
    forward, backward = (plan.total(phase).matmul_flops for phase in (Phase.FORWARD, Phase.BACKWARD))
    return Figures(forward, backward, *torch_flops(module, inputs), grouped_excess(graph))


def main() -> int:
    """Print the table; 1 where a difference is not derived."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(COUNTED)}")
    chosen = parser.parse_args().names or list(COUNTED)
    warnings.simplefilter("ignore")
    rows, failures = [], 0
    for name in chosen:
        found = compare(COUNTED[name]())
        failures += not found.agrees
        verdict = f"{GROUPED}: +{found.excess:,}" if found.excess else "equal"
        numbers = (found.forward, found.torch_forward, found.backward, found.torch_backward)
        rows.append([name, *(f"{number:,}" for number in numbers), verdict if found.agrees else "DIFFERS"])
    print(f"$ python -m benchmarks.flop_counter {' '.join(sys.argv[1:])}".rstrip())
    print(f"{machine()}, torch {torch.__version__}")
    columns = ["model", "forward FLOP", "torch's", "backward FLOP", "torch's", ""]
    print(table_text(columns, rows, right=(1, 2, 3, 4), width=200))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
