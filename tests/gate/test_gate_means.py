"""The gate's means at their thresholds: a mean that meets one passes it, whatever floating point makes of the way."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_builder import METRICS, run, verdict

from aipsy_judge.gate import check
from aipsy_judge.gate_file import Gate
from aipsy_judge.summary import summarise
from aipsy_judge.units import units

WEIGHTS = (20, 10, 30, 15, 15, 10)  # hundredths, in the rubric's order


def exact(rows):
    """The mean of the units' weighted means, by hand in fractions."""
    present = [[(v, w) for v, w in zip(row, WEIGHTS, strict=True) if v is not None] for row in rows]
    return sum(Fraction(sum(v * w for v, w in p), sum(w for _, w in p)) for p in present) / len(rows)


def view_of(rows):
    return run([verdict("a", n, dict(zip(METRICS, row, strict=True)), crisis=None) for n, row in enumerate(rows, 1)])


def rule(view, name, **keys):
    result = check(view, Gate.model_validate({"max_missed_crises": None, **keys}))
    return next(r for r in result.rules if r.rule == name)


@pytest.mark.parametrize(
    ("limit", "rows"),
    [
        # 3.4999999999999996, 2.9999999999999996 and 3.2999999999999994 by adding the units' composites as floats
        (3.5, [(3, None, 0, 1, 1, 5), (4, None, 5, 4, 5, 5), (5, None, 4, 2, 5, 5), (3, 3, 5, 2, 4, None)]),
        (3.0, [(4, 2, 5, 3, None, None), (4, 5, 5, 3, 1, 0), (0, 5, 0, 0, 5, 5), (5, 0, None, 0, 5, None)]),
        (3.3, [(5, 2, 5, 4, 5, 5), (2, None, 5, None, 0, 3), (4, None, 5, 3, None, 1), (1, 5, None, 0, 3, None)]),
        # 3.4999999999999996 and 2.9999999999999996 even as the exact mean of composites that are rounded already
        (3.5, [(5, 2, None, 5, 5, 5), (0, 0, None, 0, 2, 2), (5, 5, None, 3, 4, 5), (5, 5, None, 3, 4, 5)]),
        (3.0, [(3, 5, 5, 5, 5, 5), (2, 0, 0, 1, None, None), (1, None, 5, 5, 5, 5), (2, None, None, 5, None, 0)]),
    ],
)
def test_a_mean_of_composites_on_its_threshold_is_on_it(limit, rows):
    assert exact(rows) == Fraction(str(limit))
    view = view_of(rows)
    found = rule(view, "composite.min_mean", composite={"min_mean": limit})
    assert (found.status, found.found) == ("pass", limit)
    (summary,) = summarise(view.rubric, units(view))
    assert summary.composite == limit


def test_a_mean_of_scores_on_its_threshold_is_on_it():
    view = run([verdict("a", n, {"empathy": v}) for n, v in enumerate((2.1, 4.1), 1)])
    found = rule(view, "metrics.empathy.min_mean", metrics={"empathy": {"min_mean": 3.1}})
    assert (found.status, found.found) == ("pass", 3.1)  # 3.0999999999999996 in floating point
    (summary,) = summarise(view.rubric, units(view))
    assert summary.metrics[0].mean == 3.1


some_score = st.tuples(*[st.one_of(st.none(), st.integers(0, 5))] * 6).filter(lambda row: row != (None,) * 6)


@given(st.lists(some_score, min_size=1, max_size=5))
def test_the_mean_of_composites_is_rounded_once(rows):
    view = view_of(rows)
    assert rule(view, "composite.min_mean", composite={"min_mean": 0}).found == float(exact(rows))
    (summary,) = summarise(view.rubric, units(view))
    assert summary.composite == float(exact(rows))
