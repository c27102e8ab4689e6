"""Many runs of several models: means, intervals over cases, how the runs ended, and breakdowns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..errors import InputError, LaneError
from .bootstrap import RESAMPLES, SEED, interval, resampled_means
from .cases import Case, UnscoredCase
from .epmq import SCORE_NAMES
from .imputation import Imputed
from .indices import NAMES
from .space import Floats

Interval = tuple[float, float]


@dataclass(frozen=True)
class Part:
    """A breakdown's cell: mean EPM-Q of `cases` cases."""

    epm_q: float
    cases: int


@dataclass(frozen=True)
class Lead:
    """By how much EPM-Q is ahead of `over`, paired over the `cases` both have; interval None with fewer than 2."""

    over: str
    difference: float
    interval: Interval | None
    cases: int


@dataclass(frozen=True)
class ModelSummary:
    """One model over its cases.

    cases      number of cases in the means: scored and defined; `unscored` and `undefined` are left out of them
    scores     Outcome, Efficiency, Stability, EPM-Q; indices: the nine; both None where no case counts
    intervals  95 % bootstrap intervals over cases of the scores; None with fewer than two cases
    stops      number of cases by kind of end
    by_axis, by_threshold   mean EPM-Q by the axis of the largest deficit, and by threshold where the runs name it
    lead       over the next model of the leaderboard
    """

    model: str
    cases: int
    unscored: int
    undefined: int
    scores: dict[str, float | None]
    intervals: dict[str, Interval | None]
    indices: dict[str, float | None]
    stops: dict[str, int]
    mean_turns: float | None
    by_axis: dict[str, Part]
    by_threshold: dict[str, Part]
    imputed: Imputed
    lead: Lead | None = None


@dataclass(frozen=True)
class Comparison:
    """Models in falling order of EPM-Q, those without any at the end."""

    models: tuple[ModelSummary, ...]
    cases: tuple[Case | UnscoredCase, ...]
    resamples: int
    seed: int


def compare(results: Sequence[Case | UnscoredCase], *, resamples: int = RESAMPLES, seed: int = SEED) -> Comparison:
    """Group results by model.

    InputError where a model has the same case twice (it would count double), LaneError where the forms were filled by
    unlike judges or rubrics.
    """
    _refuse_repeats(results)
    _refuse_unlike_lanes(results)
    by_model: dict[str, list[Case | UnscoredCase]] = {}
    for result in sorted(results, key=lambda r: (r.forms.model, r.forms.case)):
        by_model.setdefault(result.forms.model, []).append(result)
    models = [_summary(m, found, resamples, seed) for m, found in by_model.items()]
    models.sort(key=lambda m: (m.scores["epm_q"] is None, -(m.scores["epm_q"] or 0.0)))
    counted = {m: _counted(found) for m, found in by_model.items()}
    with_leads = [
        _with_lead(m, below, counted, resamples, seed) for m, below in zip(models, [*models[1:], None], strict=True)
    ]
    return Comparison(tuple(with_leads), tuple(results), resamples, seed)


def _counted(found: Sequence[Case | UnscoredCase]) -> list[Case]:
    return [c for c in found if isinstance(c, Case) and c.scores["epm_q"] is not None]


def _summary(model: str, found: Sequence[Case | UnscoredCase], resamples: int, seed: int) -> ModelSummary:
    cases = _counted(found)
    scored = [c for c in found if isinstance(c, Case)]
    table = _score_table(cases)
    ends: list[Interval | None] = [None] * len(SCORE_NAMES)
    if len(cases) > 1:
        groups = [c.forms.case for c in cases]
        low, high = interval(resampled_means(table, groups, resamples=resamples, seed=seed))
        ends = [(float(a), float(b)) for a, b in zip(low, high, strict=True)]
    return ModelSummary(
        model=model,
        cases=len(cases),
        unscored=len(found) - len(scored),
        undefined=len(scored) - len(cases),
        scores={name: _mean([c.scores[name] for c in cases]) for name in SCORE_NAMES},
        intervals=dict(zip(SCORE_NAMES, ends, strict=True)),
        indices={name: _mean([c.indices[name] for c in cases]) for name in NAMES},
        stops=dict(Counter(c.stop for c in cases)),
        mean_turns=_mean([float(c.turns) for c in cases]),
        by_axis=_parts(cases, lambda c: c.dominant),
        by_threshold=_parts(cases, lambda c: c.forms.threshold),
        imputed=sum((c.imputed for c in scored), Imputed()),
    )


def _with_lead(
    model: ModelSummary,
    below: ModelSummary | None,
    counted: dict[str, list[Case]],
    resamples: int,
    seed: int,
) -> ModelSummary:
    if below is None:
        return model
    mine, theirs = ({c.forms.case: c.scores["epm_q"] for c in counted[m.model]} for m in (model, below))
    shared = [case for case in mine if case in theirs]
    if not shared:
        return model
    differences = np.array([[(mine[c] or 0.0) - (theirs[c] or 0.0)] for c in shared])
    ends: Interval | None = None
    if len(shared) > 1:
        low, high = interval(resampled_means(differences, shared, resamples=resamples, seed=seed))[:, 0]
        ends = (float(low), float(high))
    return replace(model, lead=Lead(below.model, float(differences.mean()), ends, len(shared)))


def _parts(cases: Sequence[Case], key: Callable[[Case], str | None]) -> dict[str, Part]:
    found: dict[str, list[float]] = {}
    for case in cases:
        name, value = key(case), case.scores["epm_q"]
        if name is not None and value is not None:
            found.setdefault(name, []).append(value)
    return {name: Part(float(np.mean(v)), len(v)) for name, v in sorted(found.items())}


def _score_table(cases: Sequence[Case]) -> Floats:
    return np.array([[c.scores[name] for name in SCORE_NAMES] for c in cases], dtype=np.float64)


def _mean(values: Sequence[float | None]) -> float | None:
    numbers = [v for v in values if v is not None]
    return float(np.mean(numbers)) if numbers else None


def _refuse_repeats(results: Sequence[Case | UnscoredCase]) -> None:
    seen: dict[tuple[str, str], str] = {}
    for result in results:
        key = (result.forms.model, result.forms.case)
        if key in seen:
            raise InputError(
                f"model {key[0]!r} has case {key[1]!r} twice, first at {seen[key]}: it would count double",
                where=result.forms.where,
                hint="Name repeats apart in `case`, or leave one out.",
            )
        seen[key] = result.forms.where


def _refuse_unlike_lanes(results: Sequence[Case | UnscoredCase]) -> None:
    first: dict[str | None, str] = {}
    for result in results:
        first.setdefault(result.forms.origin.lane if result.forms.origin else None, result.forms.name)
    if len(first) > 1:
        (one, where), (other, other_where), *_ = first.items()
        raise LaneError(
            f"filled by {one or 'nobody named'}, but {other_where} by {other or 'nobody named'}", where=where
        )
