"""The PAI study over a table of jobs: characterize, project, sweep, generate.

A table is CSV or Parquet, one row a job; it is read in blocks through polars and
evaluated on whole numpy columns by the study's equations in ``graphcost.engine.paper``.
"""

from graphcost.fleet.assumptions import study_assumptions
from graphcost.fleet.characterize import characterize
from graphcost.fleet.population import generate, load_population
from graphcost.fleet.project import CHOICES, project
from graphcost.fleet.rates import Hardware, hardware_of
from graphcost.fleet.sweep import sweep
from graphcost.fleet.table import JobTable, open_jobs
from graphcost.fleet.targets import Study, judge_targets
from graphcost.fleet.writing import form_of

__all__ = [
    "CHOICES", "Hardware", "JobTable", "Study", "characterize", "form_of", "generate", "hardware_of", "judge_targets",
    "load_population", "open_jobs", "project", "study_assumptions", "sweep",
]  # fmt: skip
