"""One metric: fit, judge out of fold, write down."""

from __future__ import annotations

import numpy as np

from ..agreement import Bootstrap
from .assess import BLEND, OutOfFold, out_of_fold, refit
from .codec import Scale, to_centres, to_line
from .design import thresholds
from .families import family_bias
from .figures import TAIL_AWARE, figures, jackknife
from .folds import FEWEST_GROUPS
from .ladder import Anchors
from .metric_data import MetricData, Tail
from .metric_fit import FEWEST_ANCHORS, Basis, MetricFit, learn_basis
from .numbers import Floats
from .options import FitOptions
from .profile import ONLY
from .published import published_weights
from .record import FailureRecord, MetricRecord, Moved, Range, RungRecord, TailRecord
from .rungs import ABOUT
from .tail import failing_level, tail_aware


def fit_record(data: MetricData, tail: Tail | None, options: FitOptions, often: Bootstrap) -> MetricRecord:
    """`tail` None: the metric has no critical threshold, and gets no p_fail."""
    basis = learn_basis(data.panel, thresholds(*data.scale))
    anchors = _anchors(data, basis)
    fit = refit(basis, anchors, seed=options.seed, only=ONLY[options.profile])
    by_family = options.families and fit.enough and bool((data.family[data.anchors] >= 0).any())
    tail_record = _tail(data, anchors, options) if tail is not None else None
    ways = _out_of_fold(data, basis, anchors, options, by_family, tail_record) if fit.enough else None
    shown = figures(ways, anchors, data.scale, tail, options.flag_from, often) if ways is not None else {}
    names = {f"judge {j + 1}": f"judge {name}" for j, name in enumerate(data.judges)}
    scales = data.other_scales
    return MetricRecord(
        metric=data.metric,
        scale=data.scale,
        status="fitted" if fit.enough else "too_few_anchors",
        warnings=_warnings(data, anchors, fit, tail, options),
        judges=list(data.judges),
        anchors=len(anchors),
        conversations=len(np.unique(anchors.groups)),
        items=len(data.index),
        combined=to_line(basis.design, fit.ladder.combined, data.scale, data.judges, scales),
        weight_intervals=_intervals(data, fit),
        moved=_moved(data, basis, fit) if fit.enough else None,
        rungs=_rungs(data, basis, fit, anchors, ways),
        votes=_votes(data, anchors),
        failure=_failure(fit, anchors, tail, options) if tail is not None else None,
        families=_families(data, fit, anchors) if by_family else None,
        tail=tail_record,
        out_of_fold={names.get(way, way): found for way, found in shown.items()},
        in_sample_rmse=_rmse(fit, anchors, fit.ladder.combined, data.scale) if fit.enough else None,
        centres=to_centres(basis, data.scale, data.judges, scales),
    )


def _anchors(data: MetricData, basis: Basis) -> Anchors:
    judges, others = basis.filled(data.panel)
    every = Anchors(judges, others, data.expert, data.groups, data.weights, data.fails, data.cut)
    return every.rows(data.anchors)


def _out_of_fold(
    data: MetricData,
    basis: Basis,
    anchors: Anchors,
    options: FitOptions,
    by_family: bool,
    tail: TailRecord | None,
) -> OutOfFold:
    family = data.family[data.anchors] if by_family else None
    found = out_of_fold(basis, anchors, seed=options.seed, only=ONLY[options.profile], family=family)
    if tail is None:
        return found
    low, high = data.scale
    aware = tail_aware(found.values[BLEND], found.p_fail, (tail.failing - low) / (high - low), tail.price)
    return OutOfFold(found.values | {TAIL_AWARE: aware}, found.p_fail)


def _tail(data: MetricData, anchors: Anchors, options: FitOptions) -> TailRecord | None:
    if options.tail_price == 1:
        return None
    low, high = data.scale
    failing = failing_level(anchors.expert, anchors.fails, anchors.cut)
    return TailRecord(options.tail_price, low + (high - low) * failing)


def _warnings(data: MetricData, anchors: Anchors, fit: MetricFit, tail: Tail | None, options: FitOptions) -> list[str]:
    found = []
    if not fit.enough:
        found.append(
            f"{len(anchors)} anchors in {len(np.unique(anchors.groups))} conversations (at least {FEWEST_ANCHORS} in "
            f"{FEWEST_GROUPS} are needed): the equal mean of the judges, uncorrected"
        )
    if tail is not None and not fit.enough:
        found.append("p_fail is undefined: it would be its prior alone")
    elif tail is not None and not anchors.fails.any():
        found.append("no anchor is a failure: p_fail rests on its prior and cannot be checked")
    if data.unjudged:
        found.append(f"{data.unjudged} items rated by the expert were scored by no judge and are no anchors")
    if options.families and not (data.family >= 0).any():
        found.append("no generator is told: there is no bias by family")
    return found


