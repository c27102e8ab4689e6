"""Every way to a value that is compared: rivals, rungs, the blend; and p_fail."""

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
BLEND, P_FAIL, BY_FAMILY = "blend", "p_fail", "blend, bias by family"
JUDGE, RUNG = "judge: ", "rung: "
RIVALS = ("mean", "constant", "best judge on the anchors", "the same, + offset", "published rule")
OFFSET_SD = 0.2  # of the rival that adds a shrunken offset, unit scale: loose


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """values (V, T) cut to the scale and risk (V + 1, T), higher is worse, last p_fail; names of the V values."""

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
    # A judge's gap is filled by the mean of the others, so that every rival has a value everywhere.
    scored = data.panel.judges
    whole = np.where(np.isnan(scored), np.nanmean(scored, axis=1, keepdims=True), scored)
    anchors, test, expert = whole[draw.anchors], whole[draw.test], data.expert[draw.anchors]
    miss = anchors - expert[:, None]
    best = int((miss**2).mean(axis=0).argmin())
    offset = _shrunken_offset(miss)
    shifted = int(((miss + offset) ** 2).mean(axis=0).argmin())
    published = published_weights(anchors, expert, data.fails[draw.anchors], data.cut + 1e-9)
    found = {
        "mean": test.mean(axis=1),
        "constant": np.full(len(test), expert.mean()),
        "best judge on the anchors": test[:, best],
        "the same, + offset": test[:, shifted] + offset[shifted],
        "published rule": test @ published,
    }
    return found | {JUDGE + name: test[:, j] for j, name in enumerate(data.judges)}


def _shrunken_offset(miss: Floats) -> Floats:
    """(J,) what to add to each judge: minus its mean miss (n, J), shrunk to 0."""
    n, bias = len(miss), miss.mean(axis=0)
    spread = ((miss - bias) ** 2).sum(axis=0) / max(n - 1, 1) + 1e-6
    found: Floats = -bias * n / (n + spread / OFFSET_SD**2)
    return found
