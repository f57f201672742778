"""What every plot shares: a figure without a screen, its look, and how it gets into a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from graphcost.errors import UsageError
from graphcost.report.palette import Ink

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLOT_SUFFIXES = (".png", ".svg", ".pdf")

_LOOK: dict[Any, Any] = {
    "font.size": 9, "axes.titlesize": 10, "axes.titlelocation": "left", "axes.spines.top": False,
    "axes.spines.right": False, "axes.axisbelow": True, "axes.grid": True, "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False, "legend.fontsize": 8, "hatch.linewidth": 0.7,
    "svg.fonttype": "none", "pdf.fonttype": 42, "svg.hashsalt": "graphcost",
}  # fmt: skip

_NO_DATE: Mapping[str, Mapping[str, Any]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": "graphcost"},
    ".pdf": {"CreationDate": None, "ModDate": None, "Creator": "graphcost", "Producer": None},
}


def check_plot(path: str) -> None:
    """Raise ``UsageError`` for a suffix that is no picture's, or where matplotlib is missing."""
    suffix = PurePath(path).suffix.lower()
    if suffix not in PLOT_SUFFIXES:
        raise UsageError(f"--plot {path}: no picture of suffix {suffix!r} (known: {', '.join(PLOT_SUFFIXES)})")
    if find_spec("matplotlib") is None:
        raise UsageError("--plot draws with matplotlib, which is not installed: pip install 'graphcost[plot]'")


def draw(path: str, width_in: float, height_in: float, fill: Callable[[Figure], None]) -> None:
    """A figure of that size in inches, filled by ``fill``, in the file ``path``; raises ``UsageError``."""
    check_plot(path)
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    suffix = PurePath(path).suffix.lower()
    with rc_context():
        from matplotlib import rcParams, rcParamsDefault

        rcParams.update({key: value for key, value in rcParamsDefault.items() if not key.startswith("backend")})
        rcParams.update(_LOOK)  # a matplotlibrc of the user's changes nothing
        figure = Figure(figsize=(width_in, height_in), layout="constrained")  # no pyplot: no screen is looked for
        fill(figure)
        try:
            figure.savefig(path, format=suffix[1:], dpi=200, metadata=dict(_NO_DATE[suffix]))
        except OSError as error:
            raise UsageError(f"--plot {path}: cannot be written ({error.strerror})") from error


def bar_style(ink: Ink) -> dict[str, Any]:
    """Colour and hatch of a bar."""
    return {"color": ink.light, "hatch": ink.hatch * 2, "edgecolor": ink.edge, "linewidth": 0.5}


def number_axis(axes: Axes, which: str, words: Callable[[float], str]) -> None:
    """Ticks in words: ``12.3 ms``, ``312 TFLOP/s``."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_formatter(FuncFormatter(lambda value, _: words(float(f"{value:.6g}"))))
    axis.set_minor_formatter(NullFormatter())


def plain(text: str, most: int = 40) -> str:
    """A name as it stands: no dollar sign begins a formula, and a long one keeps its end."""
    short = text if len(text) <= most else "..." + text[-(most - 3) :]
    return short.replace("$", r"\$")
