"""Size expressions are evaluated, never executed."""

from __future__ import annotations

import pytest

from graphcost.errors import ModelFileError
from graphcost.frontends.torch.expressions import evaluate, plain, symbols_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("s0", 6),
        ("2*s0 + 3", 15),
        ("s0*s1", 30),
        ("s0//4", 1),
        ("Symbol('s0', positive=True, integer=True)", 6),
        ("Mul(Integer(2), Symbol('s1', integer=True))", 10),
        ("Add(Mul(Integer(-1), Symbol('s0')), Integer(10))", 4),
        ("FloorDiv(s0 + 1, 2)", 3),
        ("CeilDiv(s1, 2)", 3),
        ("Max(1, s0 - 10)", 1),
        ("Mod(s0, 4)", 2),
        ("Pow(s0, 2)", 36),
        ("-s0 + 8", 2),
        ("s0/2", 3),
    ],
)
def test_values(text: str, value: int) -> None:
    assert evaluate(text, {"s0": 6, "s1": 5}) == value


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "().__class__",
        "open('/etc/passwd')",
        "[1, 2]",
        "lambda: 1",
        "s0 if True else 1",
        "Symbol()",
        "1 +",
        "x" * 20_000,
        "'text'",
        "s0/4",
    ],
)
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises((ModelFileError, KeyError)):
        evaluate(text, {"s0": 6})


def test_an_open_symbol_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        evaluate("s9 + 1", {"s0": 6})
    assert symbols_of("FloorDiv(s0 + Symbol('s3'), 2)") == {"s0", "s3"}
    assert plain("Symbol('s77', positive=True)") == "s77" and plain("2*s0") == "2*s0"
