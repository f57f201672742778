"""docs/reference.md, made from the code: commands, options, configuration, formats, rules, names.

``python -m benchmarks.docs_reference`` prints it, ``--write`` puts it there, and a test compares.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click
import yaml

from graphcost import errors
from graphcost.arch import ARCHITECTURES
from graphcost.cli.check import vocabulary
from graphcost.cli.main import cli
from graphcost.device_db import cluster_names, device_names
from graphcost.models_zoo import describe, names
from graphcost.ops import RULES as OPERATORS
from graphcost.project.keys import BUDGET_KEYS, IGNORE_KEYS, MODEL_KEYS, PROJECT_KEYS, RULES, Key
from graphcost.pytest_plugin import INI_OPTIONS
from graphcost.report import FORMATS
from graphcost.report.tables import markdown_table
from graphcost.resources import RESOURCES
from graphcost.sched import SCHEDULERS

ROOT = Path(__file__).parents[1]
WIDTH = 100
REFERENCE = ROOT / "docs" / "reference.md"


def reference() -> str:
    """The page."""
    parts = [
        "# Reference",
        "Made from the code by `python -m benchmarks.docs_reference --write`.",
        "## Commands",
        *_commands(cli, "graphcost"),
        "## Configuration",
        "Keys of `graphcost.toml`, or of `[tool.graphcost]` in `pyproject.toml`. Options of `analyze` and\n"
        "budgets go for the project and for a `[[models]]` entry.",
        "### Project",
        _keys(PROJECT_KEYS),
        "### `[[models]]`",
        _keys(MODEL_KEYS),
        "### `[[ignore]]`",
        _keys(IGNORE_KEYS),
        "### Budgets",
        _keys(BUDGET_KEYS),
        "### Options of `analyze`",
        _keys(vocabulary().keys),
        "## Rules of findings",
        _table(("rule", "means"), ((f"`{name}`", text) for name, text in RULES.items())),
        "## Exit codes",
        _table(("code", "error"), _exit_codes()),
        "## Formats",
        _table(("format", "suffixes"), ((f"`{name}`", _codes(one.suffixes)) for name, one in FORMATS.items())),
        "## GitHub Action",
        _action(),
        "## pytest",
        _table(("ini option", "is"), ((f"`graphcost_{name}`", text) for name, (text, _) in INI_OPTIONS.items())),
        "## Architectures",
        _table(("name", "is"), ((f"`{name}`", ARCHITECTURES[name].title) for name in ARCHITECTURES)),
        "## Resources of `sweep` and `advise`",
        _table(("name", "is"), ((f"`{name}`", one.title) for name, one in RESOURCES.items())),
        "## Schedulers",
        _table(("name", "does"), ((f"`{one.name}`", one.summary) for one in SCHEDULERS.values())),
        "## Devices and clusters",
        "`graphcost devices NAME` shows figures and sources.",
        f"{len(device_names())} devices: {_codes(device_names())}.",
        f"{len(cluster_names())} clusters: {_codes(cluster_names())}.",
        "## Models of the zoo",
        _table(("model", "is"), ((f"`zoo:{name}`", describe(name).title) for name in names())),
        "## Operators",
        f"{len(OPERATORS)} rules, by ONNX name; `graphcost ops` shows their sources.",
        *_operators(),
    ]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _commands(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator[str]:
    context = click.Context(command, parent, name, terminal_width=WIDTH, **command.context_settings)
    yield f"### {context.command_path}"
    yield f"```text\n{command.get_help(context)}\n```"
    if isinstance(command, click.Group):
        for one in command.list_commands(context):
            found = command.get_command(context, one)
            assert found is not None
            yield from _commands(found, one, context)


def _keys(keys: Iterable[Key]) -> str:
    return _table(("key", "is", "value"), ((f"`{key.name}`", key.doc, _value(key)) for key in keys))


def _value(key: Key) -> str:
    return f"one of {', '.join(key.choices)}" if key.choices else key.kind.value[0]


def _exit_codes() -> list[tuple[str, str]]:
    tree = sorted(
        (one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, errors.GraphcostError)),
        key=lambda one: (one.exit_code, one.__name__),
    )
    found = [(str(one.exit_code), f"`{one.__name__}`: {(one.__doc__ or '').strip()}") for one in tree]
    return [("0", "nothing found"), ("1", "a finding"), *found]


def _action() -> str:
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    inputs = ((f"`{name}`", one["description"], f"`{one['default']}`") for name, one in action["inputs"].items())
    outputs = ((f"`{name}`", one["description"]) for name, one in action["outputs"].items())
    return _table(("input", "is", "default"), inputs) + "\n" + _table(("output", "is"), outputs)


def _operators() -> Iterator[str]:
    by_class: dict[str, list[str]] = {}
    for one in OPERATORS.values():
        kind = "free" if one.is_free else str(one.op_class)
        by_class.setdefault(kind, []).append(f"{one.domain}.{one.op_type}" if one.domain else one.op_type)
    for kind, found in sorted(by_class.items()):
        yield f"**{kind}**: {', '.join(sorted(found))}."


def _codes(items: Sequence[str]) -> str:
    return ", ".join(f"`{item}`" for item in items)


def _table(columns: Sequence[str], rows: Iterable[tuple[str, ...]]) -> str:
    return markdown_table(columns, [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows])


def main() -> None:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="update docs/reference.md")
    if parser.parse_args().write:
        REFERENCE.write_text(reference(), "utf-8")
    else:
        print(reference(), end="")


if __name__ == "__main__":
    main()
