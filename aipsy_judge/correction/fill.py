"""Fill in what a judge did not score by regression on what was scored: one rule for fitting and for applying.

The linear rungs applied to a row that was filled in this way give what they would give if they had been refitted
without the missing judge, as far as the scores are jointly normal. No expert's rating enters, so nothing leaks
between folds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .numbers import Bools, Floats

# Share of each covariance taken away, so that judges who always agree do not make the regression singular.
TOWARDS_INDEPENDENT = 0.02
LEAST_VARIANCE = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Fill:
    """Means (P,) and covariance (P, P) of P score columns over the items that judges rated."""

    means: Floats
    covariance: Floats

    def __call__(self, table: Floats) -> Floats:
        """(I, P) scores with NaN -> the same without. A row with no score at all becomes the means."""
        filled = np.array(table, dtype=np.float64)
        missing = np.isnan(filled)
        patterns, of_row = np.unique(missing, axis=0, return_inverse=True)
        for number, gone in enumerate(patterns):
            if gone.any():
                rows = of_row.reshape(-1) == number
                filled[np.ix_(rows, gone)] = self._expected(filled[np.ix_(rows, ~gone)], gone)
        return filled

    def _expected(self, present: Floats, gone: Bools) -> Floats:
        here = ~gone
        slopes = np.linalg.solve(self.covariance[np.ix_(here, here)], self.covariance[np.ix_(here, gone)])
        found: Floats = self.means[gone] + (present - self.means[here]) @ slopes
        return found


def learn_fill(table: Floats) -> Fill:
    """Means and covariances over whatever pairs of columns were scored together."""
    scored = ~np.isnan(table)
    count = np.maximum(scored.sum(axis=0), 1)
    means = np.where(scored, table, 0).sum(axis=0) / count
    deviation = np.where(scored, table - means, 0)
    together = scored.T.astype(np.float64) @ scored.astype(np.float64)
    covariance = deviation.T @ deviation / np.maximum(together, 1)
    return Fill(means, _positive(covariance))


def _positive(covariance: Floats) -> Floats:
    """The nearest matrix that is a covariance (pairwise ones need not be), slightly shrunk to its diagonal."""
    values, vectors = np.linalg.eigh(covariance)
    proper = (vectors * np.maximum(values, 0)) @ vectors.T
    shrunk: Floats = (1 - TOWARDS_INDEPENDENT) * proper
    np.fill_diagonal(shrunk, np.diag(proper) + LEAST_VARIANCE)
    return shrunk
