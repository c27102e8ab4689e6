"""A judge and its rivals on a set's conversations, against the people who rated them, or against other judges.

Where no person rated a set, the reference is the mean of the judges that did (frontier models, in the sets at hand),
each of them is held against the mean of the others, and every line says so: such figures show whether a judge reads
like those judges, not whether it is right.

Several turns become one rating of an item as the map says (human_judge.MetricMap). The bag of words is learnt on the
train part of a recipe, not on the set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aipsy_judge.agreement import Bootstrap, Estimate
from aipsy_judge.agreement.error import PAIR_MAE
from aipsy_judge.agreement.icc import pair_icc
from aipsy_judge.agreement.pair_statistic import PairStatistic, estimate_pairs
from aipsy_judge.agreement.rank import PAIR_SPEARMAN
from aipsy_judge.agreement.wording import figure
from aipsy_judge.conversation import Conversation
from aipsy_judge.errors import RatingsError
from aipsy_judge.ratings import Ratings, merge_ratings, ratings_from_rows, reference
from aipsy_judge.rubric import Rubric

from .held_out import Reply, group_numbers
from .held_out_figures import COMPOSITE, Ground, whole_of
from .held_out_said import Bools, Floats, Said
from .human_judge import MetricMap, pairs_of

Say = Callable[[str], None]
HEADS = {"icc": "ICC(A,1)", "spearman": "Spearman", "mae": "MAE"}


@dataclass(frozen=True, slots=True, eq=False)
class RatedSet:
    """A ratings table with its conversations (item id = conversation id). held: the people who are right; nobody where
    judges alone rated."""

    ratings: Ratings
    held: tuple[str, ...]
    map: MetricMap
    conversations: tuple[Conversation, ...]

    @property
    def replies(self) -> list[Reply]:
        """What is asked: the last turn, or all of them."""
        found = []
        for conversation in self.conversations:
            turns = [t.number for t in conversation.turns]
            group = str(conversation.metadata.get(self.map.group or "", conversation.id))
            for turn in turns[-1:] if self.map.turns == "last" else turns:
                found.append(Reply(f"{conversation.id}#{turn}", conversation, turn, group))
        return found


def rated_set(
    ratings: Ratings,
    held: tuple[str, ...],
    wanted: MetricMap,
    conversations: Sequence[Conversation],
    most: int | None,
    seed: int,
) -> RatedSet:
    """The conversations that are rated; at most `most`, drawn by `seed`. RatingsError where none is."""
    known = set(ratings.items)
    found = [c for c in conversations if c.id in known and c.turns]
    if not found:
        raise RatingsError(f"no conversation has the id of a rated item, such as {ratings.items[0]}")
    if most is not None and most < len(found):
        places = np.random.default_rng(seed).permutation(len(found))[:most]
        found = [found[n] for n in sorted(places.tolist())]
    return RatedSet(ratings, held, wanted, tuple(found))


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One contestant's rating of each of the set's conversations on the set's scale; NaN where there is none."""

    name: str
    values: Floats
    against: str
    truth: Floats
    na: Bools
    unscored: Bools


@dataclass(frozen=True, slots=True)
class SetFigures:
    """A metric of the set: contestant -> estimates, in order; `against`: contestant -> what it is held against."""

    metric: str
    mine: str
    figures: Mapping[str, Sequence[Estimate]]
    against: Mapping[str, str]
    counts: Mapping[str, tuple[int, int, int]]


