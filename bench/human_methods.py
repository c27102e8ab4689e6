"""Every way to a value that is compared: rivals, rungs, the blend; and p_fail.

A judge that stands alone has values where it scored, and nowhere else: what others said there is not its own. It may
be the best judge only where it scored nearly all, for among few items it may have chosen those that it does well on.
Inside a mean of several judges, the published rule, the rungs and the blend, gaps are filled in from the other judges.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aipsy_judge.correction.families import bias_of, family_bias
from aipsy_judge.correction.metric_data import MetricData
from aipsy_judge.correction.metric_fit import Basis, Panel, fit_metric
from aipsy_judge.correction.published import published_weights

from .human_draws import Draw

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
BLEND, P_FAIL, BY_FAMILY = "blend", "p_fail", "blend, bias by family"
JUDGE, RUNG = "judge: ", "rung: "
RIVALS = ("mean", "constant", "best judge on the anchors", "the same, + offset", "published rule")
LEAST_SCORED = 0.95  # of the rated items: "nearly all"; a server's odd lost reply does not bar a judge
OFFSET_SD = 0.2  # of the rival that adds a shrunken offset, unit scale: loose


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """values (V, T) cut to the scale and risk (V + 1, T), higher is worse, last p_fail; names of the V values.

    NaN in both where a single judge did not score the item, or no judge may be the best.
    """

    names: tuple[str, ...]
    values: Floats
    risk: Floats


def is_rival(name: str) -> bool:
    return name in RIVALS or name.startswith(JUDGE)


def all_methods(data: MetricData, basis: Basis, draw: Draw, *, by_family: bool) -> Outcome:
    """Fit on the draw's anchors, predict its test items; unit scale."""
    found = _rivals(data, draw)
    panel, anchors = data.panel, draw.anchors
    fit = fit_metric(
        basis,
        Panel(panel.judges[anchors], panel.others[anchors]),
        data.expert[anchors],
        data.fails[anchors],
        cut=data.cut,
        groups=data.groups[anchors],
        seed=draw.number,
    )
    judges, others = basis.filled(Panel(panel.judges[draw.test], panel.others[draw.test]))
    columns = basis.design.columns(judges, others)
    for name, coefficients in zip(fit.ladder.names, fit.ladder.coefficients, strict=True):
        if name not in ("mean", "published"):  # the same as the rivals
            found[RUNG + name] = columns @ coefficients
    found[BLEND] = columns @ fit.ladder.combined
    if by_family and fit.enough:
        residuals = data.expert[anchors] - fit.ladder.blended_out_of_fold
        bias = family_bias(residuals, data.family[anchors], len(data.families))
        found[BY_FAMILY] = found[BLEND] + bias_of(data.family[draw.test], bias)
    values = np.stack(list(found.values()))
    p_fail = fit.probabilities(Panel(panel.judges[draw.test], panel.others[draw.test]))
    return Outcome(tuple(found), np.clip(values, 0, 1), np.vstack([-values, p_fail]))


def _rivals(data: MetricData, draw: Draw) -> dict[str, Floats]:
    """What one could do without this package."""
    scored = data.panel.judges
    enough = (~np.isnan(scored[data.anchors])).mean(axis=0) >= LEAST_SCORED
    test, expert = scored[draw.test], data.expert[draw.anchors]
    miss = scored[draw.anchors] - expert[:, None]
    offset = _shrunken_offset(miss)
    # The published rule weighs judges on the same items; a gap is filled by the mean of the others.
    whole = np.where(np.isnan(scored), np.nanmean(scored, axis=1, keepdims=True), scored)
    published = published_weights(whole[draw.anchors], expert, data.fails[draw.anchors], data.cut + 1e-9)
    found = {
        "mean": whole[draw.test].mean(axis=1),
        "constant": np.full(len(test), expert.mean()),
        "best judge on the anchors": _of_best(test, miss, enough),
        "the same, + offset": _of_best(test + offset, miss + offset, enough),
        "published rule": whole[draw.test] @ published,
    }
    return found | {JUDGE + name: test[:, j] for j, name in enumerate(data.judges)}


def _of_best(test: Floats, miss: Floats, enough: Bools) -> Floats:
    """(T,) what the judge says of the test items (T, J) that misses least on the anchors (n, J), of those that scored
    enough (J,); NaN where there is none."""
    known = ~np.isnan(miss)
    squares = np.where(known, miss**2, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    squares = np.where(enough & known.any(axis=0), squares, np.inf)
    best: Floats = test[:, squares.argmin()] if np.isfinite(squares).any() else np.full(len(test), np.nan)
    return best


def _shrunken_offset(miss: Floats) -> Floats:
    """(J,) what to add to each judge: minus its mean miss (n, J) where it scored, shrunk to 0."""
    known = ~np.isnan(miss)
    n = known.sum(axis=0)
    bias = np.where(known, miss, 0.0).sum(axis=0) / np.maximum(n, 1)
    spread = np.where(known, (miss - bias) ** 2, 0.0).sum(axis=0) / np.maximum(n - 1, 1) + 1e-6
    found: Floats = -bias * n / (n + spread / OFFSET_SD**2)
    return found
