"""``package.module:callable`` and ``file.py:callable``: the one source that runs the user's code."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

from graphcost.errors import ModelFileError, UsageError
from graphcost.registry import did_you_mean


def call_source(source: str) -> tuple[Any, Any]:
    """(module, example inputs or None) that the named callable returns.

    The callable runs under fake tensors where torch is there, so that weights take no
    memory; where that fails it runs as it is. Raises ``ModelFileError`` for a callable
    that cannot be found or raises.
    """
    where, _, name = source.rpartition(":")
    if not name:
        raise UsageError(f"{source} names no callable; write {where}:FUNCTION")
    function = _find(where, name, source)
    try:
        made = _under_fake_tensors(function)
    except (Exception, SystemExit) as error:  # a user's code raises anything, and may leave
        detail = str(error).strip().splitlines()
        raise ModelFileError(
            f"{source}: the callable raised {type(error).__name__}: {detail[0] if detail else ''} "
            "(--debug shows where)"
        ) from error
    if isinstance(made, tuple) and len(made) == 2:
        return made
    return made, None


def _find(where: str, name: str, source: str) -> Any:
    try:
        if where.endswith(".py"):
            path = Path(where)
            if not path.exists():
                raise ModelFileError(f"{source}: no file {where}")
            spec = importlib.util.spec_from_file_location(f"graphcost_user_{path.stem}", path)
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module
            sys.path.insert(0, str(path.parent.resolve()))
            try:
                spec.loader.exec_module(module)
            finally:
                sys.path.remove(str(path.parent.resolve()))
        else:
            if "" not in sys.path:
                sys.path.insert(0, "")
            module = importlib.import_module(where)
    except ModelFileError:
        raise
    except ModuleNotFoundError as error:
        hint = "; install it with pip install 'graphcost[torch]'" if error.name == "torch" else ""
        raise UsageError(f"{source}: cannot import {where} ({error}){hint}") from error
    except (Exception, SystemExit) as error:  # a user's module raises anything, and may leave
        raise ModelFileError(f"{source}: importing {where} raised {type(error).__name__}: {error}") from error
    found = getattr(module, name, None)
    if found is None:
        public = [key for key in vars(module) if not key.startswith("_")]
        raise UsageError(f"{source}: {where} has no {name!r}{did_you_mean(name, public)}")
    if not callable(found):
        raise UsageError(f"{source}: {name!r} is not callable; name a function that returns (module, example inputs)")
    return found


def _under_fake_tensors(function: Any) -> Any:
    if "torch" not in sys.modules:
        return function()
    from torch._subclasses.fake_tensor import FakeTensorMode

    try:
        with FakeTensorMode():
            return function()
    except Exception:  # initialisation that looks at values: pay for the memory instead
        return function()
