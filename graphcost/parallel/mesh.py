"""``tp=4,pp=2,dp=8``: how many GPUs share what, as one value.

Sizes of the groups multiply to the GPUs of the job; experts live inside the data parallel
group. The words are Megatron-LM's and DeepSpeed's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from graphcost.errors import PlacementError, UnknownNameError, UsageError
from graphcost.registry import did_you_mean


class Schedule(StrEnum):
    """In which order a stage takes its micro-batches."""

    GPIPE = "gpipe"  # all forward passes, then all backward ones (Huang et al. 2019)
    ONE_F_ONE_B = "1f1b"  # a backward pass as soon as there is one (PipeDream-Flush, Narayanan et al. 2021)
    INTERLEAVED = "interleaved"  # 1F1B over several chunks of the model a stage (Narayanan et al. 2021)


class Cut(StrEnum):
    """Where stages begin."""

    TIME = "time"  # where the slowest stage is fastest
    LAYERS = "layers"  # as many blocks a stage, whatever the head adds (Megatron-LM, DeepSpeed)


@dataclass(frozen=True, slots=True)
class Mesh:
    """Sizes of the groups; ``dp`` and ``micro_batches`` 0: as the job's GPUs and samples have it.

    ``experts``: GPUs of a data parallel group that share one set of experts. ``zero``: stage of
    ZeRO over the data parallel group, 0 for plain replicas. ``sequence``: what tensor
    parallelism leaves whole is divided along the sequence. ``chunks``: parts of the model that a
    stage holds when interleaved. ``cut``: where stages begin.
    """

    tp: int = 1
    pp: int = 1
    dp: int = 0
    experts: int = 1
    zero: int = 0
    sequence: bool = False
    micro_batches: int = 0
    schedule: Schedule = Schedule.ONE_F_ONE_B
    chunks: int = 1
    cut: Cut = Cut.TIME

    @property
    def model_gpus(self) -> int:
        """GPUs that hold one replica."""
        return self.tp * self.pp

    @property
    def gpus(self) -> int:
        """GPUs of the job; of one replica while ``dp`` is open."""
        return self.model_gpus * max(1, self.dp)

    @property
    def name(self) -> str:
        """As it is written: only what is not the default."""
        parts = [f"tp={self.tp}", f"pp={self.pp}", f"dp={self.dp}"] if self.dp else [f"tp={self.tp}", f"pp={self.pp}"]
        parts += [f"ep={self.experts}"] * (self.experts > 1) + [f"zero={self.zero}"] * (self.zero > 0)
        parts += ["sp=1"] * self.sequence
        if self.pp > 1 and self.schedule is not Schedule.ONE_F_ONE_B:
            parts.append(f"schedule={self.schedule}")
        parts += [f"v={self.chunks}"] * (self.chunks > 1)
        parts += [f"cut={self.cut}"] * (self.cut is not Cut.TIME)
        parts += [f"mb={self.micro_batches}"] * (self.micro_batches > 0)
        return ",".join(parts)

    def on(self, gpus: int, accumulate: int = 1) -> Mesh:
        """The same with nothing left open, for a job of ``gpus``.

        Micro-batches nobody gave: as many as leave every GPU the samples that it would have as
        a replica. Raises ``PlacementError`` where the sizes do not make ``gpus``.
        """
        left = gpus // self.model_gpus
        dp = self.dp or left
        if self.model_gpus * dp != gpus:
            given = f"tp={self.tp} x pp={self.pp}" + (f" x dp={self.dp}" if self.dp else "")
            right = f"--gpus {self.model_gpus * max(1, dp)}" if self.dp else f"a multiple of {self.model_gpus}"
            raise PlacementError(f"--arch {self.name}: {given} does not make {gpus} GPUs; {right} would")
        if dp % self.experts:
            raise PlacementError(f"--arch {self.name}: ep={self.experts} does not divide dp={dp}")
        return replace(self, dp=dp, micro_batches=self.micro_batches or self.model_gpus * accumulate)


def spoken(arch: str) -> str:
    """The name of an architecture in tables for people: a mesh without what is its default.

    >>> spoken("tp=1,pp=2,dp=4,zero=3,schedule=interleaved,v=4,mb=2"), spoken("tp=2,pp=1,dp=1,mb=2"), spoken("ps")
    ('pp=2,dp=4,zero=3,v=4', 'tp=2', 'ps')
    """
    if not is_mesh(arch):
        return arch
    mesh = parse_mesh(arch)
    default = {"tp=1", "pp=1", "schedule=interleaved", f"mb={mesh.model_gpus}"}
    default |= {"dp=1"} if mesh.model_gpus > 1 else set()
    return ",".join(part for part in arch.split(",") if part not in default)


def is_mesh(text: str) -> bool:
    """Whether ``--arch`` names sizes rather than an architecture."""
    return "=" in text


_SIZES = {"tp": "tp", "pp": "pp", "dp": "dp", "ep": "experts", "mb": "micro_batches", "v": "chunks"}
_OTHERS = ("zero", "sp", "schedule", "cut")
_WORDS: dict[str, type[StrEnum]] = {"schedule": Schedule, "cut": Cut}
MOST = 65_536
"""assumed: no job has more GPUs in a group, nor more micro-batches."""


def parse_mesh(text: str) -> Mesh:
    """``tp=4,pp=2,dp=8,ep=2,zero=1,sp=1,mb=16,v=2,cut=layers`` in any order; what is left out is 1.

    Words besides: ``schedule=gpipe|1f1b|interleaved``, ``cut=time|layers``.

    Raises ``UsageError`` for a value that cannot be, ``UnknownNameError`` for a word that is none.

    >>> parse_mesh("tp=4,pp=2").name
    'tp=4,pp=2'
    """
    found: dict[str, object] = {}
    for part in text.split(","):
        key, separator, value = (piece.strip().lower() for piece in part.partition("="))
        if not separator or not value:
            raise UsageError(f"--arch {text}: {part.strip()!r} is no size; write tp=4,pp=2,dp=8")
        if key not in _SIZES and key not in _OTHERS:
            known = (*_SIZES, *_OTHERS)
            raise UnknownNameError(
                f"--arch {text}: no dimension named {key!r}{did_you_mean(key, known)} ({', '.join(known)})"
            )
        name = _SIZES.get(key, {"sp": "sequence"}.get(key, key))
        if name in found:
            raise UsageError(f"--arch {text}: {key} is given twice")
        found[name] = _value(text, key, value)
    mesh = Mesh(**found)  # type: ignore[arg-type]
    if "schedule" not in found and mesh.chunks > 1:
        mesh = replace(mesh, schedule=Schedule.INTERLEAVED)
    if mesh.schedule is Schedule.INTERLEAVED and (mesh.chunks < 2 or mesh.pp < 2):
        raise UsageError(f"--arch {text}: interleaved stages hold several chunks; write pp=2 or more and v=2 or more")
    if mesh.chunks > 1 and mesh.schedule is not Schedule.INTERLEAVED:
        raise UsageError(f"--arch {text}: v={mesh.chunks} goes with schedule=interleaved, not {mesh.schedule}")
    if mesh.schedule is Schedule.INTERLEAVED and mesh.micro_batches % mesh.pp:
        raise PlacementError(
            f"--arch {text}: interleaved stages take micro-batches in rounds of pp={mesh.pp}, "
            f"and mb={mesh.micro_batches} is no multiple"
        )
    if mesh.sequence and mesh.tp == 1:
        raise UsageError(f"--arch {text}: sp=1 divides the sequence among tp GPUs; write tp=2 or more")
    if mesh.experts > 1 and mesh.zero:
        raise UsageError(f"--arch {text}: ep and zero together are not modelled; leave out one of them")
    return mesh


def _value(text: str, key: str, value: str) -> object:
    if key in _WORDS:
        try:
            return _WORDS[key](value)
        except ValueError:
            known = [str(one) for one in _WORDS[key]]
            raise UnknownNameError(
                f"--arch {text}: no {key} named {value!r}{did_you_mean(value, known)} ({', '.join(known)})"
            ) from None
    if key == "sp":
        if value not in ("0", "1"):
            raise UsageError(f"--arch {text}: sp={value}: 1 divides the sequence, 0 does not")
        return value == "1"
    low, high = (0, 3) if key == "zero" else (1, MOST)
    if not value.isascii() or not value.isdecimal() or not low <= int(value) <= high:
        raise UsageError(f"--arch {text}: {key}={value}: a whole number from {low} to {high}")
    return int(value)
