"""Budgets: absolute limits and allowed growth, each to warn or to fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from graphcost.diffing import METRICS, Snapshot
from graphcost.errors import UsageError
from graphcost.result import Analysis, Finding
from graphcost.units import format_seconds, parse_bytes, parse_count, parse_seconds, parse_share


@dataclass(frozen=True, slots=True)
class BudgetKind:
    """A key of the configuration: the metric it bounds, how an absolute limit is written, what it means."""

    metric: str
    parse: Callable[[str], float] | None
    doc: str


_GROWTH = 'Or growth against the baseline ("+5%"), a list of both, or { warn = ..., fail = ... }.'

BUDGETS: Mapping[str, BudgetKind] = MappingProxyType({
    "max-comm-share": BudgetKind("comm_share", parse_share, f'Largest communication share, e.g. "40%". {_GROWTH}'),
    "max-step": BudgetKind("step_s", parse_seconds, f'Longest predicted step, e.g. "120ms". {_GROWTH}'),
    "max-memory": BudgetKind("peak_bytes", parse_bytes, f'Largest peak memory of a GPU, e.g. "40GB". {_GROWTH}'),
    "max-params": BudgetKind("params", parse_count, f'Most parameters, e.g. "30M". {_GROWTH}'),
    "max-flops": BudgetKind("flops", parse_count, f'Most FLOPs of a forward pass, e.g. "10T". {_GROWTH}'),
    "max-regression": BudgetKind("step_s", None, 'Most that the step may grow against the baseline, e.g. "5%".'),
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Budget:
    """One limit. ``relative``: a share by which the metric may grow. ``level``: fail or warn."""

    key: str
    limit: float
    relative: bool
    level: str = "fail"

    @property
    def metric(self) -> str:
        """Key of ``METRICS``."""
        return BUDGETS[self.key].metric


def parse_limits(key: str, value: object) -> tuple[Budget, ...]:
    """The budgets that a key's value states; raises ``UsageError`` for what is none.

    >>> parse_limits("max-step", {"warn": "+5%", "fail": "120ms"})[0]
    Budget(key='max-step', limit=0.05, relative=True, level='warn')
    """
    if isinstance(value, Mapping):
        wrong = [name for name in value if name not in ("warn", "fail")]
        if wrong or not value:
            raise UsageError(
                f"{wrong[0] if wrong else 'an empty table'!r}: a table of limits has the keys warn, fail"
            )
        return tuple(budget for level, part in value.items() for budget in _limits(key, part, str(level)))
    return tuple(_limits(key, value, "fail"))


def _limits(key: str, value: object, level: str) -> list[Budget]:
    items = value if isinstance(value, list) else [value]
    if not items:
        raise UsageError("an empty list states no limit")
    return [_limit(key, item, level) for item in items]


def _limit(key: str, value: object, level: str) -> Budget:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise UsageError(f"{value!r} is not a limit; write a string such as {_example(key)}")
    text = str(value).strip()
    parse = BUDGETS[key].parse
    if parse is None or text.startswith("+"):
        return Budget(key, _growth(text.removeprefix("+")), relative=True, level=level)
    return Budget(key, parse(text), relative=False, level=level)


def _growth(text: str) -> float:
    """A share that may be over 100 %."""
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise UsageError(f"{text!r} is not a growth; write it like 5% or +5%")
    return value


def _example(key: str) -> str:
    return BUDGETS[key].doc.partition("e.g. ")[2].partition(".")[0]


def judge(budget: Budget, head: Snapshot, base: Snapshot | None, result: Analysis) -> Finding | None:
    """The finding where the model is strictly over the budget; None within it, or where growth has no base.

    The predicted value is compared, not its interval: a budget on a prediction is broken by
    the prediction. The message gives the interval.
    """
    metric = METRICS[budget.metric]
    now = head.metrics[budget.metric]
    level = "error" if budget.level == "fail" else "warning"
    interval = ""
    if budget.metric == "step_s" and result.step.step_low_s != result.step.step_high_s:
        low, high = format_seconds(result.step.step_low_s), format_seconds(result.step.step_high_s)
        interval = f" (80 % interval {low} to {high})"
    if not budget.relative:
        if now <= budget.limit:
            return None
        message = f"{metric.label} {metric.show(now)}{interval} is over the budget {metric.show(budget.limit)}"
        return Finding("budget", level, message, budget.key)
    before = None if base is None else base.metrics.get(budget.metric)
    if before is None or not metric.differs(before, now) or now <= before * (1 + budget.limit):
        return None
    grown = f"+{(now - before) / before * 100:.1f} %" if before else "from nothing"
    message = (
        f"{metric.label} {metric.show(before)} -> {metric.show(now)} ({grown}) has grown by more than "
        f"{budget.limit * 100:g} %"
    )
    return Finding("regression", level, message, budget.key)
