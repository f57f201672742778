"""The rule API: how an operator's cost is declared, found, and told apart from unknown.

Three answers, never two: a rule counts the operator, a ``free`` entry says why it
costs nothing, and anything else is unknown (``None``) and reported.

A forward rule is ``rule(node) -> OpCost``. A backward rule is
``backward(node, wrt) -> OpCost`` with ``wrt`` the input indices whose gradient is
needed. ``saves`` names the tensors kept for the backward pass: ``"in0"``, ``"out0"``,
``"inputs"``, ``"mask"`` (a dropout's) or ``"indices"`` (a maximum's positions);
``"in0?1"`` keeps input 0 where the gradient of input 1 is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from graphcost.ir import OpCost, OpNode, TensorSpec

ForwardRule = Callable[[OpNode], OpCost]
BackwardRule = Callable[[OpNode, frozenset[int]], OpCost]


class OpClass(StrEnum):
    """Families that share an efficiency on real devices (COST_MODEL: class efficiencies)."""

    MATMUL = "matmul"
    CONV = "conv"
    DEPTHWISE = "depthwise"
    ATTENTION = "attention"
    RECURRENT = "recurrent"
    NORM = "norm"
    SOFTMAX = "softmax"
    POINTWISE = "pointwise"
    REDUCE = "reduce"
    POOL = "pool"
    GATHER = "gather"
    COPY = "copy"
    FREE = "free"


@dataclass(frozen=True, slots=True)
class Rule:
    """One operator's entry in the table."""

    op_type: str
    domain: str
    op_class: OpClass
    forward: ForwardRule
    backward: BackwardRule
    saves: tuple[str, ...]
    source: str

    @property
    def is_free(self) -> bool:
        """Whether someone decided that the operator costs nothing."""
        return self.op_class is OpClass.FREE


RULES: dict[tuple[str, str], Rule] = {}
"""(domain, op_type) -> rule. The standard's domain is the empty string."""


def rule(
    *op_types: str,
    op_class: OpClass,
    backward: BackwardRule,
    saves: tuple[str, ...] = (),
    domain: str = "",
) -> Callable[[ForwardRule], ForwardRule]:
    """Register a forward rule for ``op_types``; its docstring's ``Source:`` line is the source."""

    def register(forward: ForwardRule) -> ForwardRule:
        source = _source_of(forward)
        for op_type in op_types:
            _add(Rule(op_type, domain, op_class, forward, backward, saves, source))
        return forward

    return register


def free(*op_types: str, why: str, domain: str = "") -> None:
    """Declare that ``op_types`` cost nothing, and why."""
    for op_type in op_types:
        _add(Rule(op_type, domain, OpClass.FREE, _nothing, _nothing_back, (), why))


def find_rule(node: OpNode) -> Rule | None:
    """The rule for ``node``, or None: unknown."""
    return RULES.get((node.domain, node.op_type))


def _add(entry: Rule) -> None:
    key = (entry.domain, entry.op_type)
    if key in RULES:
        raise ValueError(f"operator {entry.domain}.{entry.op_type} has two rules")
    RULES[key] = entry


def _source_of(function: ForwardRule) -> str:
    doc = function.__doc__ or ""
    if "Source:" not in doc:
        raise ValueError(f"rule {function.__name__} has no 'Source:' line in its docstring")
    return " ".join(doc.split("Source:", 1)[1].split())


def _nothing(node: OpNode) -> OpCost:
    return OpCost()


def _nothing_back(node: OpNode, wrt: frozenset[int]) -> OpCost:
    return OpCost()


def read_bytes(*specs: TensorSpec | None) -> int:
    """Bytes of reading each tensor once; absent ones are nothing."""
    return sum(spec.size_bytes for spec in specs if spec is not None)


def traffic(node: OpNode, *, matmul_flops: int = 0, elementwise_flops: int = 0) -> OpCost:
    """The usual traffic: every input read once, every output written once."""
    return OpCost(matmul_flops, elementwise_flops, read_bytes(*node.inputs), read_bytes(*node.outputs))
