"""Forms of many dialogues -> one result a dialogue, scored or Unscored."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..errors import InputError
from ..verdict import Unscored
from .epmq import SCORE_NAMES
from .evaluate import Evaluation, evaluate
from .forms import Forms
from .imputation import MISSING_SCALE, Complete, Imputed, check_strictness, complete
from .indices import NAMES
from .parameters import Parameters
from .reason import reason
from .space import Floats, Space
from .stop import UNFINISHED
from .vectors import check_start_levels, deficits


@dataclass(frozen=True)
class Path:
    """The points of one dialogue up to its end, for pictures and files. Shapes as in trajectory.Trajectories."""

    position: Floats
    radius: Floats
    distance: Floats
    cosine: Floats
    gain: Floats
    energy: Floats
    projection: Floats


@dataclass(frozen=True)
class Case:
    """One dialogue's result.

    turns       number of turns that count; `later_turns` came after the stop and count for nothing
    stop        kind of the end (stop.KINDS or "unfinished"); `why` says it in a sentence
    raw, indices, scores   by name; None where undefined
    undefined   why something is undefined, else None
    dominant    id of the axis with the largest deficit at the start (the first of equals)
    """

    forms: Forms
    turns: int
    later_turns: int
    stop: str
    why: str
    raw: dict[str, float | None]
    indices: dict[str, float | None]
    scores: dict[str, float | None]
    undefined: str | None
    dominant: str
    imputed: Imputed
    path: Path

    @property
    def end(self) -> str:
        """How and when it ended, in a sentence."""
        if self.stop == UNFINISHED:
            return f"Not ended after turn {self.turns}: {self.why}."
        return f"Ended by {self.stop.replace('_', ' ')} at turn {self.turns}: {self.why}."


@dataclass(frozen=True)
class UnscoredCase:
    """A dialogue without a result, and why."""

    forms: Forms
    unscored: Unscored


def evaluate_cases(
    forms: Sequence[Forms], space: Space, parameters: Parameters, *, strict: bool = True
) -> list[Case | UnscoredCase]:
    """Results in the order of `forms`. InputError names the dialogue and turn of a level that is not legal."""
    check_strictness(parameters, strict)
    results: dict[int, Case | UnscoredCase] = {}
    whole: dict[int, Complete] = {}
    for n, form in enumerate(forms):
        match complete(form, space, strict=strict):
            case Unscored() as unscored:
                results[n] = UnscoredCase(form, unscored)
            case Complete() as filled:
                whole[n] = filled
    for every in sorted({forms[n].every for n in whole}):
        group = [n for n in whole if forms[n].every == every]
        cases = _evaluate_group(
            [forms[n] for n in group], [whole[n] for n in group], space, parameters, every=every, strict=strict
        )
        results |= dict(zip(group, cases, strict=True))
    return [results[n] for n in range(len(forms))]


def _evaluate_group(
    forms: Sequence[Forms],
    filled: Sequence[Complete],
    space: Space,
    parameters: Parameters,
    *,
    every: int,
    strict: bool,
) -> list[Case]:
    lengths = [len(f.turn_levels) for f in filled]
    levels = np.zeros((len(forms), max(lengths), len(space.channel_ids)))
    for n, f in enumerate(filled):
        levels[n, : lengths[n]] = f.turn_levels
    start = np.array([start_of(form, f, space) for form, f in zip(forms, filled, strict=True)])
    evaluation = evaluate(
        space,
        start,
        levels,
        lengths,
        parameters,
        every=every,
        names=[f.name for f in forms],
        imputed_scale=None if strict else MISSING_SCALE,
    )
    return [
        _case(evaluation, n, form, f, space, parameters) for n, (form, f) in enumerate(zip(forms, filled, strict=True))
    ]


def start_of(forms: Forms, filled: Complete, space: Space) -> Floats:
    """P_0 (D) from the starting levels, or as given. InputError where both are there and disagree."""
    if filled.start_levels is None:
        return np.array(forms.start, dtype=np.float64)
    start: Floats = deficits(space, check_start_levels(space, [filled.start_levels], [forms.name]))[0]
    if forms.start is not None and not filled.imputed.start_levels and not np.allclose(start, forms.start):
        raise InputError(
            f"P_0 is given as {list(forms.start)}, but the levels make {start.tolist()}", where=f"{forms.name}, start"
        )
    return start


def _case(evaluation: Evaluation, n: int, forms: Forms, filled: Complete, space: Space, parameters: Parameters) -> Case:
    end = int(evaluation.stops.rating[n])
    last_turn = forms.logged_turns or len(forms.turn_levels) * forms.every
    turns = min(end * forms.every, last_turn)
    no_deficit = not evaluation.paths.distance[n, 0] > 0
    imputed = filled.imputed
    if no_deficit and not np.isnan(evaluation.scores[n, -1]):
        imputed = replace(imputed, scale=1)
    return Case(
        forms=forms,
        turns=turns,
        later_turns=last_turn - turns,
        stop=evaluation.stops.kind[n],
        why=reason(evaluation, n, parameters, every=forms.every),
        raw=_named(NAMES, evaluation.raw[n]),
        indices=_named(NAMES, evaluation.indices[n]),
        scores=_named(SCORE_NAMES, evaluation.scores[n]),
        undefined="no deficit at the start: there is nothing to close" if no_deficit and not imputed.scale else None,
        dominant=space.axis_ids[int(evaluation.paths.start[n].argmin())],
        imputed=imputed,
        path=_path(evaluation, n, end),
    )


def _path(evaluation: Evaluation, n: int, end: int) -> Path:
    paths = evaluation.paths
    names = ("position", "radius", "distance", "cosine", "gain", "energy", "projection")
    return Path(**{name: getattr(paths, name)[n, : end + 1] for name in names})


def _named(names: Sequence[str], values: Floats) -> dict[str, float | None]:
    return {name: None if math.isnan(v) else float(v) for name, v in zip(names, values, strict=True)}
