"""Shrunken linear regression, many folds at once, with the amount of shrinkage averaged by its evidence.

y = X b + noise, b ~ N(0, V_h), noise ~ N(0, s^2), for a handful of V_h and a grid of s; the posterior mean of b is
averaged over (h, s) by marginal likelihood (MacKay 1992, Bayesian Interpolation, Neural Computation 4; closed form
for every V_h and s from sums of squares). Nothing is tuned on the data it is judged by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .numbers import Floats

# Standard deviations of the noise that are considered, on the unit scale: experts are rarely nearer than .03 and a
# rating without any information lies about .3 off. Log-normal prior about .2, a factor of two either way.
NOISE = np.geomspace(0.03, 0.45, 9)
NOISE_PRIOR = -0.5 * (np.log(NOISE / 0.2) / 0.7) ** 2


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """One prior covariance V = root rootT of the coefficients, (K, Q), and how likely it is beforehand (log)."""

    root: Floats
    log_share: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Sums of squares of F training sets: XtX (F, K, K), Xty (F, K), yty (F,), n (F,)."""

    xx: Floats
    xy: Floats
    yy: Floats
    n: Floats


def sums_without(x: Floats, y: Floats, out: Floats) -> Sums:
    """Sums over the rows of x (n, K), y (n,) that each of F sets keeps; `out` (F, n) is 1 for a row left out."""
    keep = 1.0 - out
    return Sums(
        xx=np.stack([x.T @ (x * row[:, None]) for row in keep]),
        xy=keep @ (x * y[:, None]),
        yy=keep @ (y * y),
        n=keep.sum(axis=1),
    )


def posterior_mean(sums: Sums, spreads: Sequence[Spread]) -> Floats:
    """(F, K) coefficients."""
    return averaged([posteriors(sums, spreads)])


def posteriors(sums: Sums, spreads: Sequence[Spread]) -> tuple[Floats, Floats]:
    """Log evidence (F, H) and posterior mean (F, H, K) under each of H = spreads x noises."""
    log_evidence, means = zip(*(_one_spread(sums, s) for s in spreads), strict=True)
    return np.concatenate(log_evidence, axis=1), np.concatenate(means, axis=1)


def averaged(parts: Sequence[tuple[Floats, Floats]]) -> Floats:
    """(F, K): coefficients (F, H, K) of all parts, averaged by their evidence (F, H).

    Evidence may be compared across parts where they explain the same ratings.
    """
    evidence = np.concatenate([e for e, _ in parts], axis=1)
    weight = np.exp(evidence - evidence.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    found: Floats = np.einsum("fq,fqk->fk", weight, np.concatenate([m for _, m in parts], axis=1))
    return found


def _one_spread(sums: Sums, spread: Spread) -> tuple[Floats, Floats]:
    """Log evidence (F, S) and posterior mean (F, S, K) for each noise."""
    size, turn = np.linalg.eigh(spread.root.T @ sums.xx @ spread.root)
    size = np.maximum(size, 0.0)
    pull = np.einsum("fij,fi->fj", turn, sums.xy @ spread.root)
    variance = NOISE**2
    grow = 1.0 + size[:, None, :] / variance[None, :, None]
    step = pull[:, None, :] / variance[None, :, None] / grow
    fitted = (step * pull[:, None, :] / variance[None, :, None]).sum(axis=-1)
    log_evidence = (
        spread.log_share
        + NOISE_PRIOR
        - sums.n[:, None] * np.log(NOISE)
        - 0.5 * (sums.yy[:, None] / variance - fitted)
        - 0.5 * np.log(grow).sum(axis=-1)
    )
    return log_evidence, step @ turn.transpose(0, 2, 1) @ spread.root.T
