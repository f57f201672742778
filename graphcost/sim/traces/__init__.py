"""Recorded traces: one reader a format, chosen by the file's columns, and the way from rows to jobs."""

from graphcost.sim.traces import openb, own, philly, pollux  # noqa: F401  # each registers itself
from graphcost.sim.traces.jobs import jobs_of, rows_of
from graphcost.sim.traces.reading import FORMATS, Trace, TraceRow, read_trace

__all__ = ["FORMATS", "Trace", "TraceRow", "jobs_of", "read_trace", "rows_of"]
