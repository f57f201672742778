"""From a step's plan and its placement to the time of a step, part by part.

Two profiles. ``paper``: the framework of the PAI study, flat utilisation, parts added.
``calibrated``: every operator on a roofline, host launches beside the GPU, gradient
buckets beside the backward pass.
"""

from enum import StrEnum

from graphcost.predict.asynchronous import predict_async
from graphcost.predict.calibrated import predict_calibrated
from graphcost.predict.divided import predict_divided
from graphcost.predict.lanes import Slice, slices_of
from graphcost.predict.paper import paper_features, predict_paper
from graphcost.predict.step_time import Message, StepTime, TimedOp

__all__ = [
    "Message",
    "Profile",
    "Slice",
    "StepTime",
    "TimedOp",
    "paper_features",
    "predict_async",
    "predict_calibrated",
    "predict_divided",
    "predict_paper",
    "slices_of",
]


class Profile(StrEnum):
    """Which model of the hardware."""

    PAPER = "paper"
    CALIBRATED = "calibrated"
