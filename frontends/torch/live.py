"""Export a live module with torch and turn its fx graph into records.

``torch.export`` on fake tensors comes first: weights take no memory and nothing is
computed. Where it fails, the module is traced into an fx graph by running it on fake
tensors (``make_fx``), and a note says so.
"""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import replace
from typing import Any

from graphcost.errors import ModelFileError, UsageError
from graphcost.frontends.options import LoadOptions
from graphcost.frontends.torch.fx_records import graph_records
from graphcost.frontends.torch.records import Exported


def import_torch() -> Any:
    """torch, or ``UsageError`` naming the extra to install."""
    try:
        import torch
    except ImportError as error:
        raise UsageError("torch is not installed; install it with pip install 'graphcost[torch]'") from error
    return torch


def export_live(source: Any, example_inputs: Any, options: LoadOptions, name: str) -> tuple[Exported, LoadOptions]:
    """Records of a module, an ``ExportedProgram`` or a ``GraphModule``; options less what was used up."""
    torch = import_torch()
    if isinstance(source, torch.export.ExportedProgram):
        return _from_program(torch, source, ()), options
    if not isinstance(source, torch.nn.Module):
        raise UsageError(f"{name}: {type(source).__qualname__} is no torch module; return a torch.nn.Module")
    if example_inputs is None:
        raise UsageError(
            f"{name}: a torch module needs example inputs; return (module, example_inputs), or pass them to load()"
        )
    args, kwargs = _arguments(torch, example_inputs, name)
    args, kwargs = (_rebatched(torch, value, options, name) for value in (args, kwargs))
    notes: tuple[str, ...] = ()
    with _quiet(), _for_export(source):
        try:
            program = _exported(torch, source, args, kwargs)
        except Exception as error:  # export raises anything; the fallback's note names it
            return _from_fx(torch, source, args, kwargs, name, error), replace(options, batch=None)
        return _from_program(torch, program, notes), replace(options, batch=None)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without torch's warnings and logs: what fails is told in one line."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _exported(torch: Any, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``torch.export``; without autograd for what has a gradient on some devices only (flex attention)."""
    try:
        return torch.export.export(module, args, kwargs, strict=False)
    except NotImplementedError:
        with torch.no_grad():
            return torch.export.export(module, args, kwargs, strict=False)


def _arguments(torch: Any, example_inputs: Any, name: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(example_inputs, torch.Tensor):
        return (example_inputs,), {}
    if not isinstance(example_inputs, (Mapping, Sequence)) or isinstance(example_inputs, str):
        raise UsageError(
            f"{name}: example inputs are a tensor, a tuple of arguments or a mapping of keyword arguments, "
            f"not {type(example_inputs).__name__}"
        )
    if isinstance(example_inputs, Mapping):
        return (), dict(example_inputs)
    if isinstance(example_inputs, Sequence) and len(example_inputs) == 2 and isinstance(example_inputs[1], Mapping):
        return tuple(example_inputs[0]), dict(example_inputs[1])
    return tuple(example_inputs), {}


def _rebatched(torch: Any, value: Any, options: LoadOptions, name: str) -> Any:
    """Example inputs with the asked batch in front; the example's own where none is asked."""
    if options.batch is None:
        return value
    from torch.utils import _pytree as pytree

    sizes = {leaf.shape[0] for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor) and leaf.dim()}
    if len(sizes) > 1:
        raise UsageError(
            f"{name}: --batch {options.batch}: the example inputs lead with different sizes {sorted(sizes)}"
        )

    def grown(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or not leaf.dim():
            return leaf
        return leaf[:1].expand(options.batch, *leaf.shape[1:])

    return pytree.tree_map(grown, value)


@contextmanager
def _for_export(module: Any) -> Iterator[None]:
    """In evaluation, without a key/value cache, which is no part of a training step and does not export.

    The module is the caller's: every part gets its mode and setting back.
    """
    modes = [(part, part.training) for part in module.modules()]
    configs = {
        id(config): config for part in module.modules() if (config := getattr(part, "config", None)) is not None
    }
    cached = [config for config in configs.values() if getattr(config, "use_cache", None)]
    module.eval()
    for config in cached:
        config.use_cache = False
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training
        for config in cached:
            config.use_cache = True


def _from_program(torch: Any, program: Any, notes: tuple[str, ...]) -> Exported:
    signature = program.graph_signature
    state = {**program.state_dict, **getattr(program, "constants", {})}
    storage: dict[str, str] = {}
    first: dict[int, str] = {}
    for name, value in state.items():
        if isinstance(value, torch.Tensor):
            storage[name] = first.setdefault(id(value), name)
    trained = {name for name, value in state.items() if isinstance(value, torch.nn.Parameter) and value.requires_grad}
    graph = graph_records(
        torch, program.graph_module, {v: s for v, s in signature.inputs_to_parameters.items() if s in trained}
    )
    constants = {
        **signature.inputs_to_buffers,
        **getattr(signature, "inputs_to_lifted_tensor_constants", {}),
    }
    user = tuple(name for name in signature.user_inputs if isinstance(name, str) and name in graph.tensors)
    wanted = tuple(name for name in signature.user_outputs if isinstance(name, str) and name in graph.tensors)
    graph = replace(graph, outputs=wanted or graph.outputs)
    return Exported(graph, user, dict(signature.inputs_to_parameters), constants, storage, notes)


def _from_fx(
    torch: Any, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str, reason: Exception
) -> Exported:
    """``make_fx`` over fake tensors: what runs for these inputs, data-dependent branches as the "
    "example takes them."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    text = str(reason).strip().splitlines()
    why = f"{type(reason).__name__}: {text[0] if text else ''}"
    state = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    names = list(state)
    count = len(args)
    keys = list(kwargs)

    def call(*flat: Any) -> Any:
        tensors = dict(zip(names, flat[: len(names)], strict=True))
        values = flat[len(names) :]
        given = dict(zip(keys, values[count:], strict=True))
        return torch.func.functional_call(module, tensors, values[:count], given)

    mode = FakeTensorMode(allow_non_fake_inputs=True)
    fakes = [
        mode.from_tensor(value) if isinstance(value, torch.Tensor) else value
        for value in (*state.values(), *args, *kwargs.values())
    ]
    try:
        with mode:
            traced = make_fx(call, pre_dispatch=True, tracing_mode="real")(*fakes)
    except Exception as error:  # tracing raises anything; both reasons are told
        detail = str(error).strip().splitlines()
        raise ModelFileError(
            f"{name}: torch.export fails ({why}), and so does tracing ({type(error).__name__}: "
            f"{detail[0] if detail else ''})"
        ) from reason
    graph = graph_records(torch, traced, {})
    placeholders = list(graph.inputs)
    owners = dict(zip(placeholders[: len(names)], names, strict=True))
    params = {value: key for value, key in owners.items() if isinstance(state[key], torch.nn.Parameter)}
    buffers = {value: key for value, key in owners.items() if value not in params}
    first: dict[int, str] = {}
    storage = {key: first.setdefault(id(value), key) for key, value in state.items()}
    tensors = {
        key: replace(meta, requires_grad=key in params and state[params[key]].requires_grad)
        for key, meta in graph.tensors.items()
    }
    note = f"torch.export failed ({why}); traced with torch.fx for these example inputs instead"
    return Exported(
        replace(graph, tensors=tensors), tuple(placeholders[len(names) :]), params, buffers, storage, (note,)
    )
