"""Damaged model files, deterministic by seed and index: bytes, fields (``_fields``), built to hurt (``_hostile``)."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from onnx import ModelProto

from benchmarks._fields import FIELDS
from benchmarks._hostile import HOSTILE

MAX_RANDOM_BYTES = 10_000_000

Seeds = Sequence[tuple[str, bytes]]


def mutant(seed: int, index: int, seeds: Seeds) -> tuple[str, bytes]:
    """(what was done, content) of file ``index``; the same for the same arguments."""
    random = Random(f"{seed}:{index}")
    name, content = random.choice(seeds)
    kind = random.choices(("bytes", "fields", "hostile", "noise"), (35, 55, 7, 3))[0]
    if kind == "hostile":
        make = random.choice(HOSTILE)
        return make.__name__, make(random)
    if kind == "noise":
        return "noise", _noise(random)
    if kind == "bytes":
        what, content = _bytes(random, bytearray(content), seeds)
        return f"{name}: {what}", content
    try:
        model = ModelProto.FromString(content)
    except Exception:  # seeds include files that are damaged already
        return f"{name}: as it is", content
    names = []
    for _ in range(random.choice((1, 1, 2, 3, 6))):
        change = random.choice(FIELDS)
        try:
            change(random, model)
        except (IndexError, ValueError, TypeError, AttributeError, OverflowError):
            continue  # nothing there to change
        names.append(change.__name__.strip("_"))
    try:
        return f"{name}: {', '.join(names)}", model.SerializeToString()
    except Exception:  # a field that protobuf will not write
        return f"{name}: as it is", content


def _bytes(random: Random, data: bytearray, seeds: Seeds) -> tuple[str, bytes]:
    at, other = random.randrange(len(data)), random.randrange(len(data))
    length = min(len(data), random.choice((1, 2, 8, 64, 1024)))
    how = random.choice(("flip", "truncate", "cut", "insert", "splice", "repeat", "ones", "swap"))
    match how:
        case "flip":
            for _ in range(random.choice((1, 1, 2, 8, 64))):
                data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        case "truncate":
            del data[at:]
        case "cut":
            del data[at : at + length]
        case "insert":
            data[at:at] = random.randbytes(length)
        case "splice":
            donor = random.choice(seeds)[1]
            start = random.randrange(max(1, len(donor)))
            data[at : at + length] = donor[start : start + length]
        case "repeat":
            data[at:at] = data[other : other + length] * random.choice((1, 3, 50))
        case "ones":
            data[at : at + min(length, 10)] = b"\xff" * min(length, 10)
        case "swap":
            data[at], data[other] = data[other], data[at]
    return how, bytes(data)


def _noise(random: Random) -> bytes:
    """Random bytes, or a run of well-formed tiny fields: both up to 10 MB."""
    size = int(2 ** (random.random() * MAX_RANDOM_BYTES.bit_length()))
    size = min(size, MAX_RANDOM_BYTES)
    if random.random() < 0.5:
        return random.randbytes(size)
    unit = random.choice(
        (b"\x08\x01", b"\x12\x00", b"\x3a\x00", b"\x3a\x02\x0a\x00", b"\xba\x3e\x00", b"\x0d\0\0\0\0")
    )
    return (unit * (size // len(unit) + 1))[:size]
