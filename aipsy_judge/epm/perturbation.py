"""Paired perturbations: what one changed factor (the persona's needs, the reply's sincerity) does to a turn."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import MissingExtraError
from .bootstrap import RESAMPLES, SEED, interval, resampled_means
from .space import Floats, Space
from .vectors import Levels, steps

METRICS = ("dE", "alignment", "rubric_only", "magnitude")
# Differences smaller than this are ties: they are rounding.
TIE = 1e-9


@dataclass(frozen=True, slots=True)
class Differences:
    """Statistics of n differences, perturbed minus original.

    share_decreased  Pr(d < 0) over all n; ties count as not decreased
    interval         95 % bootstrap interval of the mean; None with n < 2
    sign_p           one-sided sign test of a decrease, ties left out; None where all are ties
    wilcoxon_p       one-sided Wilcoxon signed-rank test of a decrease, ties left out; None where all are ties
    """

    n: int
    mean: float | None
    median: float | None
    share_decreased: float | None
    decreased: int
    ties: int
    increased: int
    interval: tuple[float, float] | None
    sign_p: float | None
    wilcoxon_p: float | None


@dataclass(frozen=True, slots=True)
class PairedStatistics:
    """One metric: over all pairs, and over the means of the cases the pairs come from.

    undefined   pairs left out because the metric is undefined in one of their halves
    """

    metric: str
    pairs: Differences
    cases: Differences
    undefined: int


def turn_metrics(space: Space, start: Floats, levels: Levels) -> dict[str, Floats]:
    """Four figures of N single turns, each shape (N,), from P_0 (N, D) and levels (N, 2D).

    dE           v . v* with v* = -P_0/|P_0|; nan where P_0 = 0
    alignment    dE / |v|, -1..1; 0 for a step of length 0, as in the trajectory; nan where P_0 = 0
    rubric_only  mean over axes of progress and harm level, each as a share of its top: -1..1, blind to P_0
    magnitude    |v|
    """
    v = steps(space, levels[:, None, :])[:, 0]
    length, deficit = np.linalg.norm(v, axis=1), np.linalg.norm(start, axis=1)
    energy = np.full(len(v), np.nan)
    np.divide(-(v * start).sum(axis=1), deficit, out=energy, where=deficit > 0)
    cosine = np.where(np.isnan(energy), np.nan, 0.0)
    np.divide(energy, length, out=cosine, where=length > 0)
    tops = np.array([max(abs(level) for level in scores) for scores in space.channel_scores])
    shares = (levels / tops).reshape(len(v), -1, 2).sum(axis=2)
    return {"dE": energy, "alignment": cosine, "rubric_only": shares.mean(axis=1), "magnitude": length}


def paired_statistics(
    original: Mapping[str, Floats],
    perturbed: Mapping[str, Floats],
    cases: Sequence[Hashable],
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> list[PairedStatistics]:
    """Statistics of every metric that both sides have; arrays (N,) in the order of the pairs, `cases` their cases.

    Bootstrap over pairs and, apart, over cases; needs scipy (extra `stats`), else MissingExtraError.
    """
    found = []
    for metric in original:
        difference = perturbed[metric] - original[metric]
        defined = ~np.isnan(difference)
        kept = [c for c, d in zip(cases, defined, strict=True) if d]
        found.append(
            PairedStatistics(
                metric=metric,
                pairs=differences(difference[defined], resamples=resamples, seed=seed),
                cases=differences(_case_means(difference[defined], kept), resamples=resamples, seed=seed),
                undefined=int((~defined).sum()),
            )
        )
    return found


def differences(values: Floats, *, resamples: int = RESAMPLES, seed: int = SEED) -> Differences:
    """Statistics of differences (N,); with none of them everything is None."""
    decreased, ties = int((values <= -TIE).sum()), int((np.abs(values) < TIE).sum())
    ends = None
    if len(values) > 1:
        low, high = interval(resampled_means(values[:, None], range(len(values)), resamples=resamples, seed=seed))[:, 0]
        ends = (float(low), float(high))
    some = len(values) > 0
    return Differences(
        n=len(values),
        mean=float(values.mean()) if some else None,
        median=float(np.median(values)) if some else None,
        share_decreased=decreased / len(values) if some else None,
        decreased=decreased,
        ties=ties,
        increased=len(values) - decreased - ties,
        interval=ends,
        sign_p=_sign_p(decreased, len(values) - ties),
        wilcoxon_p=_wilcoxon_p(values),
    )


def _case_means(values: Floats, cases: Sequence[Hashable]) -> Floats:
    groups: dict[Hashable, list[float]] = {}
    for case, value in zip(cases, values, strict=True):
        groups.setdefault(case, []).append(float(value))
    return np.array([np.mean(g) for g in groups.values()])


def _sign_p(decreased: int, untied: int) -> float | None:
    try:
        from scipy.stats import binomtest
    except ImportError as error:
        raise MissingExtraError("scipy", "stats", "the sign test") from error
    return float(binomtest(decreased, untied, alternative="greater").pvalue) if untied else None


def _wilcoxon_p(values: Floats) -> float | None:
    try:
        from scipy.stats import wilcoxon
    except ImportError as error:
        raise MissingExtraError("scipy", "stats", "the Wilcoxon test") from error
    # Rounded, so that equal differences get equal ranks.
    untied = np.round(values[np.abs(values) >= TIE], 9)
    return float(wilcoxon(untied, alternative="less").pvalue) if len(untied) else None
