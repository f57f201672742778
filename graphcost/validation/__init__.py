"""Predictions held against published measurements: tables in, errors out.

``tables`` reads rows, ``jobs`` turns a row into a model, a machine and options,
``predicting`` gives it a step time, ``scoring`` compares, ``tolerances`` judges.
Rows that cannot be predicted are counted with their reason.
"""

from graphcost.validation.jobs import Job, Skipped, job_of
from graphcost.validation.predicting import Outcome, Predictor
from graphcost.validation.scoring import Scores
from graphcost.validation.tables import MeasuredRow, read_table
from graphcost.validation.tolerances import Tolerance
from graphcost.validation.validate import Validation, tables_in, validate

__all__ = [
    "Job", "MeasuredRow", "Outcome", "Predictor", "Scores", "Skipped", "Tolerance", "Validation",
    "job_of", "read_table", "tables_in", "validate",
]  # fmt: skip
