"""What must hold between the cells of a ratings table: statuses, scales, kinds, uniqueness."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .draft import Draft
from .table import KINDS, NA, SCORED, STATUSES, UNSCORED, Bools, Floats, Ints, Kind

Empty = Literal["na", "missing"]
Scale = tuple[float, float]


def check_required(draft: Draft) -> None:
    """The words that name a rating may not be empty."""
    for column in ("item_id", "rater", "metric"):
        codes = draft.words(column)[1]
        draft.fault(codes < 0, lambda n, column=column: f"{column} is empty")  # type: ignore[misc]


def check_status(draft: Draft, empty: Empty | None) -> NDArray[np.int8]:
    """(N,) status a row; inferred where none is stated: a score means scored, no score what `empty` says it means."""
    status, scored = draft.statuses().copy(), ~np.isnan(draft.floats("score"))
    unstated = status == -1
    status[unstated & scored] = SCORED
    if empty is not None:
        status[unstated & ~scored] = NA if empty == "na" else UNSCORED
    else:
        draft.fault(unstated & ~scored, lambda n: "no score and no status: N/A or missing? (--empty na|missing)")
    stated = ~unstated
    draft.fault(stated & (status == SCORED) & ~scored, lambda n: "status is 'scored' and there is no score")
    draft.fault(
        stated & (status > SCORED) & scored,
        lambda n: f"status is {STATUSES[status[n]]!r} and there is a score {draft.floats('score')[n]:g}",
    )
    return status


def check_scales(
    draft: Draft, scored: Bools, declared: Mapping[str, Scale], wanted: Mapping[str, Scale]
) -> tuple[Floats, dict[str, Scale]]:
    """Scores on one scale a metric, and the scales. "*" in `declared` or `wanted` stands for every metric.

    A score off its row's scale is a fault, and so are two scales for a metric unless `wanted` names the one to use.
    """
    score, low, high = draft.floats("score").copy(), *_row_scales(draft, declared)
    unknown = np.isnan(low) | np.isnan(high)
    draft.fault(unknown, lambda n: "no scale (scale_min, scale_max)")
    draft.fault(~unknown & ~(low < high), lambda n: f"scale_min {low[n]:g} is not below scale_max {high[n]:g}")
    off = scored & ((score < low) | (score > high))
    draft.fault(off, lambda n: f"score {score[n]:g} is off its scale {low[n]:g}..{high[n]:g}")
    metrics, codes = draft.words("metric")
    scales: dict[str, Scale] = {}
    for code, metric in enumerate(metrics):
        rows = np.flatnonzero((codes == code) & ~unknown)
        if len(rows) == 0:
            continue
        target = _lookup(wanted, metric)
        if target is None:
            target = (float(low[rows[0]]), float(high[rows[0]]))
            _fault_unlike(draft, rows, low, high, target, metric)
        else:
            score[rows] = _convert(score[rows], low[rows], high[rows], target)
        scales[metric] = target
    return score, scales


def _row_scales(draft: Draft, declared: Mapping[str, Scale]) -> tuple[Floats, Floats]:
    """The scale of each row; where a row states none, the declared scale of its metric."""
    metrics, codes = draft.words("metric")
    told = [_lookup(declared, m) or (np.nan, np.nan) for m in metrics] + [(np.nan, np.nan)]
    table = np.array(told, dtype=np.float64)[codes]
    low, high = draft.floats("scale_min"), draft.floats("scale_max")
    neither = np.isnan(low) & np.isnan(high)
    return np.where(neither, table[:, 0], low), np.where(neither, table[:, 1], high)


def _fault_unlike(draft: Draft, rows: NDArray[np.intp], low: Floats, high: Floats, scale: Scale, metric: str) -> None:
    unlike = np.zeros(len(low), dtype=bool)
    unlike[rows] = (low[rows] != scale[0]) | (high[rows] != scale[1])
    draft.fault(
        unlike,
        lambda n: (
            f"{metric} is on {low[n]:g}..{high[n]:g} here and on {scale[0]:g}..{scale[1]:g} elsewhere; "
            "nothing is converted unless asked (--scale)"
        ),
    )


def _convert(score: Floats, low: Floats, high: Floats, target: Scale) -> Floats:
    """Linear, end to end. A score that already stands on the target scale is left as it is, to the bit."""
    span = target[1] - target[0]
    with np.errstate(divide="ignore", invalid="ignore"):  # a faulty scale is reported elsewhere
        moved = target[0] + (score - low) / (high - low) * span
    return np.where((low == target[0]) & (high == target[1]), score, moved)


def _lookup(scales: Mapping[str, Scale], metric: str) -> Scale | None:
    return scales.get(metric, scales.get("*"))


def check_unique(draft: Draft) -> None:
    """(item, rater, metric) may stand once."""
    item, rater, metric = (draft.words(c)[1] for c in ("item_id", "rater", "metric"))
    n_raters, n_metrics = (len(draft.words(c)[0]) + 1 for c in ("rater", "metric"))
    key = (item.astype(np.int64) * n_raters + rater) * n_metrics + metric
    first = np.unique(key, return_index=True, return_inverse=True)
    original = first[1][first[2]]
    named = (item >= 0) & (rater >= 0) & (metric >= 0)
    rows = draft.rows
    draft.fault(
        named & (original != np.arange(len(key))),
        lambda n: f"the same item, rater and metric as row {rows[original[n]]}",
    )


def check_kinds(draft: Draft, kinds: Mapping[str, Kind]) -> tuple[dict[str, Kind], list[str]]:
    """One kind a rater: as told by `kinds`, as stated in the rows, or as the rater's name says (with a warning)."""
    raters, codes = draft.words("rater")
    stated = draft.kinds()
    first = np.full(len(raters) + 1, -1, dtype=np.int8)
    rows = np.flatnonzero(stated >= 0)[::-1]
    first[codes[rows]] = stated[rows]  # the last write wins: the first row
    draft.fault(
        (stated >= 0) & (stated != first[codes]) & (codes >= 0),
        lambda n: f"{raters[codes[n]]} is {KINDS[stated[n]]!r} here and {KINDS[first[codes[n]]]!r} elsewhere",
    )
    found: dict[str, Kind] = {}
    guessed = []
    for code, rater in enumerate(raters):
        if rater in kinds:
            found[rater] = kinds[rater]
        elif first[code] >= 0:
            found[rater] = KINDS[first[code]]
        else:
            found[rater] = _kind_by_name(rater)
            guessed.append(f"{rater} is {found[rater]}")
    warnings = [f"no rater_kind given, taken from the names: {', '.join(guessed)}"] if guessed else []
    return found, warnings


