"""``keras:NAME``: a model of ``keras.applications``, random weights."""

from __future__ import annotations

from typing import Any

from graphcost.errors import UsageError
from graphcost.registry import did_you_mean


def from_keras(name: str) -> Any:
    """The Keras model that ``keras.applications`` calls ``name``, built without pretrained weights."""
    try:
        import keras
    except ImportError as error:
        raise UsageError("keras is not installed; install it with pip install 'graphcost[tensorflow]'") from error
    known = [key for key, value in vars(keras.applications).items() if callable(value) and key[:1].isupper()]
    if name not in known:
        raise UsageError(f"no Keras application named {name!r}{did_you_mean(name, known)}")
    return getattr(keras.applications, name)(weights=None)
