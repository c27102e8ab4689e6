"""The ratings table in memory: one row a rating, held as columns.

A rating is scored, N/A or unscored; the last two hold no number (NaN stands in `score` so that arithmetic on them
cannot pass unnoticed, and never leaves this package as a figure). Axes: `N` rows, `I` items, `R` raters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import RatingsError

Kind = Literal["expert", "adjudicated", "crowd", "judge"]
KINDS: tuple[Kind, ...] = ("expert", "adjudicated", "crowd", "judge")

STATUSES = ("scored", "na", "unscored")
SCORED, NA, UNSCORED = 0, 1, 2

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """A column of words: `names[codes[i]]`; code -1 where the cell is empty."""

    names: tuple[str, ...]
    codes: Ints

    def __getitem__(self, position: int) -> str | None:
        code = int(self.codes[position])
        return None if code < 0 else self.names[code]

    def is_empty(self) -> bool:
        return not bool((self.codes >= 0).any())


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """The scores of one metric, items x raters.

    items     the ids of all items of the table
    index     (I,) places of these items in `items`
    values    (I, R) score, NaN where there is none
    na        (I, R) the rater said: does not apply
    unscored  (I, R) the rater was asked and no score could be had
    A cell that is neither scored, na nor unscored was never asked; `missing` is unscored or never asked.
    """

    metric: str
    raters: tuple[str, ...]
    items: tuple[str, ...]
    index: Ints
    values: Floats
    na: Bools
    unscored: Bools

    @property
    def item_ids(self) -> tuple[str, ...]:
        """The ids of the I items."""
        return tuple(map(self.items.__getitem__, self.index.tolist()))

    @property
    def scored(self) -> Bools:
        return ~np.isnan(self.values)

    @property
    def missing(self) -> Bools:
        return ~self.scored & ~self.na

    def column(self, rater: str) -> Floats:
        """(I,) scores of one rater, NaN where there is none."""
        return self.values[:, self.raters.index(rater)]


@dataclass(frozen=True, eq=False)
class Ratings:
    """A checked ratings table. Make one with `read_ratings` or `ratings_from_rows`.

    item, rater, metric  columns of N words, never empty; (item, rater, metric) is unique
    score, status        (N,) score on the metric's scale or NaN; SCORED, NA or UNSCORED
    kinds, scales        rater -> kind; metric -> (minimum, maximum), one scale a metric
    conversation, scenario, generator, generator_family   columns of I words, what is known of each item
    turn                 (I,) number of the assistant message from 1, or -1
    inclusion            (I,) probability with which the item was drawn for the anchors, in (0, 1]; NaN where unknown
    run                  column of N words, the run a rating came from
    warnings             what the reader took for granted
    """

    item: Labels
    rater: Labels
    metric: Labels
    score: Floats
    status: NDArray[np.int8]
    kinds: Mapping[str, Kind]
    scales: Mapping[str, tuple[float, float]]
    conversation: Labels
    turn: Ints
    inclusion: Floats
    scenario: Labels
    generator: Labels
    generator_family: Labels
    run: Labels
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.score)

    @property
    def items(self) -> tuple[str, ...]:
        """The I item ids, in order of first appearance."""
        return self.item.names

    @property
    def raters(self) -> tuple[str, ...]:
        return self.rater.names

    @property
    def metrics(self) -> tuple[str, ...]:
        return self.metric.names

    def of_kind(self, *kinds: Kind) -> tuple[str, ...]:
        """The raters of these kinds, in order of first appearance."""
        return tuple(r for r in self.raters if self.kinds[r] in kinds)

    @property
    def judges(self) -> tuple[str, ...]:
        return self.of_kind("judge")

    def counts(self) -> dict[str, int]:
        """Rows per status: nothing is left out of a summary."""
        return {name: int((self.status == code).sum()) for code, name in enumerate(STATUSES)}

    def matrix(self, metric: str, raters: Sequence[str] | None = None) -> Matrix:
        """Scores of `metric`, items x raters, over the items that at least one of the raters has a row for.

        Raises RatingsError on an unknown metric or rater.
        """
        names = self.raters if raters is None else tuple(raters)
        place = np.full(len(self.raters), -1, dtype=np.int32)
        place[[self._code(self.rater, "rater", r) for r in names]] = np.arange(len(names), dtype=np.int32)
        rows = self._rows_of_metrics[self._code(self.metric, "metric", metric)]
        rows = rows[place[self.rater.codes[rows]] >= 0]
        index, item = np.unique(self.item.codes[rows], return_inverse=True)
        column, status = place[self.rater.codes[rows]], self.status[rows]
        values = np.full((len(index), len(names)), np.nan)
        values[item, column] = self.score[rows]
        na, unscored = np.zeros(values.shape, dtype=bool), np.zeros(values.shape, dtype=bool)
        na[item, column] = status == NA
        unscored[item, column] = status == UNSCORED
        return Matrix(metric, names, self.items, index.astype(np.int32), values, na, unscored)

    @cached_property
    def _rows_of_metrics(self) -> tuple[NDArray[np.intp], ...]:
        """The rows of each metric, so that a matrix need not look through all of them."""
        order = np.argsort(self.metric.codes, kind="stable")
        ends = np.searchsorted(self.metric.codes[order], np.arange(1, len(self.metrics)))
        return tuple(np.split(order, ends))

    def groups(self, by: Literal["conversation", "scenario", "item"] = "conversation") -> Ints:
        """(I,) number of the group each item belongs to: what is resampled and split together.

        An item without a conversation (or scenario) is a group of its own.
        """
        codes = np.full(len(self.items), -1, dtype=np.int32)
        if by != "item":
            codes = (self.conversation if by == "conversation" else self.scenario).codes
        alone = -1 - np.arange(len(self.items), dtype=np.int32)
        return np.unique(np.where(codes >= 0, codes, alone), return_inverse=True)[1].astype(np.int32)

    def subset(
        self,
        *,
        metrics: Iterable[str] | None = None,
        raters: Iterable[str] | None = None,
        items: Bools | None = None,
    ) -> Ratings:
        """The rows of these metrics, raters and items (`items`: (I,) mask). Items keep their places."""
        keep = np.ones(len(self), dtype=bool)
        if metrics is not None:
            keep &= np.isin(self.metric.codes, [self._code(self.metric, "metric", m) for m in metrics])
        if raters is not None:
            keep &= np.isin(self.rater.codes, [self._code(self.rater, "rater", r) for r in raters])
        if items is not None:
            keep &= items[self.item.codes]
        return self._kept(keep)

    def without(self, raters: Iterable[str], items: Bools) -> Ratings:
        """All rows but what these raters said of these items (`items`: (I,) mask). Items keep their places."""
        theirs = np.isin(self.rater.codes, [self._code(self.rater, "rater", r) for r in raters])
        return self._kept(~(theirs & items[self.item.codes]))

    def _kept(self, keep: Bools) -> Ratings:
        return replace(
            self,
            item=Labels(self.item.names, self.item.codes[keep]),
            rater=_narrow(self.rater, keep),
            metric=_narrow(self.metric, keep),
            score=self.score[keep],
            status=self.status[keep],
            run=Labels(self.run.names, self.run.codes[keep]),
        )

    def with_warnings(self, warnings: Iterable[str]) -> Ratings:
        """The same table with these warnings before its own."""
        return replace(self, warnings=(*warnings, *self.warnings))

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every rating as a row of plain values, None where a cell is empty; `ratings_from_rows` reads it back."""
        for n in range(len(self)):
            item, metric, rater = int(self.item.codes[n]), str(self.metric[n]), str(self.rater[n])
            status = int(self.status[n])
            yield {
                "item_id": self.items[item],
                "rater": rater,
                "rater_kind": self.kinds[rater],
                "metric": metric,
                "score": float(self.score[n]) if status == SCORED else None,
                "status": STATUSES[status],
                "scale_min": self.scales[metric][0],
                "scale_max": self.scales[metric][1],
                "conversation": self.conversation[item],
                "turn": int(self.turn[item]) if self.turn[item] > 0 else None,
                "scenario": self.scenario[item],
                "generator": self.generator[item],
                "generator_family": self.generator_family[item],
                "inclusion": float(self.inclusion[item]) if not np.isnan(self.inclusion[item]) else None,
                "run": self.run[n],
            }

    @staticmethod
    def _code(labels: Labels, what: str, name: str) -> int:
        try:
            return labels.names.index(name)
        except ValueError as error:
            raise RatingsError(f"no {what} {name!r} in the table; there are: {', '.join(labels.names)}") from error


def _narrow(labels: Labels, keep: Bools) -> Labels:
    """The labels of the kept rows, names that no longer occur left out, order kept."""
    used, codes = np.unique(labels.codes[keep], return_inverse=True)
    return Labels(tuple(labels.names[i] for i in used), codes.astype(np.int32))
