"""timm's own models by name, ``timm:NAME``, against torch's counter and their own parameters.

``python -m benchmarks.timm_models [NAME ...]``: batch 1, forward and backward; exit 1 on any
difference that is not derived (see ``flop_counter``). Needs ``pip install 'graphcost[timm]'``.
"""

from __future__ import annotations

import argparse
import sys
import warnings

import torch

import graphcost
from benchmarks._measure import machine
from benchmarks.flop_counter import GROUPED, Figures, compare
from graphcost.frontends.torch.libraries import import_timm
from graphcost.graph import totals
from graphcost.report.tables import table_text

NAMES = (
    "resnet50", "efficientnet_b0", "mobilenetv3_large_100", "regnety_032", "densenet121", "convnext_tiny",
    "swin_tiny_patch4_window7_224", "vit_base_patch16_224", "deit_small_patch16_224", "mixer_b16_224",
)  # fmt: skip


def counted(name: str) -> tuple[Figures, int, int]:
    """(FLOPs both ways, parameters of ``timm:name``, parameters of the module itself)."""
    module = import_timm().create_model(name, pretrained=False).eval()
    graph = graphcost.load(f"timm:{name}", batch=1)
    size = module.pretrained_cfg["input_size"]
    figures = compare((module, (torch.zeros(1, *size),)), graph)
    return figures, totals(graph).params, sum(parameter.numel() for parameter in module.parameters())


def main() -> int:
    """Print the table; 1 where a count differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="timm's names")
    chosen = parser.parse_args().names or list(NAMES)
    warnings.simplefilter("ignore")
    rows, failures = [], 0
    for name in chosen:
        found, params, own = counted(name)
        agrees = found.agrees and params == own
        failures += not agrees
        numbers = (params, own, found.forward, found.torch_forward, found.backward, found.torch_backward)
        verdict = f"{GROUPED}: +{found.excess:,}" if found.excess else "equal"
        rows.append([name, *(f"{number:,}" for number in numbers), verdict if agrees else "DIFFERS"])
    print(f"$ python -m benchmarks.timm_models {' '.join(sys.argv[1:])}".rstrip())
    print(f"{machine()}, torch {torch.__version__}, timm {import_timm().__version__}")
    columns = ["model", "params", "timm's", "forward FLOP", "torch's", "backward FLOP", "torch's", ""]
    print(table_text(columns, rows, right=(1, 2, 3, 4, 5, 6), width=220))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
