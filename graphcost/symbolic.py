"""Costs as expressions in the sizes that a model leaves open.

The model is evaluated at a grid of sizes and the exact polynomial through the results is
found; points off the grid must agree, or the cost is named as no polynomial. That needs
no second, symbolic version of shapes and rules, and agrees with the bound result by
construction where it claims to. Strided models are polynomials only on multiples of
their stride: then the condition is stated with the expression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

from graphcost.errors import GraphcostError, UsageError
from graphcost.frontends.options import LoadOptions
from graphcost.graph import build_graph, operators
from graphcost.sources import load_model, open_sizes

if TYPE_CHECKING:
    from graphcost.graph import OpGraph

MAX_SIZES = 4
"""Open sizes treated at once; the grid grows with their product."""

MAX_DEGREE = 3
"""Highest power of one size. Attention is quadratic in the sequence; assumed: nothing real goes beyond cubes."""

COSTS = ("matmul_flops", "elementwise_flops", "read_bytes", "write_bytes")
TOTALS = (*COSTS, "activation_bytes")

# (first value, step) tried for a size, in this order: any size, larger ones, multiples of a stride.
_LADDERS = ((2, 1), (16, 1), (65, 1), (32, 32), (128, 64))

Evaluate = Callable[[Mapping[str, int]], "OpGraph"]


@dataclass(frozen=True, slots=True)
class SymbolicCost:
    """Expressions in ``sizes`` (Python syntax); ``ops`` by operator id.

    ``conditions`` say where they hold. ``named`` holds what is no polynomial, with the reason. ``example`` is
    one set of sizes that the model takes.
    """

    sizes: tuple[str, ...]
    conditions: tuple[str, ...]
    totals: Mapping[str, str]
    ops: Mapping[str, Mapping[str, str]]
    named: Mapping[str, str]
    example: Mapping[str, int]


def symbolic_of(source: Any, options: LoadOptions) -> SymbolicCost:
    """Expressions for ``source`` in the sizes that ``options`` leave open, or in all open sizes if none is left."""
    declared = open_sizes(source)
    bound = set(options.dims) | ({"batch"} if options.batch is not None else set())
    free = tuple(name for name in declared if name not in bound) or declared
    if not declared:
        raise UsageError(f"--symbolic: {source} leaves no size open")
    fixed = {name: size for name, size in options.dims.items() if name not in free}

    def evaluate(sizes: Mapping[str, int]) -> OpGraph:
        return build_graph(load_model(source, replace(options, batch=None, dims={**fixed, **sizes})))

    return symbolic_cost(evaluate, free)


def symbolic_cost(evaluate: Evaluate, sizes: Sequence[str]) -> SymbolicCost:
    """Polynomials of all costs in ``sizes``.

    ``evaluate`` loads the model with all of ``sizes`` bound. Raises ``UsageError`` for more
    than ``MAX_SIZES`` sizes, and where no values of a size can be found that the model takes.
    """
    if len(sizes) > MAX_SIZES:
        raise UsageError(
            f"--symbolic: {len(sizes)} sizes are open ({', '.join(sizes)}); bind all but {MAX_SIZES} with --dim"
        )
    axes = _axes(evaluate, sizes)
    points = list(product(*(axis.grid for axis in axes)))
    seen = [_costs(evaluate(dict(zip(sizes, point, strict=True)))) for point in points]
    checks = list(product(*(axis.checks for axis in axes)))[:4]
    checked = [_costs(evaluate(dict(zip(sizes, point, strict=True)))) for point in checks]
    solve = _Interpolation(tuple(sizes), axes, points)
    totals: dict[str, str] = {}
    named: dict[str, str] = {}
    ops: dict[str, dict[str, str]] = {}
    for key in seen[0]:
        if any(key not in values for values in (*seen, *checked)):
            named[_label(key)] = "the operator is not in the graph at every size"
            continue
        text = solve.expression([values[key] for values in seen], checks, [values[key] for values in checked])
        if text is None:
            named[_label(key)] = f"no polynomial of degree {MAX_DEGREE} in {', '.join(sizes)}"
        elif key[0] == "":
            totals[key[1]] = text
        else:
            ops.setdefault(key[0], {})[key[1]] = text
    conditions = tuple(axis.condition for axis in axes if axis.condition)
    example = {axis.name: axis.first for axis in axes}
    return SymbolicCost(tuple(sizes), conditions, totals, ops, named, example)


def symbolic_to_dict(found: SymbolicCost) -> dict[str, Any]:
    """The ``symbolic`` block of the JSON: sizes, conditions, expressions of the totals, what is none."""
    return {
        "sizes": list(found.sizes),
        "conditions": list(found.conditions),
        **found.totals,
        "not_polynomial": dict(found.named),
    }


@dataclass(frozen=True, slots=True)
class _Axis:
    """Values of one size: as many as its degree needs, and two off the grid."""

    name: str
    first: int
    step: int
    degree: int

    @property
    def grid(self) -> tuple[int, ...]:
        return tuple(self.first + self.step * i for i in range(self.degree + 1))

    @property
    def checks(self) -> tuple[int, ...]:
        return self.first + self.step * (self.degree + 3), self.first + self.step * (self.degree + 7)

    @property
    def condition(self) -> str:
        if self.step > 1:
            return f"{self.name} % {self.step} == 0"
        return f"{self.name} >= {self.first}" if self.first > _LADDERS[0][0] else ""


def _axes(evaluate: Evaluate, sizes: Sequence[str]) -> tuple[_Axis, ...]:
    """For every size the first ladder on which the totals are polynomials, others held fixed."""
    base = dict.fromkeys(sizes, _workable(evaluate, sizes))
    return tuple(_axis(evaluate, name, base) for name in sizes)


def _workable(evaluate: Evaluate, sizes: Sequence[str]) -> int:
    """A value that the model takes for all sizes at once."""
    reason: GraphcostError | None = None
    for first, _ in _LADDERS:
        try:
            evaluate(dict.fromkeys(sizes, first))
            return first
        except GraphcostError as error:
            reason = error
    raise UsageError(f"--symbolic: the sizes {', '.join(sizes)} cannot vary freely; bind some with --dim ({reason})")


def _axis(evaluate: Evaluate, name: str, base: Mapping[str, int]) -> _Axis:
    fallback: _Axis | None = None
    for first, step in _LADDERS:
        try:
            runs = [_costs(evaluate({**base, name: first + step * i})) for i in range(MAX_DEGREE + 3)]
        except GraphcostError:
            continue
        series = [[run[("", total)] for run in runs] for total in TOTALS]
        degrees = [_degree(values) for values in series]
        if max(degrees) <= MAX_DEGREE:
            return _Axis(name, first, step, max(degrees))
        fallback = fallback or _Axis(name, first, step, MAX_DEGREE)
    if fallback is None:
        raise UsageError(f"--symbolic: the size {name} cannot vary freely; bind it with --dim {name}=N")
    return fallback


def _degree(values: Sequence[int]) -> int:
    """Degree of the polynomial through equally spaced ``values``: differences until they vanish."""
    degree = 0
    while any(values):
        values = [b - a for a, b in pairwise(values)]
        degree += 1
        if not values:
            break
    return max(0, degree - 1)


def _costs(graph: OpGraph) -> dict[tuple[str, str], int]:
    """(operator id, cost) -> value; totals under the empty id."""
    found: dict[tuple[str, str], int] = {}
    sums = dict.fromkeys(TOTALS, 0)
    for node_id, node, cost in operators(graph):
        sums["activation_bytes"] += node.repeat * sum(spec.size_bytes for spec in node.outputs if spec is not None)
        if cost is None:
            continue
        for name in COSTS:
            value = getattr(cost, name)
            found[(node_id, name)] = value
            sums[name] += value
    return {**{("", name): value for name, value in sums.items()}, **found}


def _label(key: tuple[str, str]) -> str:
    return f"{key[0]}: {key[1]}" if key[0] else key[1]


class _Interpolation:
    """The exact polynomial through values on a grid, one linear solve for all of them."""

    def __init__(self, sizes: tuple[str, ...], axes: Sequence[_Axis], points: Sequence[tuple[int, ...]]) -> None:
        from sympy import QQ, Symbol
        from sympy.polys.matrices import DomainMatrix

        self._symbols = [Symbol(name) for name in sizes]
        self._monomials = list(product(*(range(axis.degree + 1) for axis in axes)))
        rows = [[QQ(_power(point, powers)) for powers in self._monomials] for point in points]
        self._inverse = DomainMatrix(rows, (len(points), len(self._monomials)), QQ).inv()

    def expression(
        self, values: Sequence[int], checks: Sequence[tuple[int, ...]], checked: Sequence[int]
    ) -> str | None:
        """The polynomial as text, or None where a check disagrees."""
        from sympy import QQ, Poly
        from sympy.polys.matrices import DomainMatrix

        column = DomainMatrix([[QQ(value)] for value in values], (len(values), 1), QQ)
        coefficients = [row[0] for row in (self._inverse * column).to_list()]
        terms = dict(zip(self._monomials, coefficients, strict=True))
        for point, value in zip(checks, checked, strict=True):
            if sum(c * _power(point, powers) for powers, c in terms.items()) != value:
                return None
        if not self._symbols:
            return str(coefficients[0])
        return str(
            Poly.from_dict(
                {m: c for m, c in terms.items() if c} or {(0,) * len(self._symbols): 0}, *self._symbols, domain=QQ
            ).as_expr()
        )


def _power(point: Sequence[int], powers: Sequence[int]) -> int:
    result = 1
    for value, power in zip(point, powers, strict=True):
        result *= value**power
    return result
