"""What the configuration knows by name is all that the code gives names to."""

from __future__ import annotations

import ast
from pathlib import Path

import graphcost
from graphcost.project.keys import RULES


def test_every_rule_of_a_finding_has_a_meaning() -> None:
    given = set()
    for path in Path(graphcost.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding"
            if named and node.args and isinstance(node.args[0], ast.Constant):
                given.add(node.args[0].value)
    assert {"communication-share", "does-not-fit", "no-curve", "division"} <= given <= set(RULES)
