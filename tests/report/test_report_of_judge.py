"""What the HTML report says of the judge: who it is, its remarks and settings, and where it tells little apart."""

from report_page import page_of, words
from run_builder import METRICS, RUBRIC, run, verdict

ALL_FIVES = dict.fromkeys(METRICS, 5) | {"crisis_handling": None}


def test_the_judge_its_remarks_and_what_scores_are_not_stand_at_the_top():
    page = page_of(run([verdict("a", 1)], judge="mini-1:q8", remarks=("Never trained for judging.",)))
    top = words(page.by_class("top")[0])
    for part in ("mini-1:q8", "Never trained for judging.", "certify nothing"):
        assert part in top


def test_provenance_names_lane_rubric_hash_settings_and_versions():
    view = run([verdict("a", 1, provenance={"build": "b1"})], settings={"window": "none"}, contract="compact")
    facts = words(page_of(view).by_id("provenance")) + words(page_of(view).all("table")[-1])
    for part in ("compact", RUBRIC.hash, '"window": "none"', "0.1.0", '"build": "b1"'):
        assert part in facts


def test_a_judge_that_gives_only_top_scores_is_warned_of():
    page = page_of(run([verdict("a", n, ALL_FIVES) for n in range(1, 11)]))
    warnings = [words(p) for p in page.all("section")[-3].by_class("boxed")]
    assert warnings[0] == (
        "Empathy: 100 % of 10 scores are 5, the top of the scale; 100 % are 4 or more. "
        "The judge hardly tells these replies apart."
    )
    assert len(warnings) == 5


def test_a_judge_that_gives_one_score_everywhere_is_warned_of():
    page = page_of(run([verdict("a", n, {"empathy": 1}) for n in range(1, 7)]))
    assert "Empathy: 100 % of 6 scores are 1. The judge hardly tells these replies apart." in words(page)


def test_undefined_correlations_give_their_reason():
    page = page_of(run([verdict("a", n) for n in range(1, 5)]))
    assert "undefined:the lengths do not vary" in words(page)
