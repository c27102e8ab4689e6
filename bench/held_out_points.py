"""Operating points from validation data: from where on a reading wants a person's eyes.

confidence  the least under which a verdict is for review, so that of those above it at most MOST_WRONG say pass or
            fail wrongly (of a flag: yes or no), and at least LEAST_KEPT of all stay above it
p_fail      the greatest from which a verdict that passes is for review, so that LEAST_FOUND of the failures (of a
            flag: of the cases) fail or are for review, with the same LEAST_KEPT

Where that cannot be had, the best that can within LEAST_KEPT is taken, and `attained` says so.

And from which probability on a flag is set (aipsy_judge.set_from): the least from which LEAST_RIGHT of those set are
right, where more cases are found so than where the most probable answer decides. A judge that has such a point in its
manifest was read with it: the two others are to be proposed from that judge's own verdicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import yaml

from aipsy_judge.manifest import OperatingPoint
from aipsy_judge.rubric import Metric, Rubric
from aipsy_judge.verdict import Scored, Unscored, Verdict

from .held_out import HeldItem
from .held_out_said import Bools, Floats, p_below, read_through

MOST_WRONG, LEAST_KEPT, LEAST_FOUND = 0.10, 0.5, 0.9
LEAST_RIGHT = 0.75  # of set flags
DIGITS = 3  # of a threshold


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """The (N,) verdicts that say pass or fail of items whose reference is known.

    says, truth  fails (of a flag: is set), as the judge and as the reference has it
    confidence   of the value, NaN where none is told: nothing then puts it under review
    p_fail       NaN likewise
    """

    says: Bools
    truth: Bools
    confidence: Floats
    p_fail: Floats


@dataclass(frozen=True, slots=True)
class Proposal:
    """One point, and what it comes to on the data that it was chosen on.

    wrong_before, wrong  share of wrong verdicts among all, and among those not under their confidence
    kept                 share of verdicts that are not for review at all
    found_before, found  share of failures that fail, and that fail or are for review; None where there is none
    attained             whether both aims were met
    """

    confidence: float | None
    p_fail: float | None
    n: int
    failures: int
    wrong_before: float | None
    wrong: float | None
    kept: float | None
    found_before: float | None
    found: float | None
    attained: bool


def propose(seen: Seen) -> Proposal:
    """The point of one metric or flag; without verdicts there is none."""
    n, failures = len(seen.says), int(seen.truth.sum())
    if not n:
        return Proposal(None, None, 0, 0, None, None, None, None, None, attained=False)
    wrong = seen.says != seen.truth
    confidence = _confidence(seen, wrong)
    under = _under(seen, confidence)
    p_fail = _p_fail(seen, under)
    review = under | _likely(seen, p_fail)
    found = _found(seen, review)
    met = float(wrong[~under].mean()) <= MOST_WRONG and (found is None or found >= LEAST_FOUND)
    return Proposal(
        confidence,
        p_fail,
        n,
        failures,
        float(wrong.mean()),
        float(wrong[~under].mean()),
        float((~review).mean()),
        _found(seen, np.zeros(n, dtype=bool)),
        found,
        attained=met,
    )


@dataclass(frozen=True, slots=True)
class Deciding:
    """A flag is set from `least` on: `recall` and `precision` then, and, as it was said, `recall_before` and
    `precision_before` (None where nothing was set)."""

    least: float
    recall: float
    precision: float
    recall_before: float
    precision_before: float | None


def propose_set_from(seen: Seen) -> Deciding | None:
    """None where no probability is told, there is no case, or no threshold finds more than was said."""
    told, cases = ~np.isnan(seen.p_fail), int(seen.truth.sum())
    if not cases:
        return None
    before = _found(seen, np.zeros(len(seen.says), dtype=bool)) or 0.0
    right = float(seen.truth[seen.says].mean()) if seen.says.any() else None
    for limit in np.unique(np.floor(seen.p_fail[told] * 10**DIGITS) / 10**DIGITS):
        said = told & (seen.p_fail >= limit)
        precision, recall = float(seen.truth[said].mean()), float(said[seen.truth].mean())
        if 0 < limit < 1 and precision >= LEAST_RIGHT:
            return Deciding(float(limit), recall, precision, before, right) if recall > before else None
    return None


def _confidence(seen: Seen, wrong: Bools) -> float | None:
    """None where no threshold is needed, or none helps."""
    if float(wrong.mean()) <= MOST_WRONG:
        return None
    tried = []
    for limit in np.unique(np.round(seen.confidence[~np.isnan(seen.confidence)], DIGITS)):
        above = ~_under(seen, float(limit))
        if above.mean() >= LEAST_KEPT:
            tried.append((float(wrong[above].mean()), float(limit)))
    enough = [limit for share, limit in tried if share <= MOST_WRONG]
    if enough:
        return min(enough)
    share, limit = min(tried, default=(1.0, 0.0))
    return limit if share < float(wrong.mean()) else None


def _p_fail(seen: Seen, under: Bools) -> float | None:
    """None where none is needed, or none finds any more."""
    before = _found(seen, under)
    if before is None or before >= LEAST_FOUND:
        return None
    known = seen.p_fail[~np.isnan(seen.p_fail) & ~seen.says]
    best: tuple[float, float] | None = None
    for limit in np.unique(np.floor(known * 10**DIGITS) / 10**DIGITS)[::-1]:
        review = under | _likely(seen, float(limit))
        found = _found(seen, review)
        if (~review).mean() < LEAST_KEPT or found is None:
            break
        if best is None or found > best[0]:
            best = (found, float(limit))
        if found >= LEAST_FOUND:
            break
    return best[1] if best is not None and best[0] > before else None


def _under(seen: Seen, limit: float | None) -> Bools:
    """As reservations.unsure has it."""
    none: Bools = np.zeros(len(seen.says), dtype=bool)
    return none if limit is None else ~np.isnan(seen.confidence) & (seen.confidence < limit)


def _likely(seen: Seen, limit: float | None) -> Bools:
    none: Bools = np.zeros(len(seen.says), dtype=bool)
    return none if limit is None else ~seen.says & ~np.isnan(seen.p_fail) & (seen.p_fail >= limit)


def _found(seen: Seen, review: Bools) -> float | None:
    return float((seen.says | review)[seen.truth].mean()) if seen.truth.any() else None


def seen_of_metric(metric: Metric, verdicts: Mapping[str, Verdict], items: Sequence[HeldItem]) -> Seen:
    """N/A passes, on either side. What is unscored says nothing, and is for review anyway."""
    rows = []
    for item in items:
        score, target = verdicts[item.id].scores[metric.name], item.target.metrics[metric.name]
        if target.status == "unscored" or isinstance(score, Unscored):
            continue
        reading = score.reading
        confidence = np.nan if reading is None or reading.confidence is None else reading.confidence
        p_fail = np.nan if reading is None else p_below(reading, metric)
        says = isinstance(score, Scored) and _fails(score.value, metric)
        rows.append((says, target.value is not None and _fails(target.value, metric), confidence, p_fail))
    return _seen(rows)


def _fails(value: float, metric: Metric) -> bool:
    return metric.critical is not None and value < metric.critical


def seen_of_flag(name: str, verdicts: Mapping[str, Verdict], items: Sequence[HeldItem]) -> Seen:
    """The flag's confidence is that of what it says."""
    rows = []
    for item in items:
        flag, truth = verdicts[item.id].flags[name], item.target.flags[name].value
        if truth is None or flag.value is None:
            continue
        p = np.nan if flag.probability is None else flag.probability
        rows.append((flag.value, truth, p if flag.value else 1 - p, p))
    return _seen(rows)


