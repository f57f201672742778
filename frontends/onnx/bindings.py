"""Every graph input gets a size: from the file, the user, or the batch default."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from onnx import TypeProto, ValueInfoProto

from graphcost.errors import MissingSizeError, ModelFileError, UsageError
from graphcost.frontends.onnx.dtypes import DTYPE_NAMES
from graphcost.frontends.options import ASSUMED_BATCH, LoadOptions
from graphcost.ir import BatchSource, TensorSpec
from graphcost.registry import did_you_mean

Dim = int | str | None
"""A declared size: fixed, named, or open without a name (absent, -1)."""

_BATCH_NAME = re.compile(r"batch|batch_?size|N|B|unk.*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DeclaredInput:
    """A graph input as the file declares it; ``dims`` None where even the rank is open."""

    name: str
    dtype: str
    dims: tuple[Dim, ...] | None

    def __str__(self) -> str:
        if self.dims is None:
            return f"{self.name!r} (rank not stated)"
        return f"{self.name!r} [{', '.join('?' if d is None else str(d) for d in self.dims)}]"


@dataclass(frozen=True, slots=True)
class Bound:
    """Sizes for all inputs. ``rebatched`` is (old, new) where a fixed batch was changed."""

    inputs: Mapping[str, TensorSpec]
    dims: Mapping[str, int]
    batch: int | None
    batch_source: BatchSource
    rebatched: tuple[int, int] | None = None
    notes: tuple[str, ...] = ()


def declared_inputs(infos: Iterable[ValueInfoProto], stored: frozenset[str]) -> list[DeclaredInput]:
    """Tensors that a user feeds: graph inputs that are not initializers (IR 3 lists both)."""
    fed = [(info, _inner_type(info.type)) for info in infos if info.name not in stored]
    return [_declared(info, proto) for info, proto in fed if proto.WhichOneof("value") not in _SIZELESS]


def sizeless_inputs(infos: Iterable[ValueInfoProto], stored: frozenset[str]) -> dict[str, str]:
    """Inputs whose sizes no file states, and what they are: sequences and maps."""
    kinds = {info.name: _inner_type(info.type).WhichOneof("value") for info in infos if info.name not in stored}
    return {name: kind.removesuffix("_type") for name, kind in kinds.items() if kind in _SIZELESS}


_SIZELESS = frozenset({"sequence_type", "map_type"})


def _inner_type(proto: TypeProto) -> TypeProto:
    while proto.HasField("optional_type"):
        proto = proto.optional_type.elem_type
    return proto


def _declared(info: ValueInfoProto, proto: TypeProto) -> DeclaredInput:
    dtype = DTYPE_NAMES.get(proto.tensor_type.elem_type)
    if dtype is None:
        raise ModelFileError(f"input {info.name!r} has no element type")
    return DeclaredInput(info.name, dtype, declared_dims(proto))


def declared_dims(proto: TypeProto) -> tuple[Dim, ...] | None:
    """Sizes of a tensor type as written; negative and empty ones are open."""
    if not proto.tensor_type.HasField("shape"):
        return None
    dims: list[Dim] = []
    for dim in proto.tensor_type.shape.dim:
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            dims.append(dim.dim_value)
        else:
            named = dim.HasField("dim_param") and dim.dim_param not in ("", "?", "-1", "None")
            dims.append(dim.dim_param if named else None)
    return tuple(dims)


@dataclass(frozen=True, slots=True)
class OpenSize:
    """An open size of the inputs: what --dim calls it; ``batch`` for one that --batch binds too."""

    name: str
    batch: bool


def open_sizes(inputs: Iterable[DeclaredInput]) -> tuple[OpenSize, ...]:
    """Every open size once, in order of appearance; nameless batches are one, called ``batch``."""
    found: dict[str, OpenSize] = {}
    for declared in inputs:
        for index, dim in enumerate(declared.dims or ()):
            if isinstance(dim, int):
                continue
            batch = index == 0 and _opens_with_batch(declared)
            name = "batch" if batch and dim is None else _size_name(declared, index, dim)
            found.setdefault(name, OpenSize(name, batch))
    return tuple(found.values())


def bind(inputs: list[DeclaredInput], options: LoadOptions, *, any_batch: bool = False) -> Bound:
    """Sizes for every input; raises ``MissingSizeError`` listing all that must be given.

    ``any_batch``: a fixed batch may be changed whatever it is, not only from 1.
    """
    binder = _Binder(options, inputs, any_batch)
    return binder.bound()


@dataclass(slots=True)
class _Binder:
    options: LoadOptions
    inputs: list[DeclaredInput]
    any_batch: bool = False
    dims: dict[str, int] = field(default_factory=dict)
    batch_used: bool = False
    notes: list[str] = field(default_factory=list)

    def bound(self) -> Bound:
        self._check_given()
        self._check_names()
        self.dims.update(self.options.dims)
        self._check_dims()
        self._dims_from_shapes()
        batch, source = self._batch()
        for declared in self.inputs:  # a named batch may stand at other places too (recurrent states)
            first = declared.dims[0] if declared.dims else None
            if isinstance(first, str) and _opens_with_batch(declared) and first not in self.dims:
                self.dims[first] = batch if batch is not None else ASSUMED_BATCH
                self.batch_used = True
        missing: list[str] = []
        specs: dict[str, TensorSpec] = {}
        for declared in self.inputs:
            shape = self._shape(declared, batch, missing)
            specs[declared.name] = TensorSpec(shape, declared.dtype)
        if missing:
            raise MissingSizeError("the model leaves sizes open: " + "; ".join(missing))
        return self._finish(specs, batch, source)

    def _check_dims(self) -> None:
        names = {size.name for size in open_sizes(self.inputs)}
        for given in self.options.dims:
            if given not in names and not _BATCH_NAME.fullmatch(given):
                raise UsageError(
                    f"--dim {given}: the model has no size of that name{did_you_mean(given, names)}"
                    f" (open sizes: {', '.join(sorted(names)) or 'none'})"
                )

    def _check_given(self) -> None:
        given: dict[str, tuple[int, ...]] = {"--batch": (1 if self.options.batch is None else self.options.batch,)}
        given |= {f"--dim {name}": (size,) for name, size in self.options.dims.items()}
        given |= {f"--input-shape {name}": shape for name, shape in self.options.input_shapes.items()}
        for option, sizes in given.items():
            least = 1 if option == "--batch" else 0
            if any(size < least for size in sizes):
                raise UsageError(f"{option} {','.join(map(str, sizes))}: a size must be {least} or more")

    def _check_names(self) -> None:
        known = {i.name for i in self.inputs}
        for option, given in (("--input-shape", self.options.input_shapes),):
            for name in given:
                if name not in known:
                    raise UsageError(
                        f"{option} {name}: the model has no input of that name{did_you_mean(name, known)}"
                        f" (inputs: {', '.join(sorted(known))})"
                    )

    def _dims_from_shapes(self) -> None:
        """An input shape also binds the names it covers."""
        for declared in self.inputs:
            given = self.options.input_shapes.get(declared.name)
            if given is None:
                continue
            if declared.dims is not None and len(given) != len(declared.dims):
                raise UsageError(
                    f"--input-shape {declared.name}: {len(given)} sizes given, the file declares {declared}"
                )
            for size, dim in zip(given, declared.dims or (), strict=False):
                if isinstance(dim, int) and dim != size and not _is_leading(declared, dim):
                    raise UsageError(
                        f"--input-shape {declared.name}={','.join(map(str, given))} contradicts the file, "
                        f"which fixes {declared}"
                    )
                if isinstance(dim, str) and self.dims.setdefault(dim, size) != size:
                    raise UsageError(
                        f"size {dim!r} is given twice, as {self.dims[dim]} and as {size} by "
                        f"--input-shape {declared.name}"
                    )

    def _batch(self) -> tuple[int | None, BatchSource]:
        if self.options.batch is not None:
            return self.options.batch, BatchSource.OPTION
        inner = {size.name for size in open_sizes(self.inputs) if not size.batch}
        for name in self.options.dims:
            if _BATCH_NAME.fullmatch(name) and name not in inner:
                return self.options.dims[name], BatchSource.OPTION
        for declared in self.inputs:
            given = self.options.input_shapes.get(declared.name)
            if given and declared.dims is not None and _opens_with_batch(declared):
                return given[0], BatchSource.OPTION
        return None, BatchSource.FILE

    def _shape(self, declared: DeclaredInput, batch: int | None, missing: list[str]) -> tuple[int, ...]:
        given = self.options.input_shapes.get(declared.name)
        if given is not None:
            return given
        if declared.dims is None:
            missing.append(f"input {declared}; give --input-shape {declared.name}=...")
            return ()
        shape: list[int] = []
        open_names: list[str] = []
        nameless: list[int] = []
        for index, dim in enumerate(declared.dims):
            if isinstance(dim, int):
                shape.append(dim)
            elif _size_name(declared, index, dim) in self.dims:
                shape.append(self.dims[_size_name(declared, index, dim)])
            elif index == 0 and _opens_with_batch(declared):
                shape.append(batch if batch is not None else ASSUMED_BATCH)
                self.batch_used = True
            else:
                shape.append(1)
                if isinstance(dim, str):
                    open_names.append(dim)
                else:
                    nameless.append(index)
        if open_names or nameless:
            missing.append(_request(declared, open_names, nameless))
        return tuple(shape)

    def _finish(self, specs: dict[str, TensorSpec], batch: int | None, source: BatchSource) -> Bound:
        named = {d: specs[i.name].shape[0] for i in self.inputs if i.dims
                 for d in i.dims[:1] if isinstance(d, str) and _opens_with_batch(i)}  # fmt: skip
        self.dims.update(named)
        leading = [
            (i, specs[i.name].shape[0]) for i in self.inputs if specs[i.name].shape and i.dims is not None and i.dims
        ]
        opened = [size for declared, size in leading if _opens_with_batch(declared)]
        if not opened:  # a batch that stands elsewhere (time first), else whatever open size leads
            inner = {size.name for size in open_sizes(self.inputs)}
            opened = [size for name, size in self.dims.items() if name in inner and _BATCH_NAME.fullmatch(name)]
            opened += [size for declared, size in leading if not isinstance(declared.dims[0], int)]  # type: ignore[index]
            source = BatchSource.OPTION if opened else source
        if opened:
            if batch is None and self.batch_used:
                source = BatchSource.ASSUMED
            return Bound(specs, self.dims, opened[0], source, None, tuple(self.notes))
        fixed = leading[0][1] if leading else None
        shaped = next((i.dims[0] for i, size in leading if i.dims and i.dims[0] != size), None)
        if isinstance(shaped, int) and fixed is not None:  # --input-shape changed a fixed batch
            return self._rebatch(specs, shaped, fixed)
        if batch is None or fixed is None or batch == fixed:
            return Bound(specs, self.dims, fixed, BatchSource.FILE, None, tuple(self.notes))
        return self._rebatch(specs, fixed, batch)

    def _rebatch(self, specs: dict[str, TensorSpec], old: int, new: int) -> Bound:
        if old != 1 and not self.any_batch:
            raise UsageError(
                f"--batch {new} contradicts the file, which fixes the batch at {old}; "
                f"leave --batch out, or export with an open batch dimension"
            )
        changed = {
            name: TensorSpec((new, *spec.shape[1:]), spec.dtype)
            if spec.shape and spec.shape[0] in (old, new)
            else spec
            for name, spec in specs.items()
        }
        return Bound(changed, self.dims, new, BatchSource.OPTION, (old, new), tuple(self.notes))


def _size_name(declared: DeclaredInput, index: int, dim: str | None) -> str:
    """What --dim calls an open size: its name, or ``input.index`` where it has none."""
    return dim if dim is not None else f"{declared.name}.{index}"


def _is_leading(declared: DeclaredInput, dim: int) -> bool:
    return dim == 1 and bool(declared.dims) and declared.dims is not None and declared.dims[0] == dim


def _opens_with_batch(declared: DeclaredInput) -> bool:
    if not declared.dims:
        return False
    first = declared.dims[0]
    return first is None or (isinstance(first, str) and _BATCH_NAME.fullmatch(first) is not None)


def _request(declared: DeclaredInput, names: list[str], nameless: list[int]) -> str:
    parts = [f"--dim {name}=N" for name in dict.fromkeys(names)]
    if nameless:
        shape = ",".join("N" if not isinstance(d, int) else str(d) for d in declared.dims or ())
        parts = [f"--input-shape {declared.name}={shape}"]
    what = ", ".join([*dict.fromkeys(names), *(f"dimension {i}" for i in nameless)])
    return f"input {declared}: {what} (give {' '.join(parts)})"
