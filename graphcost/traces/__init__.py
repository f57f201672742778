"""Recorded steps: job features from a Chrome trace that ``torch.profiler`` exported.

FLOPs and memory traffic come from the shapes that ``record_shapes=True`` stores with every operator (the exported
file holds no counts of its own), communication from the recorded collectives. What a trace does not hold is None.
"""

from graphcost.traces.features import TraceFeatures, trace_features
from graphcost.traces.reading import is_trace, read_trace

__all__ = ["TraceFeatures", "is_trace", "read_trace", "trace_features"]
