"""Colours of the parts of a step, on pages and in plots alike.

Source: Okabe and Ito, Color Universal Design (2008), whose hues stay apart for colour-blind
readers. Neighbours in a bar differ in lightness too, and communication is hatched, so that
they stay apart in grey.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ink:
    """A colour on white, the same on a dark page, and a hatch (matplotlib's marks) with its colour."""

    light: str
    dark: str
    hatch: str = ""
    edge: str = "#FFFFFF"


HIDDEN = "hidden communication"

PARTS: dict[str, Ink] = {
    "compute": Ink("#0072B2", "#3D9BD6"),
    "memory": Ink("#8CCBF0", "#A9DBF8"),
    "host": Ink("#8A8A8A", "#8E959C"),
    "input": Ink("#F0E442", "#E8DD55"),
    "communication": Ink("#D55E00", "#EE7A22", "///"),
    HIDDEN: Ink("#F6C9A6", "#7A4A24", "...", "#A04A00"),
}
"""In the order in which bars are stacked."""

MEMORY: dict[str, Ink] = {
    "weights": Ink("#0072B2", "#3D9BD6"),
    "optimizer": Ink("#8CCBF0", "#A9DBF8"),
    "buffers": Ink("#4D4D4D", "#5F666E"),
    "communication": Ink("#D55E00", "#EE7A22"),
    "gradients": Ink("#F0E442", "#E8DD55"),
    "activations": Ink("#009E73", "#2BBE92"),
    "temporary": Ink("#DFA5C4", "#F2CFE2"),
}
"""Categories of memory, from the bottom up."""

SERIES: tuple[Ink, ...] = (
    Ink("#0072B2", "#3D9BD6"), Ink("#D55E00", "#EE7A22"), Ink("#009E73", "#2BBE92"), Ink("#B0608A", "#D98BB3"),
    Ink("#B8860B", "#E3B341"), Ink("#56B4E9", "#8FD0F5"), Ink("#6B6B6B", "#A3A9AF"), Ink("#7A3E9D", "#B58AD6"),
)  # fmt: skip
"""Further series, in order; with markers or dashes where there are more than one."""
