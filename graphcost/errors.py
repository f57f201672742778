"""The error tree. Every class is one kind of cause and carries its exit code.

::

    GraphcostError
    |-- UsageError (2)             an option, a name, a placement that cannot be
    |   |-- UnknownNameError       a name that no registry knows ("did you mean")
    |   |-- MissingSizeError       an open size, or a value, that must be given
    |   `-- PlacementError         an architecture that the cluster cannot hold
    |-- UnreadableError (3)        a file that cannot be read
    |   |-- ModelFileError         model files
    |   |-- ShapeError             a model whose shapes contradict each other
    |   `-- DataFileError          device, server, cluster and table files
    |-- CoverageError (4)          operators without a rule, under --strict
    `-- WorkerLostError (70)       a process of --workers that was killed

Messages follow one pattern: which thing, what was wrong, what would be right.
Anything else that escapes is a defect of graphcost itself and ends in exit 70.
"""

from __future__ import annotations

from graphcost._version import __version__


class GraphcostError(Exception):
    """Base of every error that a user can cause; ``exit_code`` is the command line's."""

    exit_code = 70


class UsageError(GraphcostError):
    """An option, a name or a size that is wrong."""

    exit_code = 2


class UnknownNameError(UsageError):
    """A name that is not registered."""


class MissingSizeError(UsageError):
    """A size or value that the model leaves open and nobody gave."""


class PlacementError(UsageError):
    """An architecture that the placement, the cluster or the graph cannot hold."""


class UnreadableError(GraphcostError):
    """A file that cannot be read."""

    exit_code = 3


class ModelFileError(UnreadableError):
    """A model file that is missing, truncated, or not what its name says."""


class ShapeError(UnreadableError):
    """A model whose operators contradict each other's shapes."""


class DataFileError(UnreadableError):
    """A device, server, cluster, configuration or table file that does not hold together."""


class CoverageError(GraphcostError):
    """Too many operators without a rule, under ``--strict`` or ``--min-coverage``."""

    exit_code = 4


class WorkerLostError(GraphcostError):
    """A worker process that was killed, twice, on the same model."""


def message_of(error: Exception) -> str:
    """What a user reads of an exception: its own text, or that graphcost is defective and wants a report."""
    if isinstance(error, GraphcostError):
        return str(error)
    return (
        f"internal error: {type(error).__name__}: {error}; this is a defect of graphcost {__version__}, "
        "please report it with the output of --debug"
    )


def exit_code_of(error: Exception) -> int:
    """The command line's exit code for an exception; 70 for what is no error of a user's."""
    return error.exit_code if isinstance(error, GraphcostError) else GraphcostError.exit_code
