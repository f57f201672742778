"""torchvision, also where its compiled operators were made for another build of torch.

timm and transformers import torchvision, whose import fails where its extension does not
load (a wheel for CUDA beside a torch for CPUs). No model here runs those operators, so
their schemas are declared in their place.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_declared: list[Any] = []
"""Libraries of declared operators: torch forgets them with the last reference."""


def make_importable(torch: Any) -> None:
    """Declare the operators that torchvision's import looks for, if its extension cannot be loaded."""
    spec = find_spec("torchvision")
    if spec is None or spec.origin is None or "torchvision" in sys.modules or _declared:
        return
    try:
        torch.ops.load_library(str(next(Path(spec.origin).parent.glob("_C*.so"))))
    except (OSError, StopIteration):
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _declared.append(library)
