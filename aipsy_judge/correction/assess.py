"""What each way to a value would have given on anchors that took no part in it: nested, folds by conversation.

An outer loop leaves conversations out; inside, everything is fitted anew from the rest, the blend's own folds
included. The figures of a correction come from here and never from the anchors it was fitted on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .failure import failure_probability
from .families import bias_of, family_bias
from .folds import FEWEST_GROUPS, OUTER_FOLDS, fold_of
from .ladder import Anchors
from .metric_fit import FEWEST_ANCHORS, Basis, MetricFit, Panel, fit_metric
from .numbers import Floats, Ints
from .published import published_weights

BLEND, BY_FAMILY = "blend", "blend, bias by family"
# Few anchors are precious: then more folds, each leaving out fewer.
MANY = 60
# What is left of the fewest anchors that are fitted at all (5, in 3 conversations) when one fold is taken out.
LEFT = (2, 2)


@dataclass(frozen=True, slots=True, eq=False)
class OutOfFold:
    """values: way -> (n,), unit scale, cut to it; p_fail (n,)."""

    values: dict[str, Floats]
    p_fail: Floats


def out_of_fold(basis: Basis, anchors: Anchors, *, seed: int, only: str | None, family: Ints | None) -> OutOfFold:
    """Every rival, every rung, the blend. `family` (n,): the bias by generator family too."""
    fold = fold_of(anchors.groups, OUTER_FOLDS if len(anchors) >= MANY else 2 * OUTER_FOLDS, seed + 1)
    values: dict[str, Floats] = {}
    p_fail = np.empty(len(anchors))
    for one in range(int(fold.max()) + 1):
        test = fold == one
        train, rest = anchors.rows(~test), anchors.rows(test)
        fit = refit(basis, train, seed=seed, only=only, fewest=LEFT)
        found = _rivals(train, rest) | _own(fit, rest)
        if family is not None and fit.enough:
            residuals = train.expert - fit.ladder.blended_out_of_fold
            bias = family_bias(residuals, family[~test], int(family.max()) + 1)
            found[BY_FAMILY] = found[BLEND] + bias_of(family[test], bias)
        for name, value in found.items():
            values.setdefault(name, np.full(len(anchors), np.nan))[test] = np.clip(value, 0, 1)
        uncut = fit.uncut(rest.judges, rest.others)
        p_fail[test] = failure_probability(basis.design, fit.failure, uncut, rest.judges, rest.others, anchors.cut)
    return OutOfFold({k: v for k, v in values.items() if not np.isnan(v).any()}, p_fail)


def refit(
    basis: Basis, anchors: Anchors, *, seed: int, only: str | None, fewest: tuple[int, int] | None = None
) -> MetricFit:
    """`fit_metric` on anchors that are filled already."""
    return fit_metric(
        basis,
        Panel(anchors.judges, anchors.others),
        anchors.expert,
        anchors.fails,
        cut=anchors.cut,
        groups=anchors.groups,
        weights=anchors.weights,
        seed=seed,
        only=only,
        fewest=fewest or (FEWEST_ANCHORS, FEWEST_GROUPS),
    )


def _own(fit: MetricFit, rest: Anchors) -> dict[str, Floats]:
    columns = fit.basis.design.columns(rest.judges, rest.others)
    found = {f"rung: {n}": columns @ c for n, c in zip(fit.ladder.names, fit.ladder.coefficients, strict=True)}
    found[BLEND] = columns @ fit.ladder.combined
    return found


def _rivals(train: Anchors, rest: Anchors) -> dict[str, Floats]:
    best = int(((train.judges - train.expert[:, None]) ** 2).mean(axis=0).argmin())
    published = published_weights(train.judges, train.expert, train.fails, train.cut)
    found = {
        "mean of the judges": rest.judges.mean(axis=1),
        "mean of the anchors": np.full(len(rest), train.expert.mean()),
        "best judge on the other anchors": rest.judges[:, best],
        "published rule": rest.judges @ published,
    }
    return found | {f"judge {j + 1}": rest.judges[:, j] for j in range(rest.judges.shape[1])}
