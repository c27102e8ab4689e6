"""Figures that are functions of sums over groups: shares, differences of means, differences of those."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Literal

import numpy as np

from .detection import wilson
from .estimate import Beside, Estimate, undefined
from .library import stats_library
from .pairs import Ints
from .resample import Bootstrap, Floats, Kernel, interval, resampled_sums

Side = Literal["both", "above", "below"]


class GroupSums:
    """Sums (G, P) of (I, P) values over the items of each group, drawn again once for all figures made of them.

    `groups`: (I,) numbers 0..n_groups-1.
    """

    def __init__(self, values: Floats, groups: Ints, n_groups: int, bootstrap: Bootstrap) -> None:
        columns = [np.bincount(groups, values[:, p], minlength=n_groups) for p in range(values.shape[1])]
        self.sums: Floats = np.stack(columns, axis=1).astype(np.float64)
        self.bootstrap = bootstrap

    @cached_property
    def _resampled(self) -> Floats:
        """(B, P)."""
        return np.concatenate(list(resampled_sums(self.sums, self.bootstrap)))

    def estimate(
        self,
        name: str,
        form: str,
        kernel: Kernel,
        *,
        n: int,
        otherwise: str,
        dropped: int = 0,
        cases: int | None = None,
        share: bool = False,
        beside: Mapping[str, Beside] | None = None,
    ) -> Estimate:
        """The figure that `kernel` makes of the sums (b, P), with its interval.

        otherwise  why it is undefined, should it be
        cases      the column that counts its cases: only groups that hold one count as groups
        share      it is a share of cases: where all resamples agree on 0 or 1, Wilson's interval over the groups
        """
        occupied = int(((self.sums != 0).any(axis=1) if cases is None else self.sums[:, cases] > 0).sum())
        with np.errstate(divide="ignore", invalid="ignore"):
            value = float(kernel(self.sums.sum(axis=0)[None])[0])
            if not np.isfinite(value):
                return undefined(name, form, otherwise, n=n, dropped=dropped, **(beside or {}))
            found = kernel(self._resampled) if self.bootstrap.resamples else np.empty(0)
        spread = interval(found, occupied, self.bootstrap, of_cases=cases is not None)
        if spread is not None and spread.low is None and share and value in (0.0, 1.0):
            spread = wilson(value, occupied, spread)
        return Estimate(name, form, value, n, None, dropped, spread, beside or {})


def ratio(numerator: int, denominator: int) -> Kernel:
    """The kernel sum[numerator] / sum[denominator]."""
    return lambda sums: sums[:, numerator] / sums[:, denominator]


def p_value(estimate: Estimate, *, side: Side = "both") -> float | None:
    """Probability of a figure this far from 0 if it truly were 0: t = value / bootstrap standard error, groups - 1
    degrees of freedom, the error widened by sqrt(groups / (groups - 1)) as the interval is (resample.interval).
    `side`: "both", "above" (only a positive figure counts against 0) or "below".

    Where every group gives the very same figure there is no standard error; the sign test over the groups then says
    how surprising that is. None where there is nothing to test.
    """
    if estimate.value is None or estimate.interval is None:
        return None
    groups, se = estimate.interval.groups, estimate.interval.se
    if se is None:
        alike = (estimate.interval.reason or "").startswith("every resample")
        if not alike or estimate.value == 0:
            return 1.0 if alike else None
        above = 0.5**groups if estimate.value > 0 else 1.0
        below = 0.5**groups if estimate.value < 0 else 1.0
    else:
        t = stats_library("scipy.stats").t
        far = estimate.value / (se * (groups / (groups - 1)) ** 0.5)
        above = float(t.sf(far, groups - 1))
        below = float(t.cdf(far, groups - 1))
    return {"above": above, "below": below, "both": min(1.0, 2 * min(above, below))}[side]
