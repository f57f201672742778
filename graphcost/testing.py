"""Assertions for test suites; importing this module imports nothing heavy.

>>> from graphcost.testing import assert_not_communication_bound
>>> assert_not_communication_bound("zoo:resnet50", gpus=8, batch=32).step.verdict
'clear'
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from graphcost.errors import UsageError
from graphcost.registry import did_you_mean

if TYPE_CHECKING:
    from graphcost.placing import AnalysisOptions
    from graphcost.result import Analysis

WIDTH = 100
"""Columns of a failure's message."""

DOUBTS = ("fail", "warn", "pass")

_project: dict[str, Any] = {}
"""What the project's configuration says, under the assertion's own names; the pytest plugin puts it here."""


class CommunicationBoundWarning(UserWarning):
    """A model whose interval straddles the limit."""


def set_project_defaults(defaults: Mapping[str, Any]) -> None:
    """What every assertion of this process takes for options that it is not given."""
    _project.clear()
    _project.update(defaults)


def assert_not_communication_bound(
    model: Any,
    example_inputs: Any = None,
    *,
    max_comm_share: float | str | None = None,
    on_doubt: str | None = None,
    advice: bool = True,
    **options: Any,
) -> Analysis:
    """Fail where communication is more than ``max_comm_share`` of a training step, the whole interval over it.

    ``model``, ``example_inputs`` and ``options`` (``gpus``, ``cluster``, ``arch``, ``batch``, ...) are those of
    :func:`graphcost.analyze`; ``max_comm_share`` is ``0.4`` or ``"40%"`` (default: half). ``on_doubt`` says what an
    interval on both sides of the limit does: ``fail``, ``warn`` (``CommunicationBoundWarning``, the default) or
    ``pass``. ``advice``: a failure names the smallest change that clears the model. Options left out are those of the
    pytest configuration (``graphcost_gpus``, ...), then those of ``analyze``.

    Returns the analysis. Raises ``AssertionError``; ``UsageError`` where nothing could ever be communicated, since
    such a test cannot fail; and what ``analyze`` raises.
    """
    __tracebackhide__ = True
    from graphcost.analysis import analyze_with
    from graphcost.verdict import Verdict

    made = _options(max_comm_share, options)
    doubt = _first(on_doubt, "on_doubt", "warn")
    if doubt not in DOUBTS:
        raise UsageError(f"on_doubt={doubt!r}: one of {', '.join(DOUBTS)}{did_you_mean(str(doubt), DOUBTS)}")
    result = analyze_with(model, made, example_inputs=example_inputs)
    if result.placement.gpus == 1 and result.step.comm_s == 0:
        raise UsageError(
            f"assert_not_communication_bound: {result.model.name} on one GPU communicates nothing, so the test could "
            "not fail; give gpus=N, or set graphcost_gpus in the pytest configuration"
        )
    if result.step.verdict == Verdict.CLEAR or (result.step.verdict == Verdict.TOO_CLOSE and doubt == "pass"):
        return result
    from graphcost.report.text import verdict_text

    said = verdict_text(result, WIDTH).rstrip("\n")
    if result.step.verdict == Verdict.TOO_CLOSE and doubt == "warn":
        warnings.warn(f"{result.model.name} may be communication-bound\n{said}", CommunicationBoundWarning, 2)
        return result
    is_bound = "is" if result.step.flagged else "may be"
    change = f"\n{_smallest_change(model, made, example_inputs)}" if advice else ""
    raise AssertionError(f"{result.model.name} {is_bound} communication-bound\n{said}{change}")


def _options(max_comm_share: float | str | None, given: Mapping[str, Any]) -> AnalysisOptions:
    from graphcost.analysis import options_of
    from graphcost.units import parse_share

    options = {name: value for name, value in _project.items() if name not in ("max_comm_share", "on_doubt")}
    options.update({name: value for name, value in given.items() if value is not None})
    limit = parse_share(str(_first(max_comm_share, "max_comm_share", 0.5)))
    return options_of(**options, max_comm_share=limit)


def _first(given: Any, name: str, default: Any) -> Any:
    return given if given is not None else _project.get(name, default)


def _smallest_change(model: Any, options: AnalysisOptions, example_inputs: Any) -> str:
    """One line on what would clear the model, or that nothing alone would."""
    from graphcost.advising import advise_model
    from graphcost.errors import GraphcostError
    from graphcost.units import format_share

    try:
        found = advise_model(model, options, example_inputs)
    except GraphcostError as error:
        return f"  no advice: {error}"
    if not found.advice:
        return "  no single change clears it; `graphcost advise` tells what was tried"
    least = found.advice[0]
    share = format_share(least.outcome.comm_share)
    return f"  would clear it: {least.what} (communication {share}): {least.options}"
