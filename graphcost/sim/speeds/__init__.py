"""Speed models: fits, a measured table, DL2's analytical model, graphcost's own engine."""

from graphcost.sim.speeds.analytical import AnalyticalSpeeds
from graphcost.sim.speeds.base import SpeedModel
from graphcost.sim.speeds.fits import FitSpeeds
from graphcost.sim.speeds.table import TableSpeeds

__all__ = ["AnalyticalSpeeds", "FitSpeeds", "SpeedModel", "TableSpeeds"]
