"""Intraclass correlation, two-way model: how much of the spread of scores is due to the items.

1: raters agree on every item · 0: the items explain nothing beyond chance · below 0: raters agree less than chance.
A (absolute agreement) lets a lenient rater cost; C (consistency) forgives a constant shift.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np

from .estimate import Estimate, undefined
from .library import LIBRARY_ITEMS, confirmed, stats_library
from .pair_statistic import Cells, PairStatistic
from .pairs import Ints, Pairs, numbered
from .resample import Bootstrap, Floats, interval, replicates

Form = Literal["A,1", "C,1", "A,k"]
FORMS: tuple[Form, ...] = ("A,1", "C,1", "A,k")
FEWEST_ITEMS = 3


def icc(
    scores: Sequence[Sequence[float]] | Floats,
    *,
    form: Form = "A,1",
    groups: Sequence[int] | Ints | None = None,
    n_groups: int | None = None,
    bootstrap: Bootstrap | None = None,
) -> Estimate:
    """ICC(A,1), ICC(C,1) or ICC(A,k) of (I, R) scores, NaN where there is none; -inf < value <= 1.

    Items that any rater did not score are left out (listwise) and counted as dropped. With MSR, MSC, MSE the mean
    squares of items, raters and rest, n items and k raters (McGraw and Wong 1996, table 4; Shrout and Fleiss 1979:
    A,1 is their ICC(2,1), C,1 their ICC(3,1), A,k their ICC(2,k)):

        A,1  (MSR - MSE) / (MSR + (k - 1) MSE + k (MSC - MSE) / n)
        C,1  (MSR - MSE) / (MSR + (k - 1) MSE)
        A,k  (MSR - MSE) / (MSR + (MSC - MSE) / n)

    Undefined for fewer than 3 items, or scores that do not vary. The figure is pingouin's.

    >>> icc([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]).value.__round__(2)
    0.29
    """
    bootstrap = bootstrap or Bootstrap()
    table = np.asarray(scores, dtype=np.float64)
    group, n_groups = numbered(len(table), groups, n_groups)
    whole = ~np.isnan(table).any(axis=1)
    table, group, dropped = table[whole], group[whole], int((~whole).sum())
    name, full = _name(form), f"ICC({form})"
    if table.shape[1] < 2:
        return undefined(name, full, "fewer than 2 raters", n=len(table), dropped=dropped)
    if (reason := _why_not(table)) is not None:
        return undefined(name, full, reason, n=len(table), dropped=dropped, raters=table.shape[1])
    features = _features(table - table[0, 0])
    sums: Floats = np.stack([np.bincount(group, c, minlength=n_groups) for c in features.T], axis=1).astype(np.float64)
    closed = float(_icc_of_sums(sums.sum(axis=0)[None], form)[0])
    if not np.isfinite(closed):
        return undefined(name, full, "the items do not differ", n=len(table), dropped=dropped, raters=table.shape[1])
    value = confirmed(_pingouin(table)[form], closed, "pingouin") if len(table) <= LIBRARY_ITEMS else closed
    found = replicates(sums, lambda s: _icc_of_sums(s, form), bootstrap)
    spread = interval(found, len(np.unique(group)), bootstrap)
    return Estimate(name, full, value, len(table), None, dropped, spread, {"raters": table.shape[1]})


def pair_icc(form: Form) -> PairStatistic:
    """The same for two raters."""
    return PairStatistic(
        _name(form),
        f"ICC({form})",
        lambda table, counts: _icc_of_cells(table, counts, form),
        lambda pairs: _why_not(np.stack([pairs.x, pairs.y], axis=1)),
        ("pingouin", lambda pairs: _pingouin_of_pairs(pairs)[form]),
    )


def _name(form: Form) -> str:
    return "icc" if form == "A,1" else f"icc_{form.lower().replace(',', '')}"


def _why_not(table: Floats) -> str | None:
    if len(table) < FEWEST_ITEMS:
        return f"fewer than {FEWEST_ITEMS} items"
    if np.ptp(table) == 0:
        return f"no variation: every score is {table[0, 0]:g}"
    means = table.sum(axis=1)
    if np.ptp(means) == 0 and np.ptp(table, axis=0).max() == 0:
        return "no rater's scores vary"
    return None


def _features(table: Floats) -> Floats:
    """(I, R + 3): 1, square of the item's sum, sum of its squares, the R scores. Their sums are all an ICC needs."""
    total = table.sum(axis=1)
    return np.column_stack([np.ones(len(table)), total**2, (table**2).sum(axis=1), table])


def _icc_of_sums(sums: Floats, form: Form) -> Floats:
    n, squares_of_sums, squares = sums[:, 0], sums[:, 1], sums[:, 2]
    raters = sums[:, 3:]
    k = raters.shape[1]
    correction = raters.sum(axis=1) ** 2 / (n * k)
    between = squares_of_sums / k - correction
    columns = (raters**2).sum(axis=1) / n - correction
    msr = between / (n - 1)
    msc = columns / (k - 1)
    mse = (squares - correction - between - columns) / ((n - 1) * (k - 1))
    below = {
        "A,1": msr + (k - 1) * mse + k * (msc - mse) / n,
        "C,1": msr + (k - 1) * mse,
        "A,k": msr + (msc - mse) / n,
    }[form]
    # Sums of squares carry rounding errors of this size; a denominator within them is a zero.
    # Below 0 (which A,k can come to) it is no variance either.
    zero = below <= 1e-12 * np.maximum(1.0, squares / n)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.where(zero, np.nan, (msr - mse) / below)
    return found


def _icc_of_cells(table: Cells, counts: Floats, form: Form) -> Floats:
    start = table.x[0]
    return _icc_of_sums(counts @ _features(np.stack([table.x - start, table.y - start], axis=1)), form)


@lru_cache(maxsize=1)
def _pingouin_of_pairs(pairs: Pairs) -> dict[Form, float]:
    """One call gives all forms; they are asked for one after another."""
    return _pingouin(np.stack([pairs.x, pairs.y], axis=1))


def _pingouin(table: Floats) -> dict[Form, float]:
    n, k = table.shape
    frame = stats_library("pandas").DataFrame(
        {"item": np.repeat(np.arange(n), k), "rater": np.tile(np.arange(k), n), "score": table.ravel()}
    )
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # its F tests divide by a residual of 0, which are not used here
        found = stats_library("pingouin").intraclass_corr(frame, targets="item", raters="rater", ratings="score")
    rows = found.set_index("Type")["ICC"]
    older: dict[Form, str] = {"A,1": "ICC2", "C,1": "ICC3", "A,k": "ICC2k"}  # before pingouin 0.6
    newer = f"ICC({FORMS[0]})" in rows.index
    return {form: float(rows[f"ICC({form})" if newer else older[form]]) for form in FORMS}