def _intervals(data: MetricData, fit: MetricFit) -> dict[str, Range]:
    """Of the value at the centre and of each judge's weight, in points."""
    if not fit.enough:
        return {}
    low, span = data.scale[0], data.scale[1] - data.scale[0]
    folds = np.einsum("r,frk->fk", fit.ladder.blend, fit.ladder.fold_coefficients)
    whole = fit.ladder.combined
    found = {"at_centre": jackknife(low + span * folds[:, 0], float(low + span * whole[0]))}
    first = fit.basis.design.blocks["judges"].start
    for j, name in enumerate(data.judges):
        found[name] = jackknife(folds[:, first + j], float(whole[first + j]))
    return found


def _moved(data: MetricData, basis: Basis, fit: MetricFit) -> Moved:
    span = data.scale[1] - data.scale[0]
    judges, others = basis.filled(data.panel)
    columns = basis.design.columns(judges, others)
    folds = np.einsum("r,frk->fk", fit.ladder.blend, fit.ladder.fold_coefficients)
    raw = judges.mean()
    shifts = span * np.array([np.clip(columns @ c, 0, 1).mean() - raw for c in [*folds, fit.ladder.combined]])
    interval = jackknife(shifts[:-1], float(shifts[-1]))
    return Moved(float(shifts[-1]), interval, _sentence(data, float(shifts[-1]), interval))


def _sentence(data: MetricData, shift: float, interval: Range) -> str:
    who = data.experts[0] if len(data.experts) == 1 else "the experts"
    sure = interval.low is not None and interval.high is not None and (interval.low > 0 or interval.high < 0)
    if not sure:
        return f"{data.metric} stays where it is on average ({shift:+.2f}, not to be told from 0)."
    way, bent = ("down", "more lenient") if shift < 0 else ("up", "more severe")
    judges = "this judge is" if len(data.judges) == 1 else "these judges are"
    return (
        f"{data.metric} is moved {way} by {abs(shift):.2f} on average: {judges} {bent} than {who}. "
        f"If {who} {'are' if who == 'the experts' else 'is'} too lenient or too severe, so is the corrected value."
    )


def _rungs(
    data: MetricData, basis: Basis, fit: MetricFit, anchors: Anchors, ways: OutOfFold | None
) -> list[RungRecord]:
    span = data.scale[1] - data.scale[0]
    found = []
    for name, blend, coefficients in zip(fit.ladder.names, fit.ladder.blend, fit.ladder.coefficients, strict=True):
        outside = ways.values.get(f"rung: {name}") if ways is not None else None
        found.append(
            RungRecord(
                name=name,
                about=ABOUT[name],
                blend=float(blend),
                rmse_out_of_fold=None if outside is None else span * _error(outside, anchors),
                rmse_in_sample=_rmse(fit, anchors, coefficients, data.scale) if fit.enough else None,
                line=to_line(basis.design, coefficients, data.scale, data.judges, data.other_scales),
            )
        )
    return found


def _rmse(fit: MetricFit, anchors: Anchors, coefficients: Floats, scale: Scale) -> float:
    values = np.clip(fit.basis.design.columns(anchors.judges, anchors.others) @ coefficients, 0, 1)
    return (scale[1] - scale[0]) * _error(values, anchors)


def _error(values: Floats, anchors: Anchors) -> float:
    return float(np.sqrt(np.average((values - anchors.expert) ** 2, weights=anchors.weights)))


def _votes(data: MetricData, anchors: Anchors) -> dict[str, float]:
    """What each judge's word counts where judges disagree on N/A: by alignment, shrunk to equal."""
    nothing = np.zeros(len(anchors), dtype=bool)
    votes = published_weights(anchors.judges, anchors.expert, nothing, anchors.cut, tail_rule=False)
    return dict(zip(data.judges, votes.tolist(), strict=True))


def _families(data: MetricData, fit: MetricFit, anchors: Anchors) -> dict[str, float]:
    span = data.scale[1] - data.scale[0]
    residuals = anchors.expert - fit.ladder.blended_out_of_fold
    bias = family_bias(residuals, data.family[data.anchors], len(data.families))
    return dict(zip(data.families, (span * bias).tolist(), strict=True))


def _failure(fit: MetricFit, anchors: Anchors, tail: Tail, options: FitOptions) -> FailureRecord:
    count = int(anchors.fails.sum())
    return FailureRecord(
        below=tail.cut,
        or_at=tail.inclusive,
        coefficients=fit.failure.tolist(),
        miss_cost=options.miss_cost,
        flag_from=options.flag_from,
        failures=count,
        basis="anchors" if fit.enough and count else "prior",
    )
