"""A figure for two raters: from a library, its interval from its closed form over resampled score pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .estimate import Beside, Estimate, Interval, undefined
from .library import LIBRARY_ITEMS, confirmed
from .pairs import Ints, Pairs, raw_agreement
from .resample import CELLS_AT_ONCE, FEWEST_GROUPS, Bootstrap, Floats, draws, interval, resampled_sums

DENSE_LIMIT = 20_000_000  # numbers in a groups x cells table: 160 MB


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The C distinct (x, y) of some pairs. A statistic is a function of how often each occurs.

    x, y              (C,) the scores of each cell
    x_code, y_code    (C,) their places among `x_values` (Kx,) and `y_values` (Ky,), both rising
    """

    x: Floats
    y: Floats
    x_code: Ints
    y_code: Ints
    x_values: Floats
    y_values: Floats
    cell: Ints
    pairs: Pairs

    def counts(self) -> Floats:
        """(1, C) weighted number of items a cell."""
        return np.bincount(self.cell, self.pairs.weight, minlength=len(self.x)).astype(np.float64)[None]

    def resampled(self, bootstrap: Bootstrap) -> Iterator[Floats]:
        """Counts (b, C) of each resample, in chunks."""
        pairs, n_cells = self.pairs, len(self.x)
        if pairs.n_groups * n_cells <= DENSE_LIMIT:
            key = pairs.group.astype(np.int64) * n_cells + self.cell
            sums = np.bincount(key, pairs.weight, minlength=pairs.n_groups * n_cells).astype(np.float64)
            yield from resampled_sums(sums.reshape(pairs.n_groups, n_cells), bootstrap)
            return
        # Nearly every item is a cell of its own (scores with decimals): spread the draws over the items instead.
        drawn, order = draws(pairs.n_groups, bootstrap.resamples, bootstrap.seed), np.argsort(self.cell, kind="stable")
        starts = np.searchsorted(self.cell[order], np.arange(n_cells))
        step = max(1, CELLS_AT_ONCE // len(pairs))
        for start in range(0, bootstrap.resamples, step):
            weight = drawn[start : start + step][:, pairs.group[order]] * pairs.weight[order]
            yield np.add.reduceat(weight, starts, axis=1)


def cells(pairs: Pairs) -> Cells:
    x_values, x_of = np.unique(pairs.x, return_inverse=True)
    y_values, y_of = np.unique(pairs.y, return_inverse=True)
    keys, cell = np.unique(x_of * max(1, len(y_values)) + y_of, return_inverse=True)
    x_code, y_code = np.divmod(keys, max(1, len(y_values)))
    return Cells(x_values[x_code], y_values[y_code], x_code, y_code, x_values, y_values, cell, pairs)


@dataclass(frozen=True, slots=True)
class PairStatistic:
    """A figure for two raters.

    kernel       its closed form: counts (B, C) over the cells -> (B,), NaN where undefined; intervals rest on it
    why_not      why it is undefined for these pairs, or None
    library      (name, function): the figure itself, from a well-kept library; None where the kernel is all there is
    fallback     an interval for where resampling cannot tell (a share of 0 or 1, or of few cases)
    case_groups  how many groups hold a case, for a figure made of cases: an interval of three failures is one of three
                 conversations, in however many others nothing fails. None: every group counts that holds a pair
    beside       what must be seen with it
    """

    name: str
    form: str
    kernel: Callable[[Cells, Floats], Floats]
    why_not: Callable[[Pairs], str | None]
    library: tuple[str, Callable[[Pairs], float]] | None = None
    fallback: Callable[[Pairs, Interval], Interval] | None = None
    case_groups: Callable[[Pairs], int] | None = None
    beside: Callable[[Pairs], dict[str, Beside]] = raw_agreement


def estimate_pair(pairs: Pairs, statistic: PairStatistic, bootstrap: Bootstrap | None = None) -> Estimate:
    """One statistic with its interval (1,000 resamples unless told otherwise)."""
    return estimate_pairs(pairs, [statistic], bootstrap or Bootstrap())[0]


def estimate_pairs(
    pairs: Pairs,
    statistics: Sequence[PairStatistic],
    bootstrap: Bootstrap,
) -> list[Estimate]:
    """Each statistic with its interval; all from the same resamples."""
    if len(pairs) == 0:
        reason = "no item was scored by both"
        return [undefined(s.name, s.form, reason, n=0, dropped=pairs.dropped) for s in statistics]
    table = cells(pairs)
    reasons = [s.why_not(pairs) for s in statistics]
    wanted = [s for s, reason in zip(statistics, reasons, strict=True) if reason is None]
    found = _replicates(table, wanted, bootstrap)
    return [
        undefined(s.name, s.form, reason, n=len(pairs), dropped=pairs.dropped, **s.beside(pairs))
        if reason is not None
        else _estimate(table, s, next(found), bootstrap)
        for s, reason in zip(statistics, reasons, strict=True)
    ]


def _replicates(table: Cells, statistics: Sequence[PairStatistic], bootstrap: Bootstrap) -> Iterator[Floats]:
    """(B,) per statistic."""
    kept: list[list[Floats]] = [[np.empty(0)] for _ in statistics]
    if statistics and bootstrap.resamples and table.pairs.occupied >= FEWEST_GROUPS:
        for counts in table.resampled(bootstrap):
            with np.errstate(divide="ignore", invalid="ignore"):
                for statistic, values in zip(statistics, kept, strict=True):
                    values.append(statistic.kernel(table, counts))
    return iter([np.concatenate(values) for values in kept])


def _estimate(table: Cells, statistic: PairStatistic, found: Floats, bootstrap: Bootstrap) -> Estimate:
    pairs, name, beside = table.pairs, statistic.name, statistic.beside(table.pairs)
    form = f"{statistic.form}, weighted by inclusion" if pairs.weighted else statistic.form
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(statistic.kernel(table, table.counts())[0])
    if not np.isfinite(value):
        return undefined(name, form, "its denominator is 0", n=len(pairs), dropped=pairs.dropped, **beside)
    # The libraries take no weights, and minutes for a table this large.
    if statistic.library is not None and not pairs.weighted and len(pairs) <= LIBRARY_ITEMS:
        library, function = statistic.library
        value = confirmed(float(function(pairs)), value, library)
    if statistic.case_groups is None:
        spread = interval(found, pairs.occupied, bootstrap)
    else:
        spread = interval(found, statistic.case_groups(pairs), bootstrap, of_cases=True)
    if spread is not None and spread.low is None and statistic.fallback is not None:
        spread = statistic.fallback(pairs, spread)
    return Estimate(name, form, value, len(pairs), None, pairs.dropped, spread, beside)
