"""A judge of this project on a set's conversations, as one more rater; and how every judge agrees with the experts.

MAP.yaml says which metrics mean which, in either direction, and how turns become one rating of an item:

    turns: mean                 # last, mean or min over the assistant's turns; N/A is left out of mean and min, and one
                                # turn that could not be scored leaves the item unscored
    metrics:
      empathy: [empathy, understanding]      # the judge's metric: the set's
    reverse: [dismissing_emotions]           # the set's metrics that are high where the judge's is low
    order_only: []                           # the set's metrics of which ranks alone are compared (human_sets.py)
    group: file                              # what in a conversation's metadata says which belong together
"""

from __future__ import annotations

import gzip
import statistics
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from aipsy_judge import Conversation, NotApplicable, Scored, Verdict, open_judge, read
from aipsy_judge.agreement import Bootstrap, failure_auc, icc, mae, make_pairs, spearman
from aipsy_judge.agreement.cases import below, known_cases, said_cases
from aipsy_judge.agreement.detection import pair_failure_case
from aipsy_judge.agreement.estimate import Estimate
from aipsy_judge.agreement.figures import said_of
from aipsy_judge.agreement.pair_statistic import estimate_pairs
from aipsy_judge.agreement.pairs import Ints, Pairs
from aipsy_judge.agreement.resample import Floats
from aipsy_judge.agreement.wording import figure
from aipsy_judge.correction.metric_data import MetricData, expert_values
from aipsy_judge.errors import InputError, RatingsError
from aipsy_judge.judge import Judge, JudgeOptions
from aipsy_judge.ratings import Ratings, merge_ratings, ratings_from_rows, reference
from aipsy_judge.rubric import Rubric

OFTEN = Bootstrap(resamples=400)
RECALL, PRECISION = "tail recall", "precision"
JUST_ABOVE = 1e-6  # the tail includes its cut; the agreement figures know only "strictly below"


class MetricMap(BaseModel):
    """MAP.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    turns: Literal["last", "mean", "min"] = "mean"
    metrics: dict[str, str | list[str]]
    reverse: list[str] = []
    order_only: list[str] = []
    group: str | None = None


@dataclass(frozen=True, slots=True)
class JudgeRun:
    """What to score, with whom (adapter, contract, options: as open_judge takes them), and what it means."""

    name: str
    conversations: tuple[Conversation, ...]
    map: MetricMap
    adapter: Path | None = None
    contract: str | None = None
    options: JudgeOptions = field(default_factory=JudgeOptions)

    @staticmethod
    def make(
        name: str,
        items: Path | None,
        map_path: Path | None,
        adapter: Path | None,
        contract: str | None,
        options: JudgeOptions,
    ) -> JudgeRun:
        if items is None or map_path is None:
            raise InputError("--judge needs --items (what to score) and --map (what its metrics mean)")
        return JudgeRun(name, tuple(conversations_of(items)), read_map(map_path), adapter, contract, options)


def read_map(path: Path) -> MetricMap:
    """Raises InputError with every fault."""
    try:
        return MetricMap.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, yaml.YAMLError, ValidationError) as error:
        raise InputError(f"not a metric map: {error}", where=str(path)) from error


def pairs_of(wanted: MetricMap, rubric: Rubric, ratings: Ratings, extra: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """(the judge's metric, the set's metric), whichever way round the map has them. `extra`: names that the judge has
    beside its metrics."""
    found = []
    known = {*rubric.metric_names, *extra}
    for key, value in wanted.metrics.items():
        for other in [value] if isinstance(value, str) else value:
            ways = [(a, b) for a, b in ((key, other), (other, key)) if a in known and b in ratings.metrics]
            if not ways:
                raise InputError(
                    f"neither of {key!r} and {other!r} is a metric of {rubric.name} with the other one of the ratings",
                    hint=f"{rubric.name}: {', '.join(rubric.metric_names)}; ratings: {', '.join(ratings.metrics)}",
                )
            found.append(ways[0])
    return found


def add_judge(ratings: Ratings, run: JudgeRun, say: Callable[[str], None]) -> Ratings:
    """The ratings with the judge's own beside them; the judge's scale is converted to the set's."""
    known = set(ratings.items)
    conversations = [c for c in run.conversations if c.id in known]
    if not conversations:
        raise RatingsError(f"no conversation has the id of a rated item, such as {ratings.items[0]}")
    rows: list[dict[str, Any]] = []
    with open_judge(run.name, contract=run.contract, adapter=run.adapter, options=run.options) as judge:
        metrics = pairs_of(run.map, judge.rubric, ratings)
        rater = f"{judge.lane.judge} ({judge.lane.contract})"
        for number, conversation in enumerate(conversations, start=1):
            rows += _rows(judge, rater, conversation, metrics, run.map, ratings)
            if number % 10 == 0 or number == len(conversations):
                say(f"{rater}: {number} of {len(conversations)} conversations")
    return merge_ratings([ratings, ratings_from_rows(rows, where=rater)])


def item_groups(ratings: Ratings, name: str, conversations: Sequence[Conversation]) -> Ints:
    """(I,) the group that the conversations' metadata hold under `name`; an item that is none of them is a group of its
    own."""
    named = {c.id: str(c.metadata.get(name, c.id)) for c in conversations}
    numbers = {group: n for n, group in enumerate(sorted({named.get(i, i) for i in ratings.items}))}
    return np.array([numbers[named.get(i, i)] for i in ratings.items])


def regrouped(tables: Sequence[MetricData], groups: Ints) -> list[MetricData]:
    """The tables with these groups, (I,) over the items of the ratings."""
    return [replace(data, groups=groups[data.index].astype(np.int32)) for data in tables]


