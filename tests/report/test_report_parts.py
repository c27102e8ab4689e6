"""What the report counts and draws, apart from its page."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_builder import RUBRIC, conversation, run, verdict
from scipy.stats import spearmanr

from aipsy_judge.errors import InputError
from aipsy_judge.length_bias import length_correlations, spearman
from aipsy_judge.missed import missed_crises, unread_flags
from aipsy_judge.reading_list import conversation_order, reading_list
from aipsy_judge.report.chart import Point, bars, course, stacked
from aipsy_judge.report.hidden import excerpt, on_one_line, pieces
from aipsy_judge.report.wording import REASONS, below, number, percent
from aipsy_judge.spread import entropy_bits, spread
from aipsy_judge.units import Coverage, coverage, units
from aipsy_judge.verdict import UNSCORED_REASONS, Scored, Unscored

# --- units


def test_a_turn_without_a_verdict_is_unscored_not_left_out():
    found = units(run([verdict("a", 1)], [conversation("a", ["one", "two"])]))
    assert [u.turn for u in found] == [1, 2]
    assert set(found[1].scores.values()) == {Unscored("no_verdict", "not judged")}
    assert found[1].composite.failure is None


def test_a_metric_that_the_verdict_leaves_out_is_unscored():
    partial = verdict("a", 1)
    del partial.scores["empathy"]  # type: ignore[attr-defined]
    assert units(run([partial]))[0].scores["empathy"] == Unscored("missing")


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, 5.5, 85.0])
def test_a_value_off_its_scale_is_an_error_naming_unit_and_metric(value):
    with pytest.raises(InputError, match=r"a, turn 1: empathy is .*0 to 5"):
        units(run([verdict("a", 1, {"empathy": Scored(value)})]))


def test_two_verdicts_for_one_turn_are_an_error():
    with pytest.raises(InputError, match="a, turn 1: two verdicts"):
        units(run([verdict("a", 1), verdict("a", 1)]))


def test_coverage_of_nothing_has_no_share():
    assert coverage([]).share_unscored is None
    assert Coverage(scored=3, reasons={"truncated": 1}).share_unscored == 0.25


# --- missed crises, reading order


def test_missed_crises_are_ordered_by_value_then_those_without_a_score():
    flagged = [("truncated", 1), (2, 2), (0, 3), (3, 4)]
    found = units(run([verdict("a", n, {"crisis_handling": s}, crisis=True) for s, n in flagged]))
    assert [m.unit.turn for m in missed_crises(RUBRIC, found)] == [3, 2, 1]


def test_a_low_crisis_score_at_its_threshold_is_not_missed():
    found = units(run([verdict("a", 1, {"crisis_handling": Scored(2.5)}, crisis=True)]))
    assert missed_crises(RUBRIC, found) == []


def test_an_unjudged_turn_has_an_unread_flag():
    found = units(run([], [conversation("a", ["one"])]))
    assert unread_flags(RUBRIC, found) == list(found)


def test_failures_are_ordered_by_how_far_below_their_threshold_they_are():
    # Margins as shares of the scale: advice 2 of 3: -0.2; empathy 0 of 2: -0.4; boundary 1 of 2: -0.2 (as advice).
    verdicts = [
        verdict("a", 1, {"advice_safety": 2}),
        verdict("a", 2, {"empathy": 0}),
        verdict("b", 1, {"boundary_safety": 1, "advice_safety": 5, "empathy": 5, "tone_consistency": 5}),
    ]
    entries = reading_list(RUBRIC, units(run(verdicts)))
    assert [(e.unit.key, e.lowest) for e in entries] == [
        (("a", 2), "empathy"),
        (("a", 1), "advice_safety"),  # composite 3.57 against 4.0
        (("b", 1), "boundary_safety"),
    ]
    assert conversation_order(entries) == ["a", "b"]


# --- spread, length


def test_entropy_in_bits_by_hand():
    assert entropy_bits([2, 1, 1]) == 1.5  # 1/2·1 + 1/4·2 + 1/4·2
    assert entropy_bits([]) == 0.0


def test_spread_counts_each_step_and_the_top():
    scores = [5, 5, 5, 4, None, "truncated", 0]
    found = units(run([verdict("a", n, {"advice_safety": s}) for n, s in enumerate(scores, 1)]))
    s = spread(RUBRIC, found, "advice_safety")
    assert s.counts == ((0, 1), (1, 0), (2, 0), (3, 0), (4, 1), (5, 3))
    assert (s.n, s.top_share, s.ceiling_share, s.crowded) == (5, 0.6, 0.8, False)


def test_exactly_four_fifths_at_the_top_are_not_yet_a_warning():
    found = units(run([verdict("a", n, {"empathy": s}) for n, s in enumerate([5] * 8 + [3] * 2, 1)]))
    assert not spread(RUBRIC, found, "empathy").crowded
    found = units(run([verdict("a", n, {"empathy": s}) for n, s in enumerate([5] * 9 + [3] * 2, 1)]))
    assert spread(RUBRIC, found, "empathy").crowded


def test_a_judge_stuck_on_one_value_is_told_from_five_scores_on():
    for n, expected in ((4, None), (5, (1, 1.0))):
        found = units(run([verdict("a", t, {"empathy": 1}) for t in range(1, n + 1)]))
        assert spread(RUBRIC, found, "empathy").stuck_at == expected


def test_the_spread_of_a_metric_never_scored_is_undefined():
    s = spread(RUBRIC, units(run([verdict("a", 1)])), "crisis_handling")
    assert (s.n, s.entropy, s.top_share, s.ceiling_share, s.crowded) == (0, None, None, None, False)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=30))
def test_spearman_equals_scipys(pairs):
    x, y = ([float(p[i]) for p in pairs] for i in (0, 1))
    ours = spearman(x, y)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert ours.rho is None
        assert "do not vary" in (ours.reason or "")
    else:
        assert ours.rho == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)


def test_length_against_score_pairs_only_what_is_scored():
    replies = ["a", "bb", "ccc", "dddd", "eeeee"]
    scores = [1, 2, "truncated", 4, None]
    judged = [verdict("a", n, {"advice_safety": s}) for n, s in enumerate(scores, 1)]
    view = run(judged, [conversation("a", replies)])
    found = length_correlations(view, units(view))["advice_safety"]
    assert (found.rho, found.n) == (1.0, 3)


def test_length_against_score_without_text_is_undefined():
    view = run([verdict("a", n) for n in (1, 2, 3)], conversations=(), redacted=True)
    found = length_correlations(view, units(view))["empathy"]
    assert (found.rho, found.reason) == (None, "no text at hand")


def test_two_pairs_make_no_correlation():
    assert spearman([1, 2], [1, 2]).reason == "fewer than 3 pairs"


# --- charts


def test_a_value_stands_between_the_ends_of_its_scale():
    points = [Point(1, "score", 0.0, "0"), Point(2, "score", 5.0, "5"), Point(3, "na", None, "N/A")]
    c = course(points, 0, 5, 2.5)
    (top, _), (bottom, _) = c.grid
    assert [m.y for m in c.marks] == [bottom, top, c.rail]
    assert c.threshold == (top + bottom) / 2
    assert c.rail > bottom


def test_long_courses_name_the_first_and_the_last_turn():
    c = course([Point(n, "score", 3.0, "3") for n in range(1, 48)], 0, 5, None)
    assert (c.ticks[0][1], c.ticks[-1][1]) == ("1", "47")
    assert len(c.ticks) <= 11
    xs = [x for x, _ in c.ticks]
    assert min(b - a for a, b in pairwise(xs)) > 12


def test_a_single_turn_stands_in_the_middle():
    c = course([Point(1, "score", 3.0, "3")], 0, 5, None)
    assert c.marks[0].x == (c.left + c.right) / 2


def test_stacked_shares_fill_the_whole_bar():
    slices = stacked({"scored": 1, "na": 0, "unscored": 3})
    assert [(s.kind, s.start, s.width) for s in slices] == [("scored", 0.0, 25.0), ("unscored", 25.0, 75.0)]
    assert stacked({"scored": 0}) == ()


def test_many_bars_are_labelled_at_the_ends_only():
    shown = [b.label for b in bars({str(n): 0.5 for n in range(101)}, 100) if b.show_label]
    assert shown == ["0", "100"]


# --- words


def test_every_reason_has_its_words():
    assert set(REASONS) == UNSCORED_REASONS


def test_figures_are_not_rounded_into_something_else():
    assert (percent(0.9999), percent(0.0001), percent(0.0)) == (">99 %", "<1 %", "0 %")
    assert below(2.499, 2.5) == "2.4990 (below 2.5)"
    assert number(2.0) == "2"


@given(st.text(max_size=80))
def test_pieces_put_together_are_the_text(text):
    joined = "".join(chr(int(p.text[2:], 16)) if p.hidden else p.text for p in pieces(text))
    assert joined == text.replace("\r\n", "\n")


def test_an_excerpt_is_one_line_and_marked_where_cut():
    assert excerpt("one\ntwo\u202e") == "one two[U+202E]"
    assert excerpt("abcdef", 4) == "abc…"
    assert "\n" not in on_one_line("a\n\nb")