def set_figures(rated: RatedSet, contestants: Sequence[Said], rubric: Rubric, bootstrap: Bootstrap) -> list[SetFigures]:
    """Every metric that the map names; the contestants' columns are over `rated.replies`."""
    groups, n_groups = _groups(rated)
    ground = Ground(groups, n_groups, bootstrap)
    found = []
    for mine, theirs in pairs_of(rated.map, rubric, rated.ratings, extra=(COMPOSITE,)):
        columns = [*_table_columns(rated, theirs)]
        truth, against = _reference(rated, theirs)
        columns += [_column(rated, s, rubric, mine, theirs, truth, against) for s in contestants]
        statistics: list[PairStatistic] = [PAIR_SPEARMAN]
        if theirs not in rated.map.order_only:
            statistics = [pair_icc("A,1"), PAIR_SPEARMAN, PAIR_MAE]
        figures = {
            c.name: estimate_pairs(ground.pairs(c.values, c.truth, None), statistics, bootstrap) for c in columns
        }
        counts = {c.name: (int((~np.isnan(c.values)).sum()), int(c.na.sum()), int(c.unscored.sum())) for c in columns}
        found.append(SetFigures(theirs, mine, figures, {c.name: c.against for c in columns}, counts))
    return found


def _groups(rated: RatedSet) -> tuple[Any, int]:
    first = [Reply(c.id, c, None, str(c.metadata.get(rated.map.group or "", c.id))) for c in rated.conversations]
    numbers, count = group_numbers(first)
    return np.array(numbers), count


def _reference(rated: RatedSet, metric: str) -> tuple[Floats, str]:
    """(I,) of the set's conversations."""
    if rated.held:
        found = reference(rated.ratings, metric, rated.held)
        return _of_items(rated, found.values), found.name
    judges = rated.ratings.judges
    scores, na, _ = _matrix(rated, metric, judges)
    return _mean(scores, na), judges[0] if len(judges) == 1 else f"mean of the {len(judges)} judges"


def _table_columns(rated: RatedSet, metric: str) -> Iterator[Column]:
    """The judges of the table, against the people or against the mean of the other judges."""
    judges = [j for j in rated.ratings.judges if j not in rated.held]
    matrix, na, unscored = _matrix(rated, metric, judges)
    for n, judge in enumerate(judges):
        if rated.held:
            truth, against = _reference(rated, metric)
        elif len(judges) > 1:
            others = [k for k in range(len(judges)) if k != n]
            truth, against = _mean(matrix[:, others], na[:, others]), f"mean of the {len(others)} other judges"
        else:
            continue
        yield Column(judge, matrix[:, n], against, truth, na[:, n], unscored[:, n])


def _matrix(rated: RatedSet, metric: str, raters: Sequence[str]) -> tuple[Floats, Bools, Bools]:
    """(I, R) of the set's conversations: scores, N/A, unscored."""
    shape = (len(rated.conversations), len(raters))
    found, na, lost = np.full(shape, np.nan), np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    matrix = rated.ratings.matrix(metric, raters)
    place = {item: n for n, item in enumerate(matrix.item_ids)}
    for n, conversation in enumerate(rated.conversations):
        if conversation.id in place:
            row = place[conversation.id]
            found[n], na[n], lost[n] = matrix.values[row], matrix.na[row], matrix.unscored[row]
    return found, na, lost


def _of_items(rated: RatedSet, values: Floats) -> Floats:
    place = {item: n for n, item in enumerate(rated.ratings.items)}
    return values[[place[c.id] for c in rated.conversations]]


def _mean(scores: Floats, na: Bools) -> Floats:
    """(I,) mean of those who scored (I, R); NaN where nobody did, or more say N/A."""
    count = (~np.isnan(scores)).sum(axis=1)
    mean = np.nansum(scores, axis=1) / np.maximum(count, 1)
    found: Floats = np.where((count > 0) & (count >= na.sum(axis=1)), mean, np.nan)
    return found


def _column(rated: RatedSet, said: Said, rubric: Rubric, mine: str, theirs: str, truth: Floats, against: str) -> Column:
    """The contestant's expected values over the turns of each conversation, on the set's scale."""
    values, na = _values(said, rubric, mine)
    low, high = rated.ratings.scales[theirs]
    bottom, top = _scale(rubric, mine)
    owner = np.array([r.conversation.id for r in rated.replies])
    found = np.full(len(rated.conversations), np.nan)
    all_na = np.zeros(len(found), dtype=bool)
    for n, conversation in enumerate(rated.conversations):
        rows = np.flatnonzero(owner == conversation.id)
        rows = rows[-1:] if rated.map.turns == "last" else rows
        value = _over_turns(values[rows], na[rows], rated.map.turns)
        all_na[n] = bool(na[rows].all())
        if value is not None:
            share = (value - bottom) / (top - bottom)
            found[n] = low + (1 - share if theirs in rated.map.reverse else share) * (high - low)
    return Column(said.name, found, against, truth, all_na, np.isnan(found) & ~all_na)