def agreement(
    tables: Sequence[MetricData], ratings: Ratings, groups: Ints, order_only: Collection[str] = ()
) -> dict[str, dict[str, dict[str, Estimate]]]:
    """metric -> judge -> figure: against the experts, all rated items, 95 % intervals by `groups`, (I,) over the items
    of the ratings. Of a metric in `order_only`, whose scale says something else, what compares ranks alone."""
    found: dict[str, dict[str, dict[str, Estimate]]] = {}
    for data in tables:
        low, high = data.scale
        critical = low + data.cut * (high - low) + JUST_ABOVE
        expert = low + data.expert * (high - low)
        found[data.metric] = {}
        for j, name in enumerate(data.judges):
            scores = low + data.panel.judges[:, j] * (high - low)
            row = _ranks(scores, expert, data.groups, critical)
            if data.metric not in order_only:
                row = _values(scores, expert, data.groups) | row
                row |= _tail(_cases(data, ratings, name, groups, critical), critical)
            found[data.metric][name] = row
    return found


def agreement_lines(found: Mapping[str, Mapping[str, Mapping[str, Estimate]]]) -> Iterator[str]:
    """A line a metric and judge; what each figure rests on."""
    yield "Each judge against the experts, all rated items [95 % interval by resampling conversations]"
    yield "n: items that both scored; recall and precision of the tail: items that the experts know and it was asked of"
    for metric, judges in found.items():
        yield f"  {metric}"
        for name, row in judges.items():
            yield f"    {name[:32]:33}" + "  ".join(
                [_rests_on(row), *(f"{head} {figure(e)}" for head, e in row.items())]
            )
    yield ""


def _rests_on(row: Mapping[str, Estimate]) -> str:
    n = f"n {row['Spearman'].n}"
    if RECALL not in row:
        return n
    never = f", {row[RECALL].dropped} never asked" if row[RECALL].dropped else ""
    return f"{n}, tail {row[RECALL].n}{never}"


def _ranks(scores: Floats, expert: Floats, groups: Ints, critical: float) -> dict[str, Estimate]:
    pairs = make_pairs(scores, expert, groups=groups)
    return {
        "Spearman": spearman(pairs, bootstrap=OFTEN),
        "AUC": failure_auc(pairs, critical=critical, bootstrap=OFTEN),
    }


def _values(scores: Floats, expert: Floats, groups: Ints) -> dict[str, Estimate]:
    pairs, both = make_pairs(scores, expert, groups=groups), np.stack([scores, expert], axis=1)
    return {"ICC(A,1)": icc(both, groups=groups, bootstrap=OFTEN), "MAE": mae(pairs, bootstrap=OFTEN)}


def _tail(cases: Pairs, critical: float) -> dict[str, Estimate]:
    wanted = [pair_failure_case("recall", critical), pair_failure_case("precision", critical)]
    return dict(zip((RECALL, PRECISION), estimate_pairs(cases, wanted, OFTEN), strict=True))


def _cases(data: MetricData, ratings: Ratings, judge: str, groups: Ints, critical: float) -> Pairs:
    """The tail over all items that the experts know, also those that no judge scored, which `data` does not hold."""
    values, _ = expert_values(ratings, data.metric, data.experts, data.leniency is not None)
    na = reference(ratings, data.metric, data.experts).na
    truth = known_cases(values, na, below(critical))
    said = said_cases(*said_of(ratings, data.metric, judge), below(critical))
    known = ~np.isnan(truth)
    return make_pairs(said[known], truth[known], groups=groups[known])


def conversations_of(path: Path) -> list[Conversation]:
    """Of any file that `read` takes, gzipped or not."""
    if path.suffix != ".gz":
        return read(path)
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / path.stem
        plain.write_bytes(gzip.decompress(path.read_bytes()))
        return read(plain)


def _rows(
    judge: Judge,
    rater: str,
    conversation: Conversation,
    metrics: Sequence[tuple[str, str]],
    wanted: MetricMap,
    ratings: Ratings,
) -> Iterator[dict[str, Any]]:
    verdicts = judge.score(conversation, rationale="never")
    if wanted.turns == "last":
        verdicts = verdicts[-1:]
    for mine, theirs in metrics:
        scale = judge.rubric.metric(mine).scale
        low, high = ratings.scales[theirs]
        value = _over_turns(verdicts, mine, wanted.turns)
        score = None
        if value is not None:
            share = (value - scale.minimum) / (scale.maximum - scale.minimum)
            score = low + (1 - share if theirs in wanted.reverse else share) * (high - low)
        yield {
            "item_id": conversation.id,
            "rater": rater,
            "rater_kind": "judge",
            "metric": theirs,
            "score": score,
            "status": "scored" if score is not None else "na" if _all_na(verdicts, mine) else "unscored",
            "scale_min": low,
            "scale_max": high,
        }


def _over_turns(verdicts: Sequence[Verdict], metric: str, how: Literal["last", "mean", "min"]) -> float | None:
    """One value of an item; the judge's expected value where it gives one, for it says more than the whole number.
    None where a turn could not be scored: it might be the least of them, and would move their mean."""
    values = []
    for verdict in verdicts:
        score = verdict.scores.get(metric)
        if isinstance(score, NotApplicable):
            continue
        if not isinstance(score, Scored):
            return None
        expected = score.reading.expected if score.reading is not None else None
        values.append(score.value if expected is None else expected)
    if not values:
        return None
    return min(values) if how == "min" else statistics.fmean(values)


def _all_na(verdicts: Sequence[Verdict], metric: str) -> bool:
    return bool(verdicts) and all(isinstance(v.scores.get(metric), NotApplicable) for v in verdicts)
