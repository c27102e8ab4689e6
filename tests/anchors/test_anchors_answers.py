"""What a filled row means, cell by cell, and which rows contradict themselves."""

import pytest
from anchors_setup import GOOD, RUBRIC

from aipsy_judge.anchors.answers import Answer, read_answers
from aipsy_judge.anchors.fields import SETTLED, fields

FIELDS = fields(RUBRIC)


def read(settles=False, **changed):
    """The answers as {field: score, or "na"}, and the faults."""
    faults = []
    cells = {name: str(text) for name, text in {**GOOD, **changed}.items()}
    found = read_answers(cells, FIELDS, faults.append, settles=settles)
    return {name: "na" if a == Answer(None) else a.score for name, a in found.items()}, faults


def test_a_good_row_word_by_word():
    answers, faults = read()
    assert faults == []
    assert answers == {
        "crisis_detected": 0.0,
        "crisis_severity": 0.0,  # no crisis: the level that means none
        "empathy": 4.0,
        "tone_consistency": "na",
        "crisis_handling": "na",  # hangs on the flag
        "advice_safety": 2.0,
        "boundary_safety": "na",
    }  # affective_complexity was left empty: missing


def test_empty_is_missing_and_neither_a_number_nor_n_a():
    answers, faults = read(**dict.fromkeys(GOOD, ""))
    assert (answers, faults) == ({}, [])


@pytest.mark.parametrize(("text", "score"), [("0", 0.0), ("5", 5.0), ("N/A", "na"), ("n/a", "na"), ("NA", "na")])
def test_answers_of_a_metric(text, score):
    assert read(advice_safety=text)[0]["advice_safety"] == score


@pytest.mark.parametrize(
    "text",
    ["6", "-1", "4.5", "4,5", "4/5", "five", "5 ", "05", "+4", "1e0", "nan", "?", "–", "-", "N.A", "4 or 5", "٤"],
)
def test_what_is_not_on_the_scale_is_refused_and_never_rounded(text):
    answers, faults = read(advice_safety=text)
    assert "advice_safety" not in answers
    assert len(faults) == 1
    assert "not one of 0, 1, 2, 3, 4, 5, N/A" in faults[0]


def test_n_a_is_refused_where_the_rubric_says_that_the_metric_always_applies():
    answers, faults = read(empathy="N/A")
    assert "empathy" not in answers
    assert faults == ["empathy is 'N/A', not one of 0, 1, 2, 3, 4, 5"]


@pytest.mark.parametrize("text", ["yes", "Yes", "TRUE", "1", "y"])
def test_a_flag_is_yes_in_these_words(text):
    answers, faults = read(crisis_detected=text, crisis_severity="Direct", crisis_handling="1")
    assert faults == []
    assert (answers["crisis_detected"], answers["crisis_severity"], answers["crisis_handling"]) == (1.0, 2.0, 1.0)


@pytest.mark.parametrize("text", ["maybe", "2", "x", "N/A"])
def test_a_flag_that_is_neither_is_refused_and_nothing_is_concluded_from_it(text):
    answers, faults = read(crisis_detected=text, crisis_handling=3)
    assert faults == [f"crisis_detected is {text!r}, not one of yes, no"]
    assert not {"crisis_detected", "crisis_severity"} & set(answers)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"crisis_handling": 3}, "crisis_detected is no, so that crisis_handling must be N/A or empty"),
        ({"crisis_severity": "direct"}, "crisis_detected is no, so that crisis_severity must be none or empty"),
        (
            {"crisis_detected": "yes", "crisis_handling": "N/A"},
            "crisis_detected is yes, so that crisis_handling cannot",
        ),
        (
            {"crisis_detected": "yes", "crisis_severity": "none"},
            "crisis_detected is yes, so that crisis_severity cannot",
        ),
        ({"crisis_detected": "", "crisis_handling": 3}, "crisis_detected, on which it hangs, is empty"),
        ({"crisis_detected": "", "crisis_severity": "direct"}, "crisis_detected, on which it hangs, is empty"),
    ],
)
def test_cells_that_contradict_each_other_are_a_fault(changed, said):
    _, faults = read(**changed)
    assert len(faults) == 1
    assert said in faults[0]


def test_a_set_flag_leaves_what_hangs_on_it_missing_where_it_is_empty():
    answers, faults = read(crisis_detected="yes")
    assert faults == []
    assert not {"crisis_severity", "crisis_handling"} & set(answers)


def test_a_severity_that_is_no_level_is_refused():
    _, faults = read(crisis_detected="yes", crisis_severity="severe", crisis_handling=2)
    assert faults == ["crisis_severity is 'severe', not one of none, indirect, direct"]


def test_in_adjudication_a_dash_says_nothing_and_what_was_agreed_on_is_not_held_against_the_rest():
    only = {**dict.fromkeys(GOOD, SETTLED), "crisis_handling": 2}
    assert read(settles=True, **only) == ({"crisis_handling": 2.0}, [])
    assert read(settles=False, **only)[1]


def test_a_long_scale_is_told_by_its_ends():
    long = RUBRIC.metrics[0].model_copy(update={"scale": RUBRIC.metrics[0].scale.model_copy(update={"maximum": 100})})
    rubric = RUBRIC.model_copy(update={"metrics": [long, *RUBRIC.metrics[1:]]})
    faults = []
    assert read_answers({"empathy": "101"}, fields(rubric), faults.append) == {}
    assert faults == ["empathy is '101', not one of 0 to 100"]
