"""graphcost: what a deep-learning model costs to train, from its graph alone.

>>> import graphcost
>>> graphcost.analyze("zoo:resnet50", gpus=8, batch=32).graph.params
25557032
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphcost._version import __version__
from graphcost.errors import GraphcostError

if TYPE_CHECKING:
    from graphcost.analysis import analyze
    from graphcost.placing import AnalysisOptions
    from graphcost.result import Analysis
    from graphcost.sources import load

__all__ = ["Analysis", "AnalysisOptions", "GraphcostError", "__version__", "analyze", "load"]

# Names resolved on first use, so that `import graphcost` reads no model code.
_LAZY = {
    "analyze": "graphcost.analysis",
    "AnalysisOptions": "graphcost.placing",
    "Analysis": "graphcost.result",
    "load": "graphcost.sources",
}


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'graphcost' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(module), name)
