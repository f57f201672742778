"""Which softmaxes Megatron-LM's fused kernel takes; others run as torch's own operators, in fp32.

Source: ``FusedScaleMaskSoftmax.is_kernel_available`` of Megatron-LM: scores ``[b, heads, sq, sk]`` of more than 16
and at most 4096 keys, queries and keys multiples of 4, and ``b x heads`` too. Tensor parallelism divides the heads,
so that small micro-batches of many-fold divided models lose the kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphcost.ir import OpNode
from graphcost.ops import OpClass
from graphcost.training.views import Laid

MOST_KEYS = 4096
STEP = 4


def takes_softmax(node: OpNode) -> bool:
    """Whether the fused kernel runs ``node``; what is no attention's softmax is not asked about.

    >>> from graphcost.ir import TensorSpec
    >>> [takes_softmax(OpNode("s", "Softmax", (TensorSpec((1, heads, 1024, 1024)),), ())) for heads in (2, 4)]
    [False, True]
    """
    spec = node.spec(0)
    if node.op_type != "Softmax" or spec is None or len(spec.shape) != 4:
        return True
    batch, heads, queries, keys = spec.shape
    return 16 < keys <= MOST_KEYS and not any(size % STEP for size in (batch * heads, queries, keys))


def fp32_softmaxes(nodes: Iterable[OpNode]) -> frozenset[str]:
    """Names of softmaxes that no fused kernel takes."""
    return frozenset(node.name for node in nodes if not takes_softmax(node))


def left_to_torch(laid: Sequence[Laid]) -> frozenset[int]:
    """Positions of those softmaxes, and of the scale, mask and casts around them: each an operator of its own."""
    made_at = {name: position for position, op in enumerate(laid) for name in op.writes}
    found: set[int] = set()
    for position, op in enumerate(laid):
        if takes_softmax(op.node):
            continue
        found.add(position)
        numel = op.node.out.numel
        reached = [name for name in op.reads if name]
        while reached:
            at = made_at.get(reached.pop())
            source = laid[at] if at is not None else None
            if at is None or source is None or source.op_class is not OpClass.POINTWISE or at in found:
                continue
            if source.node.out.numel == numel:
                found.add(at)
                reached += [name for name in source.reads if name]
    return frozenset(found)
