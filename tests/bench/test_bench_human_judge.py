"""bench.human: how each judge of a ratings table agrees with the experts."""

from __future__ import annotations

from aipsy_judge.ratings import ratings_from_rows
from bench.human import tables
from bench.human_judge import agreement, agreement_lines


def test_a_tail_that_a_judge_does_not_score_is_not_found() -> None:
    """On 1..5 the tail ends at 2.6. Of the expert's four failures a finds one, says N/A of one, leaves one unscored and
    was never asked about one; b scores the rest and is silent on a failure that nobody scores."""
    said = {
        "i0": (1, 1, 4),
        "i1": (1, "na", 4),
        "i2": (2, "unscored", 4),
        "i3": (2, None, 4),
        "i4": (4, 4, 4),
        "i5": (5, 1, 5),
        "i6": ("na", 1, 5),
        "i7": (1, "unscored", "na"),
    }
    rows = [
        {
            "item_id": item,
            "rater": rater,
            "rater_kind": "expert" if rater == "kim" else "judge",
            "metric": "empathy",
            "score": None if isinstance(one, str) else one,
            "status": one if isinstance(one, str) else "scored",
            "scale_min": 1,
            "scale_max": 5,
        }
        for item, all_said in said.items()
        for rater, one in zip(("kim", "a", "b"), all_said, strict=True)
        if one is not None
    ]
    ratings = ratings_from_rows(rows)
    found = agreement(tables(ratings, (), (), severity=False), ratings, ratings.groups())["empathy"]
    recall, precision = found["a"]["tail recall"], found["a"]["precision"]
    assert (recall.value, recall.n, recall.dropped) == (1 / 4, 7, 1)
    assert precision.value == 1 / 3
    # Both score i0, i4 and i5: the failure has 1, the others 4 and 1, so 1 + 1/2 of 2.
    assert (found["a"]["AUC"].value, found["a"]["AUC"].n) == (0.75, 3)
    assert (found["b"]["tail recall"].value, found["b"]["tail recall"].n) == (0, 8)
    line = next(line for line in agreement_lines({"empathy": found}) if line.strip().startswith("a "))
    assert "n 3, tail 7, 1 never asked" in line