def _kind_by_name(rater: str) -> Kind:
    for kind in KINDS:
        if rater.lower().startswith(kind):
            return kind
    return "judge"


def item_words(draft: Draft, column: str) -> tuple[tuple[str, ...], Ints]:
    """A property of the item: (I,) codes; two unlike words for one item are a fault."""
    names, codes = draft.words(column)
    return names, _of_items(draft, codes, codes >= 0, -1, column, lambda n: repr(names[codes[n]])).astype(np.int32)


def item_turns(draft: Draft) -> Ints:
    """(I,) turn numbers, -1 where none; a whole number from 1."""
    turns = draft.floats("turn")
    bad = (turns < 1) | (turns % 1 != 0) & ~np.isnan(turns)
    found = _item_numbers(draft, "turn", bad, "a whole number from 1")
    return np.where(np.isnan(found), -1, found).astype(np.int32)


def item_inclusion(draft: Draft) -> Floats:
    """(I,) probabilities of having been drawn, NaN where none is given."""
    chance = draft.floats("inclusion")
    return _item_numbers(draft, "inclusion", (chance <= 0) | (chance > 1), "a probability above 0 and up to 1")


def _item_numbers(draft: Draft, column: str, bad: Bools, wanted: str) -> Floats:
    numbers = draft.floats(column)
    draft.fault(bad, lambda n: f"{column} is {numbers[n]:g}, not {wanted}")
    given = ~np.isnan(numbers) & ~bad
    return _of_items(draft, numbers, given, float("nan"), column, lambda n: f"{numbers[n]:g}").astype(np.float64)


def _of_items(
    draft: Draft,
    values: NDArray[np.generic],
    given: Bools,
    nothing: float,
    column: str,
    shown: Callable[[int], str],
) -> NDArray[np.generic]:
    names, item = draft.words("item_id")
    found = np.full(len(names) + 1, nothing, dtype=values.dtype)
    rows = np.flatnonzero(given & (item >= 0))[::-1]
    found[item[rows]] = values[rows]
    unlike = given & (item >= 0) & (values != found[item])
    draft.fault(unlike, lambda n: f"{column} of {names[item[n]]} is {shown(n)} here and another elsewhere")
    return found[:-1]