def _over_turns(values: Floats, na: Bools, how: str) -> float | None:
    """Of the turns that apply; None where none does, or one of them is unscored: it might be the least, and would move
    the mean."""
    applies = values[~na]
    if not len(applies) or np.isnan(applies).any():
        return None
    return float(applies.min() if how == "min" else applies.mean())


def with_judge(rated: RatedSet, said: Said, rubric: Rubric) -> Ratings:
    """The table with the contestant as one more judge, on the set's scales."""
    rows = []
    for mine, theirs in pairs_of(rated.map, rubric, rated.ratings, extra=(COMPOSITE,)):
        low, high = rated.ratings.scales[theirs]
        column = _column(rated, said, rubric, mine, theirs, np.empty(0), "")
        for n, conversation in enumerate(rated.conversations):
            scored = not np.isnan(column.values[n])
            rows.append(
                {
                    "item_id": conversation.id,
                    "rater": said.name,
                    "rater_kind": "judge",
                    "metric": theirs,
                    "score": float(column.values[n]) if scored else None,
                    "status": "scored" if scored else "na" if column.na[n] else "unscored",
                    "scale_min": low,
                    "scale_max": high,
                }
            )
    return merge_ratings([rated.ratings, ratings_from_rows(rows, where=said.name)])


def _values(said: Said, rubric: Rubric, mine: str) -> tuple[Floats, Bools]:
    if mine == COMPOSITE:
        value = whole_of(said, "expected", rubric).value
        return value, np.all([said.metrics[m.name].na for m in rubric.metrics if m.weight], axis=0)
    return said.metrics[mine].expected, said.metrics[mine].na


def _scale(rubric: Rubric, mine: str) -> tuple[float, float]:
    metric = rubric.metric(mine) if mine != COMPOSITE else next(m for m in rubric.metrics if m.weight)
    return metric.scale.minimum, metric.scale.maximum


def set_lines(found: Sequence[SetFigures], rated: RatedSet) -> Iterator[str]:
    """A table a metric."""
    who = "against people" if rated.held else "AGAINST JUDGES, no person rated these"
    turns = {"last": "the last turn", "mean": "the mean over the turns", "min": "the least of the turns"}[
        rated.map.turns
    ]
    yield f"{len(rated.conversations)} conversations, {who}; of each {turns} [95 % interval by resampling]"
    for one in found:
        name = one.metric if one.metric == one.mine else f"{one.metric} (the judge's {one.mine})"
        only = ", in order alone: its scale is another" if one.metric in rated.map.order_only else ""
        yield f"  {name}{only}"
        for contestant, estimates in one.figures.items():
            _, na, unscored = one.counts[contestant]
            cells = "  ".join(f"{HEADS[e.name]} {figure(e)}" for e in estimates)
            lost = f"; {na} N/A, {unscored} unscored" if na or unscored else ""
            n = max((e.n for e in estimates), default=0)
            yield f"    {contestant[:30]:31}n {n:<4} {cells}  against {one.against[contestant]}{lost}"
    yield ""


def sets_to_dict(found: Sequence[SetFigures], rated: RatedSet) -> dict[str, Any]:
    """As strict JSON data."""
    return {
        "rated_by": "people" if rated.held else "judges only; no person rated these",
        "conversations": len(rated.conversations),
        "turns": rated.map.turns,
        "metrics": {
            one.metric: {
                "judge_metric": one.mine,
                "contestants": {
                    name: {
                        "against": one.against[name],
                        **dict(zip(("scored", "na", "unscored"), one.counts[name], strict=True)),
                        "figures": {e.name: e.to_dict() for e in estimates},
                    }
                    for name, estimates in one.figures.items()
                },
            }
            for one in found
        },
    }
