"""The judge as a user meets it: with what its manifest holds back unscored, and what it is unsure of marked for review.

The other figures undo that (held_out_said.read_through), for they are what decides on it. Here it is done again to the
same verdicts, so that figures of a manifest that was written after judging need no judging.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aipsy_judge.agreement import Estimate
from aipsy_judge.agreement.cases import is_set, said_cases
from aipsy_judge.agreement.detection import pair_rule
from aipsy_judge.agreement.pair_statistic import estimate_pairs
from aipsy_judge.composite import composite
from aipsy_judge.reservations import Point, unsure, withhold
from aipsy_judge.rubric import Rubric
from aipsy_judge.verdict import Verdict

from .held_out import Reply
from .held_out_figures import Ground, whole
from .held_out_judging import Judged
from .held_out_said import Floats, Held, read_through


@dataclass(frozen=True, slots=True)
class Shipped:
    """held_back   names of metrics and flags that the manifest holds back
    failing     "recall", "precision" of replies that fail by the rubric's failure rule; "found": the share of those
                that are called failing or marked for review; "others": the share of all other replies that are
    flags       flag -> "recall", "precision"; "found", "all": the shares of its cases, and of all replies, in which it
                is set or marked for review
    """

    held_back: tuple[str, ...]
    failing: Mapping[str, Estimate]
    flags: Mapping[str, Mapping[str, Estimate]]

    def to_dict(self) -> dict[str, Any]:
        """As strict JSON data."""
        return {
            "held_back": list(self.held_back),
            "failing": {k: e.to_dict() for k, e in self.failing.items()},
            "flags": {name: {k: e.to_dict() for k, e in of.items()} for name, of in self.flags.items()},
        }


def as_shipped(judged: Judged, items: Sequence[Reply], held: Held, rubric: Rubric, ground: Ground) -> Shipped | None:
    """None where the judge's manifest holds nothing back and marks nothing: it is then as it was measured."""
    points = {n: Point(**p) for n, p in judged.settings.get("operating_points", {}).items()}
    names = tuple(judged.settings.get("not_validated", ()))
    if not points and not names:
        return None
    told = [reserved(judged.verdicts[i.id], rubric, points, names) for i in items]
    verdicts = [v for v, _ in told]
    says = np.array([float(composite(rubric, v.scores).failure is True) for v in verdicts])
    marked = np.array([bool(marks) for _, marks in told])
    truth = whole(rubric, held.values, held.na).failing
    failing = {
        **_found(says, truth, held, ground),
        "found": _share(np.maximum(says, marked), truth, held, ground),
        "others": _share(np.maximum(says, marked), 1 - truth, held, ground),
    }
    flags = {}
    for flag in rubric.flags:
        values = np.array([np.nan if v.flags[flag.name].value is None else v.flags[flag.name].value for v in verdicts])
        set_ = said_cases(values.astype(np.float64), np.ones(len(items), dtype=bool), is_set)
        shown = np.maximum(set_, [flag.name in marks for _, marks in told])
        case = held.flags[flag.name]
        flags[flag.name] = {
            **_found(set_, case, held, ground),
            "found": _share(shown, case, held, ground),
            "all": _share(shown, np.where(np.isnan(case), np.nan, 1.0), held, ground),
        }
    return Shipped(names, failing, flags)


def reserved(
    verdict: Verdict, rubric: Rubric, points: Mapping[str, Point], names: Sequence[str]
) -> tuple[Verdict, tuple[str, ...]]:
    """The verdict with `names` held back, and which of the rest is marked for review."""
    read, _ = read_through(verdict, rubric)
    flags, scores = withhold(rubric, read.flags, read.scores, dict.fromkeys(names, "held back by the manifest"))
    return replace(read, flags=flags, scores=scores), unsure(rubric, flags, scores, points)


def _found(said: Floats, case: Floats, held: Held, ground: Ground) -> dict[str, Estimate]:
    pairs = ground.pairs(said, case, held.weights)
    found = estimate_pairs(pairs, [pair_rule("recall"), pair_rule("precision")], ground.bootstrap)
    return dict(zip(("recall", "precision"), found, strict=True))


def _share(said: Floats, of: Floats, held: Held, ground: Ground) -> Estimate:
    """The share of `of` (1, 0 or NaN where that is unknown) that is said."""
    return estimate_pairs(ground.pairs(said, of, held.weights), [pair_rule("recall")], ground.bootstrap)[0]
