"""What runs inside a worker: one item, its result or its exception in a form that crosses processes."""

from __future__ import annotations

import gc
import pickle
import traceback
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

GC_THRESHOLDS = (200_000, 50, 100)
"""A graph is many small objects without cycles; looking for cycles often costs a sixth of the time."""


def guarded(function: Callable[[T], R], item: T) -> R | Exception:
    """The result, or the exception; its frames stay behind, their text goes along for ``--debug``."""
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        return function(item)
    except Exception as error:
        error.add_note(traceback.format_exc())
        return _portable(error)


def _portable(error: Exception) -> Exception:
    """Without causes and frames, which hold what does not pickle."""
    error.__cause__ = error.__context__ = error.__traceback__ = None
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        plain = RuntimeError(f"{type(error).__name__}: {error}")
        for note in getattr(error, "__notes__", ()):
            plain.add_note(note)
        return plain
    return error
