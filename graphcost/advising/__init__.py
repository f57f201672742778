"""The smallest changes that take a model under its limit, and the values at which its verdict turns."""

from graphcost.advising.advise import advise_model
from graphcost.advising.result import Advising

__all__ = ["Advising", "advise_model"]
