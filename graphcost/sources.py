"""A model's name or object -> its op graph: which frontend reads what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphcost.errors import ModelFileError, UsageError
from graphcost.frontends.options import LoadOptions
from graphcost.graph import branch_weight, build_graph
from graphcost.graph_io import read_graph
from graphcost.ir import Model

if TYPE_CHECKING:
    from graphcost.graph import OpGraph

ZOO_PREFIX = "zoo:"

MODEL_SUFFIXES = (".onnx", ".pt2", ".keras", ".h5", ".pb")
"""What a folder is searched for."""

_PICKLED = (".pt", ".pth", ".bin", ".ckpt", ".pkl")

_TENSORFLOW = (".pb", ".pbtxt", ".meta", ".keras", ".h5", ".hdf5")


def load(
    source: Any,
    example_inputs: Any = None,
    *,
    batch: int | None = None,
    dims: Mapping[str, int] | None = None,
    input_shapes: Mapping[str, tuple[int, ...]] | None = None,
    input_values: Mapping[str, Any] | None = None,
) -> OpGraph:
    """Load a model as an annotated ``networkx.MultiDiGraph``.

    ``source``: a path (ONNX, ``.pt2``, SavedModel, ``.pb``, Keras, a saved ``graph.json``),
    ``"zoo:NAME"``, ``"file.py:callable"``, an ``onnx.ModelProto``, a torch module with
    ``example_inputs``, an exported program, a Keras model or a ``tf.function``. ``batch``
    and ``dims`` bind open sizes (elements), ``input_shapes`` whole inputs, ``input_values``
    inputs that steer control flow.

    Raises ``ModelFileError`` for what cannot be read, ``MissingSizeError`` for a size
    nobody gave, ``UsageError`` for one that contradicts the model.

    >>> graph = load("zoo:mlp", batch=4)
    >>> sorted({data["op"].op_type for _, data in graph.nodes(data=True)})
    ['Gemm', 'Relu']
    """
    values = {name: as_values(value) for name, value in (input_values or {}).items()}
    options = LoadOptions(batch, dims or {}, input_shapes or {}, values)
    return build_graph(load_model(source, options, example_inputs))


def load_model(source: Any, options: LoadOptions, example_inputs: Any = None, *, base: Model | None = None) -> Model:
    """As ``load``, before costs: the neutral ``Model``.

    ``base``: the same source at its own batch, where the caller has it; re-batching is
    checked against it.
    """
    if isinstance(source, (str, Path)):
        if example_inputs is not None:
            raise UsageError(f"{source}: example inputs go with a torch module; files state their own inputs")
        return _load_named(str(source), options, base)
    kind = _kind_of(source)
    if kind == "onnx" and example_inputs is None:
        from graphcost.frontends.onnx import load_onnx

        return load_onnx(source, options, branch_weight, base)
    if kind == "torch":
        from graphcost.frontends.torch import load_module

        return load_module(source, example_inputs, options, branch_weight)
    if kind == "tensorflow" and example_inputs is None:
        from graphcost.frontends.tensorflow import load_tensorflow

        return load_tensorflow(source, options, branch_weight, base=base)
    raise UsageError(
        f"cannot read a model from {type(source).__module__}.{type(source).__qualname__}; "
        "give a path, 'zoo:NAME', an onnx.ModelProto, a torch module with example inputs, "
        "a Keras model or a tf.function"
    )


def _kind_of(source: Any) -> str | None:
    """Whose object it is, told by its classes' modules: no framework is imported to ask."""
    roots = {cls.__module__.partition(".")[0] for cls in type(source).__mro__}
    if roots & {"tensorflow", "keras"}:
        return "tensorflow"
    if "torch" in roots:
        return "torch"
    return "onnx" if type(source).__name__ == "ModelProto" else None


def open_sizes(source: Any) -> tuple[str, ...]:
    """Names of the sizes that a model leaves open, as ``dims`` and ``--dim`` take them."""
    if isinstance(source, (str, Path)):
        name = str(source)
        if name.startswith(ZOO_PREFIX):
            from graphcost import models_zoo

            return ("batch", *models_zoo.describe(name.removeprefix(ZOO_PREFIX)).dims)
        if Path(name).suffix == ".json":
            return ()
        if Path(name).suffix == ".pt2":
            from graphcost.frontends.torch import open_sizes_archive

            return open_sizes_archive(Path(name))
        source = Path(name)
        if source.is_dir() or source.suffix in _TENSORFLOW:
            from graphcost.frontends.tensorflow import open_sizes_tensorflow

            return open_sizes_tensorflow(source)
    from graphcost.frontends.onnx import open_sizes_onnx

    return open_sizes_onnx(source)


