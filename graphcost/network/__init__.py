"""The network: what a collective costs on a placement, by the best algorithm, and whence that is known."""

from graphcost.network.choice import Collective, Way, way
from graphcost.network.curves import Curve, Piece, System, curve_for, systems

__all__ = ["Collective", "Curve", "Piece", "System", "Way", "curve_for", "systems", "way"]
