"""Size expressions of an export, evaluated without executing them.

Archives store SymPy expressions as text. They are parsed with ``ast`` and walked over a
short list of functions; anything else is refused.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from typing import Any

from graphcost.errors import ModelFileError

MAX_TEXT = 10_000


def _product(*values: int) -> int:
    return math.prod(values)


def _total(*values: int) -> int:
    return sum(values)


# SymPy's own heads and those of torch.utils._sympy.functions.
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "Integer": int,
    "Mul": _product,
    "Add": _total,
    "Pow": pow,
    "Rational": lambda p, q: p / q if p % q else p // q,
    "FloorDiv": lambda a, b: a // b,
    "CleanDiv": lambda a, b: a // b,
    "IntTrueDiv": lambda a, b: a / b,
    "CeilDiv": lambda a, b: -(-a // b),
    "ModularIndexing": lambda x, d, m: (x // d) % m,
    "Mod": lambda a, b: a % b,
    "PythonMod": lambda a, b: a % b,
    "Max": max,
    "Min": min,
    "Abs": abs,
    "floor": math.floor,
    "ceiling": math.ceil,
    "TruncToInt": math.trunc,
    "FloorToInt": math.floor,
    "CeilToInt": math.ceil,
    "ToFloat": float,
}

_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Div: lambda a, b: a // b if a % b == 0 else a / b,
    ast.Mod: lambda a, b: a % b,
    ast.Pow: lambda a, b: a**b,
}


def symbols_of(text: str) -> set[str]:
    """Names of the symbols in an expression."""
    found = set()
    for node in ast.walk(_parse(text)):
        if isinstance(node, ast.Name) and node.id not in _FUNCTIONS and node.id != "Symbol":
            found.add(node.id)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Symbol":
            found.add(_symbol_name(node))
    return found


def evaluate(text: str, symbols: Mapping[str, int]) -> int:
    """The value of ``text``; raises ``KeyError`` for a symbol without a value."""
    value = _value(_parse(text).body, symbols)
    if value != int(value):
        raise ModelFileError(f"size {text!r} is {value}, no whole number")
    return int(value)


def plain(text: str) -> str:
    """The symbol that ``text`` is, or ``text`` itself."""
    node = _parse(text).body
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Symbol":
        return _symbol_name(node)
    return text


def _parse(text: str) -> ast.Expression:
    if len(text) > MAX_TEXT:
        raise ModelFileError(f"a size expression of {len(text)} characters is refused")
    try:
        return ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ModelFileError(f"size {text!r} is no expression") from error


def _symbol_name(node: ast.Call) -> str:
    if node.args and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
        return node.args[0].value
    raise ModelFileError("a symbol without a name in a size expression")


def _value(node: ast.expr, symbols: Mapping[str, int]) -> Any:
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name):
            return symbols[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, symbols)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
            return _OPERATORS[type(operator)](_value(left, symbols), _value(right, symbols))
        case ast.Call(func=ast.Name(id="Symbol")):
            return symbols[_symbol_name(node)]
        case ast.Call(func=ast.Name(id=name), args=args) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_value(arg, symbols) for arg in args))
    raise ModelFileError(f"a size uses {ast.unparse(node)!r}, which is not evaluated")