def expand(source: str) -> list[str]:
    """A folder stands for every model file in it, sorted; anything else for itself."""
    from graphcost.frontends.tensorflow import is_saved_model

    path = Path(source)
    if source.startswith(ZOO_PREFIX) or not path.is_dir() or is_saved_model(path):
        return [source]
    files = (p for p in path.rglob("*") if p.suffix in MODEL_SUFFIXES and p.is_file())
    found = sorted({str(p.parent if is_saved_model(p.parent) else p) for p in files})
    if not found:
        raise ModelFileError(f"{source}: no model file in this folder (looked for {', '.join(MODEL_SUFFIXES)})")
    return found


def _load_named(source: str, options: LoadOptions, base: Model | None) -> Model:
    if source.startswith(ZOO_PREFIX):
        from graphcost import models_zoo

        _refuse_bindings(source, options)
        return models_zoo.build(source.removeprefix(ZOO_PREFIX), batch=options.batch, dims=options.dims)
    path = Path(source)
    if ":" in source and not path.exists():
        return _load_built(source, options)
    if path.suffix == ".json":
        _refuse_bindings(source, options, sizes=False)
        return read_graph(path)
    if path.suffix == ".pt2":
        from graphcost.frontends.torch import load_archive

        return load_archive(path, options, branch_weight)
    if path.suffix == ".py":
        raise UsageError(f"{source}: a Python file; name the callable that returns the model: {source}:FUNCTION")
    if path.suffix in _PICKLED and path.exists():
        raise ModelFileError(
            f"{source}: a pickled torch file, which can run code and is never opened; save the model with "
            "torch.export.save as .pt2, export it to ONNX, or name a callable: file.py:build_model"
        )
    if (path.is_dir() and path.suffix != ".onnx") or path.suffix in _TENSORFLOW:
        from graphcost.frontends.tensorflow import load_tensorflow

        return load_tensorflow(path, options, branch_weight, signature=options.signature, base=base)
    from graphcost.frontends.onnx import load_onnx

    return load_onnx(path, options, branch_weight, base)


def _load_built(source: str, options: LoadOptions) -> Model:
    """Models that code builds: a library's, or the user's own callable."""
    from graphcost.frontends.torch import load_module

    prefix, _, name = source.partition(":")
    notes: tuple[str, ...] = ()
    inputs: Any
    unbound = replace(options, batch=None, dims={})
    if prefix == "transformers":
        from graphcost.frontends.torch.libraries import from_transformers

        module, inputs, notes = from_transformers(Path(name), options)
    elif prefix == "timm":
        from graphcost.frontends.torch.libraries import from_timm

        module, inputs, notes = from_timm(name, options)
    elif prefix == "keras":
        from graphcost.frontends.tensorflow.applications import from_keras

        return replace(load_model(from_keras(name), options), name=name, source=source)
    else:
        from graphcost.frontends.torch.callables import call_source

        module, inputs = call_source(source)
        unbound = options
        kind = _kind_of(module)
        if kind == "tensorflow":
            return replace(load_model(module, options), source=source)
        if kind != "torch":
            raise ModelFileError(
                f"{source}: the callable returned {type(module).__qualname__}; "
                "return (torch module, example inputs) or a Keras model"
            )
    model = load_module(module, inputs, unbound, branch_weight, label=source)
    return replace(model, notes=(*notes, *model.notes))


def _refuse_bindings(source: str, options: LoadOptions, *, sizes: bool = True) -> None:
    given = [*options.input_shapes, *options.input_values]
    if not sizes:
        given += [*options.dims, *(["batch"] if options.batch is not None else [])]
    if given:
        raise UsageError(f"{source} has no open input {given[0]!r}; leave that option out")


def as_values(value: Any) -> tuple[float, ...]:
    """A number, a list or an array as the flat values of an input."""
    if hasattr(value, "reshape"):
        value = value.reshape(-1).tolist()
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)