def _seen(rows: Sequence[tuple[bool, bool, float, float]]) -> Seen:
    says, truth, confidence, p_fail = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Seen(
        np.array(says, dtype=bool),
        np.array(truth, dtype=bool),
        np.array(confidence, dtype=np.float64),
        np.array(p_fail, dtype=np.float64),
    )


def proposals(rubric: Rubric, verdicts: Mapping[str, Verdict], items: Sequence[HeldItem]) -> dict[str, Proposal]:
    """metric with a critical threshold, or flag -> its point. What a manifest holds back is read all the same."""
    read = {i.id: read_through(verdicts[i.id], rubric)[0] for i in items}
    found = {m.name: propose(seen_of_metric(m, read, items)) for m in rubric.metrics if m.critical is not None}
    return found | {f.name: propose(seen_of_flag(f.name, read, items)) for f in rubric.flags}


def set_from_proposals(
    rubric: Rubric, verdicts: Mapping[str, Verdict], items: Sequence[HeldItem]
) -> dict[str, Deciding]:
    """flag -> from where on to set it; flags that are better left as they are are not among them."""
    read = {i.id: read_through(verdicts[i.id], rubric)[0] for i in items}
    found = {f.name: propose_set_from(seen_of_flag(f.name, read, items)) for f in rubric.flags}
    return {name: deciding for name, deciding in found.items() if deciding is not None}


def operating_points(found: Mapping[str, Proposal]) -> dict[str, OperatingPoint]:
    """As a manifest takes them: those that say something."""
    return {
        name: OperatingPoint(confidence=p.confidence, p_fail=p.p_fail)
        for name, p in found.items()
        if p.confidence is not None or p.p_fail is not None
    }


def points_to_dict(found: Mapping[str, Proposal]) -> dict[str, Any]:
    """Both as strict JSON data."""
    made = {name: point.model_dump(exclude_none=True) for name, point in operating_points(found).items()}
    return {"operating_points": made, "proposals": {name: asdict(p) for name, p in found.items()}}


def set_from_lines(found: Mapping[str, Deciding]) -> Iterator[str]:
    """What setting a flag from a probability on comes to, and the block for the description."""
    if not found:
        return
    yield f"Flags set from a probability on: the least from which {LEAST_RIGHT:.0%} of those set are right"
    for name, d in found.items():
        was = f"{_share(d.recall_before)} and {_share(d.precision_before)}"
        yield f"  {name}: {d.least:g}; recall {_share(d.recall)}, precision {_share(d.precision)}; as it was said {was}"
    yield "  Operating points are to be proposed again from a judge that is assembled with these."
    yield from yaml.safe_dump({"set_from": {n: d.least for n, d in found.items()}}).rstrip("\n").split("\n")


def point_lines(found: Mapping[str, Proposal]) -> Iterator[str]:
    """What each point comes to, and the block for the manifest."""
    yield f"Operating points: at most {MOST_WRONG:.0%} wrong above, {LEAST_FOUND:.0%} of failures found or for review"
    for name, p in found.items():
        told = ", ".join(
            f"{word} {value:g}"
            for word, value in (("confidence", p.confidence), ("p_fail", p.p_fail))
            if value is not None
        )
        figures = (
            f"wrong {_share(p.wrong_before)} -> {_share(p.wrong)}, found {_share(p.found_before)} -> "
            f"{_share(p.found)} of {p.failures}, {_share(p.kept)} of {p.n} stand alone"
        )
        missed = "" if p.attained else "; THE AIM IS NOT MET, this is the best"
        yield f"  {name}: {told or 'none'}; {figures}{missed}" if p.n else f"  {name}: none; nothing was scored"
    block = {"operating_points": points_to_dict(found)["operating_points"]}
    yield from yaml.safe_dump(block, sort_keys=False).rstrip("\n").split("\n")


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"
