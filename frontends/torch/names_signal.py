"""aten names of Fourier transforms and losses.

A complex tensor ``[..., n]`` is ONNX's real one ``[..., n, 2]``; a transform over several
axes is one DFT an axis, a real one being real along its last axis only.
"""

from __future__ import annotations

from typing import Any

from graphcost.frontends.torch.lower import Lowering, handles
from graphcost.frontends.torch.records import Ref, TorchOp
from graphcost.ir import TensorSpec

_PARTS = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
_COMPLEX = ("fft", "ifft", "fft2", "ifft2", "fftn", "ifftn")
_FORWARD = ("rfft", "rfft2", "rfftn", "ihfft")
_BACK = ("irfft", "irfft2", "irfftn", "hfft")


def _pairs(spec: TensorSpec, parts: int = 2) -> TensorSpec:
    return TensorSpec((*spec.shape, parts), _PARTS.get(spec.dtype, spec.dtype))


def _axes(op: TorchOp, rank: int) -> tuple[int, ...]:
    """Axes of a transform, never negative; torch's defaults: the last, the last two, all."""
    name = op.target.split(".")[1]
    default: Any = range(rank) if name.endswith("n") else (-2, -1) if name.endswith("2") else (-1,)
    given = op.args.get("dim")
    chosen = default if given is None else given if isinstance(given, tuple) else (given,)
    return tuple(axis % rank for axis in chosen)


def _dft(walk: Lowering, op: TorchOp, step: int, axis: int, source: TensorSpec, made: TensorSpec, last: bool) -> None:
    """One axis; steps between have names of their own."""
    taken = next(iter(op.args.values())) if step == 0 else Ref(f"{op.outputs[0]}.{step - 1}")
    walk.frame.specs.setdefault(f"{op.outputs[0]}.{step}", made)
    walk.emit(op, "DFT", [taken], specs={0: source}, outputs=[made], suffix=f".{axis}", axis=axis,
              names=[op.outputs[0] if last else f"{op.outputs[0]}.{step}"])  # fmt: skip


@handles(*(f"aten.fft_{name}" for name in (*_COMPLEX, *_FORWARD, *_BACK)))
def _fft(walk: Lowering, op: TorchOp) -> None:
    """``[*, n, *]`` along one axis or more; the halved side of a real transform has n / 2 + 1 points."""
    x, out = walk.need(op, next(iter(op.args.values()))), walk.out(op)
    if out is None:
        raise LookupError(op.name)
    name = op.target.split(".")[1].removeprefix("fft_")
    axes = _axes(op, len(out.shape))
    complex_side = x if name in _BACK else out
    real = {axes[-1]} if name not in _COMPLEX else set()
    order = (*axes[-1:], *axes[:-1]) if name in _FORWARD else axes
    for step, axis in enumerate(order):
        source = made = _pairs(complex_side)
        if axis in real:  # the inverse moves the same bytes the other way
            source = _pairs(out if name in _BACK else _sized(x, axis, _points(op)), 1)
        _dft(walk, op, step, axis, source, made, step == len(order) - 1)


def _points(op: TorchOp) -> Any:
    """The length asked for along the last axis, if any."""
    return op.args["s"][-1] if op.args.get("s") else op.args.get("n")


def _sized(spec: TensorSpec, axis: int, points: Any) -> TensorSpec:
    """The input cut or padded to ``points`` along ``axis``, where that is asked."""
    if not isinstance(points, int):
        return spec
    return TensorSpec((*spec.shape[:axis], points, *spec.shape[axis + 1 :]), spec.dtype)


@handles("aten.stft")
def _stft(walk: Lowering, op: TorchOp) -> None:
    """Signal ``[B, L]`` or ``[L] -> [B, bins, frames]``: every frame is weighed, then transformed."""
    x, out = walk.need(op, op.args["self"]), walk.out(op)
    points = op.args["n_fft"]
    if out is None:
        raise LookupError(op.name)
    complex_out = out.dtype in _PARTS
    frames = out.shape[-1] if complex_out else out.shape[-2]
    batch = x.shape[0] if len(x.shape) > 1 else 1
    framed = TensorSpec((batch, frames, points), x.dtype)
    window, source = op.args.get("window"), op.args["self"]
    if isinstance(window, Ref):
        name = f"{op.outputs[0]}.framed"
        walk.frame.specs[name] = framed
        walk.emit(op, "Mul", [source, window], specs={0: framed}, outputs=[framed], names=[name], suffix=".window")
        source = Ref(name)
    made = _pairs(out) if complex_out else out
    walk.emit(op, "DFT", [source], specs={0: _pairs(framed, 1)}, outputs=[made], axis=2)


@handles("aten.cross_entropy_loss")
def _cross_entropy(walk: Lowering, op: TorchOp) -> None:
    """Scores ``[N, C, *]``, labels ``[N, *]``, weights ``[C]``; scores without a batch are one row."""
    _labelled(walk, op, "SoftmaxCrossEntropyLoss")


@handles("aten.nll_loss", "aten.nll_loss_nd", "aten.nll_loss2d")
def _nll(walk: Lowering, op: TorchOp) -> None:
    _labelled(walk, op, "NegativeLogLikelihoodLoss")


def _labelled(walk: Lowering, op: TorchOp, kind: str) -> None:
    scores, labels = walk.need(op, op.args["self"]), walk.need(op, op.args["target"])
    specs = {}
    if len(scores.shape) == 1:
        specs = {0: TensorSpec((1, *scores.shape), scores.dtype), 1: TensorSpec((1,), labels.dtype)}
    if labels.is_float:
        raise LookupError(f"{op.name}: labels that are probabilities")
    weight = op.args.get("weight")
    inputs = [op.args["self"], op.args["target"], *([weight] if isinstance(weight, Ref) else [])]
    walk.emit(op, kind, inputs, specs=specs, outputs=[walk.out(op)], names=op.outputs[:1], slots=())


@handles("aten.mse_loss", "aten.l1_loss")
def _distance(walk: Lowering, op: TorchOp) -> None:
    """A difference, its square or size, and their sum."""
    inputs = [op.args["self"], op.args["target"]]
    spec = walk.need(op, op.args["self"])
    names = [f"{op.outputs[0]}.{part}" for part in ("difference", "size")]
    for name in names:
        walk.frame.specs[name] = spec
    walk.emit(op, "Sub", inputs, outputs=[spec], names=names[:1], suffix=".difference")
    square = [Ref(names[0])] * (2 if "mse" in op.target else 1)
    walk.emit(op, "Mul" if "mse" in op.target else "Abs", square, outputs=[spec], names=names[1:], suffix=".size")
    walk.emit(op, "ReduceSum", [Ref(names[1])], outputs=[walk.out(op)], names=op.outputs[:1])
