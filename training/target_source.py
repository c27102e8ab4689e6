"""Where the targets come from: a correction (fitted to the anchors, or a file's), the raters' mean, or one rater."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from aipsy_judge.correction import Correction, FitOptions, fit_correction, load_correction, make_targets
from aipsy_judge.correction.answers import Answers, answers_of_ratings
from aipsy_judge.correction.target import Targets
from aipsy_judge.errors import RatingsError
from aipsy_judge.ratings import KINDS, Ratings, make_yardstick
from aipsy_judge.rubric import Rubric

from .plain_targets import plain_targets
from .recipe import Recipe
from .votes import Bools, Floats


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """targets of the I items of the table, from `answers` (I, J); `votes`: metric or flag -> (J,) how much each rater
    counts there; `notes` for the reader; `correction` where there is one."""

    targets: Targets
    answers: Answers
    votes: Mapping[str, Floats]
    notes: tuple[str, ...]
    correction: Correction | None


def find_source(recipe: Recipe, ratings: Ratings, rubric: Rubric, train: Bools | None) -> Source:
    """`train`: (I,) mask of the items whose anchors a correction may see, None for all.

    Raises RatingsError where a named rater is not in the table or there is no anchor, LaneError where the rubric or
    the judges are not a correction's.
    """
    make_yardstick(ratings, rubric)  # refuses a metric that stands on another scale than the rubric's
    if recipe.targets.source != "correction":
        return _plain(recipe, ratings, rubric)
    if recipe.targets.correction is not None:
        correction = load_correction(recipe.targets.correction)
    else:
        correction = _fit(recipe, ratings, rubric, train)
    answers = answers_of_ratings(ratings, correction.judges, rubric)
    votes = {name: _votes(answers, record.votes) for name, record in correction.metrics.items()}
    votes |= {name: _votes(answers, record.votes) for name, record in correction.flags.items()}
    return Source(make_targets(correction, answers, rubric), answers, votes, _notes(correction), correction)


def anchor_raters(ratings: Ratings, anchors: Sequence[str]) -> tuple[str, ...]:
    """Raters that the recipe names, by name or by kind, those who are in the table. RatingsError where nobody is."""
    known = [a for a in anchors if a in ratings.raters]
    known += [r for kind in KINDS if kind in anchors for r in ratings.of_kind(kind)]
    found = tuple(dict.fromkeys(known))
    if not found:
        raise RatingsError(
            f"no anchors: no rater is called, or is of the kind, {', '.join(anchors)}; "
            f"there are {', '.join(f'{r} ({ratings.kinds[r]})' for r in ratings.raters)}",
            where="targets.anchors",
            hint="Name the raters who are right, or take targets.source: mean.",
        )
    return found


def _fit(recipe: Recipe, ratings: Ratings, rubric: Rubric, train: Bools | None) -> Correction:
    held = anchor_raters(ratings, recipe.targets.anchors)
    if train is not None:
        ratings = ratings.without(held, ~train)
        held = tuple(r for r in held if r in ratings.raters)
        if not held:
            raise RatingsError(
                "no anchor lies in the train part",
                where="targets.fit_on",
                hint="Rate items of the train part, or take targets.fit_on: all and say so with every test figure.",
            )
    judges = tuple(j for j in ratings.judges if j not in held)
    options = FitOptions(seed=recipe.seed)
    return fit_correction(ratings, make_yardstick(ratings, rubric), experts=held, judges=judges, options=options)


def _plain(recipe: Recipe, ratings: Ratings, rubric: Rubric) -> Source:
    named = recipe.targets.rater
    if named is not None and named not in ratings.raters:
        raise RatingsError(f"no rater {named!r}; there are: {', '.join(ratings.raters)}", where="targets.source")
    raters = (named,) if named is not None else ratings.judges or ratings.raters
    answers = answers_of_ratings(ratings, raters, rubric)
    what = "the ratings" if named is not None else "the mean"
    note = f"the targets are {what} of {', '.join(raters)}, uncorrected; p_fail is undefined"
    return Source(plain_targets(answers, rubric), answers, {}, (note,), None)


def _votes(answers: Answers, told: Mapping[str, float]) -> Floats:
    return np.array([told.get(j, 0.0) for j in answers.judges])


def _notes(correction: Correction) -> tuple[str, ...]:
    found = list(correction.notes)
    for name, record in correction.metrics.items():
        moved = f"; {record.moved.sentence}" if record.moved is not None else ""
        warned = f"; {'; '.join(record.warnings)}" if record.warnings else ""
        found.append(f"{name}: {record.anchors} anchors{moved}{warned}")
    return tuple(found)
