"""Pictures for papers and slides, with matplotlib (extra ``graphcost[plot]``).

Every function draws into one file, whose suffix chooses the format: ``.png``, ``.svg`` or
``.pdf``. Text stays text in the latter two. The same input gives the same bytes.
"""

from graphcost.report.plots.analysis import analysis_plot
from graphcost.report.plots.comparison import comparison_plot
from graphcost.report.plots.figure import PLOT_SUFFIXES, check_plot
from graphcost.report.plots.fleet import fleet_plot
from graphcost.report.plots.pareto import pareto_plot
from graphcost.report.plots.sweep import SweepSeries, lines_of, sweep_plot

__all__ = [
    "PLOT_SUFFIXES",
    "SweepSeries",
    "analysis_plot",
    "check_plot",
    "comparison_plot",
    "fleet_plot",
    "lines_of",
    "pareto_plot",
    "sweep_plot",
]
