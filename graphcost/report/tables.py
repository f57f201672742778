"""Plain tables through rich: one look for every command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

DEFAULT_WIDTH = 100


def table_text(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[int] = (),
    width: int = DEFAULT_WIDTH,
    title: str | None = None,
    header: bool = True,
    spare: Sequence[str] = (),
) -> str:
    """Rows in aligned columns; those in ``right`` are right-aligned. Long cells are cut with an ellipsis.

    Columns named in ``spare`` are left out, first ones first, until no cell is cut.
    """
    for name in spare:
        if natural_width(columns, rows) <= width:
            break
        if name in columns:
            gone = columns.index(name)
            right = [index - (index > gone) for index in right if index != gone]
            columns, rows = [*columns[:gone], *columns[gone + 1 :]], [[*r[:gone], *r[gone + 1 :]] for r in rows]
    table = Table(
        box=None,
        pad_edge=False,
        show_header=header,
        title=title,
        title_justify="left",
        title_style="",
        header_style="",
        padding=(0, _GAP, 0, 0),
    )
    for index, name in enumerate(columns):
        # What a row is about, and every number, stays whole; other text gives way.
        whole = index == 0 or index in right
        widest = max((len(row[index]) for row in rows), default=0)
        table.add_column(
            name,
            justify="right" if index in right else "left",
            no_wrap=True,
            overflow="ellipsis",
            min_width=min(max(widest, len(name)), width // 2) if whole else None,
        )
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return rendered(table, width)


_GAP = 2


def natural_width(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Characters of the widest line of a table in which nothing is cut."""
    cells = [columns, *rows]
    widest = (max(len(row[index]) for row in cells) for index in range(len(columns)))
    return sum(widest) + _GAP * (len(columns) - 1)


def rendered(item: Any, width: int) -> str:
    """A rich renderable as text without colour, lines stripped on the right."""
    buffer = StringIO()
    console = Console(
        file=buffer, width=width, color_system=None, force_terminal=False, legacy_windows=False, highlight=False
    )
    console.print(item)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def fields_text(fields: Mapping[str, Any], indent: str = "") -> str:
    """``name  value`` lines, nested mappings indented."""
    lines = []
    width = max((len(str(name)) for name in fields), default=0)
    for name, value in fields.items():
        if isinstance(value, Mapping):
            lines.append(f"{indent}{name}")
            lines.append(fields_text(value, indent + "  ").rstrip("\n"))
        else:
            lines.append(f"{indent}{name!s:<{width}}  {value}")
    return "\n".join(lines) + "\n"


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A GitHub table."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in cells)]) + "\n"


_LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def latex_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A ``tabular`` with booktabs' rules, the first column to the left."""

    def row(cells: Sequence[str]) -> str:
        return "  " + " & ".join("".join(_LATEX_SPECIAL.get(c, c) for c in cell) for cell in cells) + r" \\"

    lines = [r"\begin{tabular}{l" + "r" * (len(columns) - 1) + "}", r"  \toprule", row(columns), r"  \midrule"]
    return "\n".join([*lines, *map(row, rows), r"  \bottomrule", r"\end{tabular}"]) + "\n"
