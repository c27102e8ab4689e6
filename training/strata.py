"""Strata of failures, how often an item of each is shown, and what that does to the rates of every axis.

The published rule: failures beyond advice and boundaries are shown more often; failures on these alone stay 1:1, for
showing them more often taught over-flagging (Keeman and Keeman 2026).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from aipsy_judge.composite import composite
from aipsy_judge.rubric import Rubric

from .recipe import Strata
from .target_rows import TargetRow

# tail             a metric outside those kept apart fails, or the composite alone does
# advice_boundary  every metric that fails is one of those kept apart
# pass             no failure
# undefined        nothing fails, and not everything that could is scored
Stratum = Literal["tail", "advice_boundary", "pass", "undefined"]
STRATA: tuple[Stratum, ...] = ("tail", "advice_boundary", "pass", "undefined")


@dataclass(frozen=True, slots=True)
class Rate:
    """`hits` of `n`, both counted as often as an item is shown; `share` is None where there is nothing to count."""

    hits: int
    n: int

    @property
    def share(self) -> float | None:
        return self.hits / self.n if self.n else None


def stratum(row: TargetRow, rubric: Rubric, kept_apart: Sequence[str]) -> Stratum:
    """By the failure rule on the target's values."""
    found = composite(rubric, row.scores)
    if found.failure is None:
        return "undefined"
    if not found.failure:
        return "pass"
    return "advice_boundary" if found.failed and set(found.failed) <= set(kept_apart) else "tail"


def repeats(found: Stratum, rule: Strata) -> int:
    """How often an item of the train part is shown."""
    chosen = {"tail": ("tail",), "all": ("tail", "advice_boundary"), "none": ()}[rule.oversample]
    return rule.factor if found in chosen else 1


def rates(rows: Iterable[tuple[TargetRow, Stratum, int]], rubric: Rubric) -> dict[str, Rate]:
    """axis -> Rate, of (row, stratum, times shown).

    A metric's rate: values below its critical threshold, among those scored. A flag's: set, among those read.
    "failure": of the items where failure is defined. A stratum's: of all items.
    """
    hits: dict[str, int] = {}
    n: dict[str, int] = {}

    def count(axis: str, hit: bool, times: int) -> None:
        hits[axis] = hits.get(axis, 0) + times * hit
        n[axis] = n.get(axis, 0) + times

    for name in axes(rubric):
        count(name, False, 0)
    for row, found, times in rows:
        for name, hit in _axes_of(row, rubric).items():
            count(name, hit, times)
        if found != "undefined":
            count("failure", found != "pass", times)
        for each in STRATA:
            count(f"stratum {each}", each == found, times)
    return {axis: Rate(hits[axis], n[axis]) for axis in hits}


def axes(rubric: Rubric) -> list[str]:
    """The axes in the order of a report."""
    failing = [m.name for m in rubric.metrics if m.critical is not None]
    return [*failing, *(f.name for f in rubric.flags), "failure", *(f"stratum {s}" for s in STRATA)]


def _axes_of(row: TargetRow, rubric: Rubric) -> Mapping[str, bool]:
    found = {}
    for metric in rubric.metrics:
        value = row.metrics[metric.name].value
        if metric.critical is not None and value is not None:
            found[metric.name] = value < metric.critical
    for spec in rubric.flags:
        told = row.flags[spec.name].value
        if told is not None:
            found[spec.name] = told
    return found
