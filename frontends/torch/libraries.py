"""Models that a library builds from a name or a configuration, with random weights that are never allocated."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

from graphcost.errors import ModelFileError, UsageError
from graphcost.frontends.options import ASSUMED_BATCH, LoadOptions
from graphcost.frontends.torch.live import import_torch
from graphcost.frontends.torch.torchvision import make_importable
from graphcost.registry import did_you_mean

ASSUMED_SEQUENCE = 128
"""Tokens where nobody says (assumed: the usual sequence of published FLOP counts)."""


def import_transformers() -> Any:
    """transformers, whose models import torchvision where they find it; ``UsageError`` without it."""
    make_importable(import_torch())
    try:
        import transformers
    except ImportError as error:
        raise UsageError(
            "transformers is not installed; install it with pip install 'graphcost[transformers]'"
        ) from error
    return transformers


def from_transformers(path: Path, options: LoadOptions) -> tuple[Any, dict[str, Any], tuple[str, ...]]:
    """(module, inputs, notes) of a transformers configuration file; code in it is never trusted."""
    torch, transformers = import_torch(), import_transformers()
    if not path.is_file():
        raise ModelFileError(f"transformers:{path}: no such file")
    try:
        data = json.loads(path.read_text("utf-8"))
        kind = data.pop("model_type")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelFileError(
            f"transformers:{path}: no transformers configuration (a JSON file with model_type)"
        ) from error
    if kind not in transformers.CONFIG_MAPPING:
        known = list(transformers.CONFIG_MAPPING)
        raise ModelFileError(f"transformers:{path}: no model_type {kind!r}{did_you_mean(str(kind), known)}")
    name = next(iter(data.get("architectures") or []), None)
    cls: Any = getattr(transformers, name, None) if name else None
    auto: Any = transformers.AutoModel
    try:
        config = transformers.AutoConfig.for_model(kind, **data)
        module = fake(torch, lambda: cls(config) if cls is not None else auto.from_config(config))
    except Exception as error:  # configurations check themselves with errors of every kind
        detail = " ".join(str(error).split())
        raise ModelFileError(f"transformers:{path}: {type(error).__name__}: {detail}") from error
    inputs, notes = _transformers_inputs(torch, module, config, options)
    return module, inputs, notes


def _transformers_inputs(
    torch: Any, module: Any, config: Any, options: LoadOptions
) -> tuple[dict[str, Any], tuple[str, ...]]:
    batch = options.dims.get("batch", options.batch or ASSUMED_BATCH)
    seq = options.dims.get("seq", ASSUMED_SEQUENCE)
    main = module.main_input_name
    notes = [] if options.batch or "batch" in options.dims else [f"batch {batch} is assumed; --batch sets it"]
    if main == "pixel_values":
        size = options.dims.get("image", getattr(config, "image_size", 224))
        channels = getattr(config, "num_channels", 3)
        return {main: torch.zeros(batch, channels, size, size)}, tuple(notes)
    if "seq" not in options.dims:
        notes.append(f"seq {seq} is assumed; --dim seq=N sets it")
    if main == "input_features":
        frames = options.dims.get("frames", 2 * getattr(config, "max_source_positions", 1500))
        inputs = {main: torch.zeros(batch, getattr(config, "num_mel_bins", 80), frames)}
    else:
        inputs = {main: torch.zeros(batch, seq, dtype=torch.long)}
    if getattr(config, "is_encoder_decoder", False):
        length = options.dims.get("decoder_seq", seq)
        inputs["decoder_input_ids"] = torch.zeros(batch, length, dtype=torch.long)
    return inputs, tuple(notes)


def import_timm() -> Any:
    """timm; ``UsageError`` where it or torchvision, which it imports, is missing."""
    make_importable(import_torch())
    try:
        import timm
    except ImportError as error:
        raise UsageError(
            f"timm cannot be imported ({error}); install it with pip install 'graphcost[timm]'"
        ) from error
    return timm


def from_timm(name: str, options: LoadOptions) -> tuple[Any, tuple[Any, ...], tuple[str, ...]]:
    """(module, inputs, notes) of a timm model."""
    torch, timm = import_torch(), import_timm()
    if not timm.is_model(name.partition(".")[0]):
        raise UsageError(f"no timm model named {name!r}{did_you_mean(name, timm.list_models())}")
    try:
        with warnings.catch_warnings():  # of names that it has renamed, of layers' own deprecations
            warnings.simplefilter("ignore")
            module = fake(torch, lambda: timm.create_model(name, pretrained=False))
    except (RuntimeError, ValueError) as error:
        raise UsageError(f"timm:{name}: {error}") from error
    channels, height, width = timm.data.resolve_model_data_config(module)["input_size"]
    batch = options.dims.get("batch", options.batch or ASSUMED_BATCH)
    size = options.dims.get("image", height), options.dims.get("image", width)
    notes = () if options.batch or "batch" in options.dims else (f"batch {batch} is assumed; --batch sets it",)
    return module, (torch.zeros(batch, channels, *size),), notes


def fake(torch: Any, build: Any) -> Any:
    """Build under fake tensors; where initialisation looks at values, for real."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    try:
        with FakeTensorMode():
            return build()
    except (RuntimeError, TypeError):
        return build()
