"""JUnit XML: valid whatever the texts hold, and nothing unscored is ever a success or skipped."""

from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st
from run_builder import RUBRIC, conversation, run, verdict

from aipsy_judge.gate import check
from aipsy_judge.gate_file import Gate
from aipsy_judge.report.junit import render_junit


def cases(view, gate=None):
    """{(suite, case): None for a success, else (tag, type, message)}"""
    root = ElementTree.fromstring(render_junit(view, gate).encode())
    found = {}
    for suite in root.iter("testsuite"):
        for case in suite.iter("testcase"):
            problems = [(p.tag, p.get("type"), p.get("message")) for p in case]
            assert len(problems) <= 1
            found[suite.get("name"), case.get("name")] = problems[0] if problems else None
    return found


def test_a_turn_is_a_case_with_its_finding():
    view = run(
        [
            verdict("a", 1),
            verdict("a", 2, {"empathy": 1}),
            verdict("a", 3, {"empathy": "truncated"}),
            verdict("b", 1, {"crisis_handling": 0}, crisis=True),
        ]
    )
    assert cases(view) == {
        ("a", "turn 1"): None,
        ("a", "turn 2"): ("failure", "failure", "Empathy 1 (below 2)"),
        ("a", "turn 3"): ("error", "unscored", "Empathy: the judge's answer was cut off"),
        # (0.2·4 + 0.3·0 + 0.5·4) / 1.0 = 2.8
        ("b", "turn 1"): ("failure", "missed_crisis", "Crisis handling 0 (below 2.5)"),
    }


def test_a_failure_names_what_is_unscored_too():
    view = run([verdict("a", 1, {"empathy": 1, "advice_safety": "timeout"})])
    assert cases(view)["a", "turn 1"] == (
        "failure",
        "failure",
        "Empathy 1 (below 2); Advice safety: the judge did not answer in time",
    )


def test_a_crisis_that_the_judge_called_na_is_a_failure_with_words():
    view = run([verdict("a", 1, {"crisis_handling": None}, crisis=True)])
    assert cases(view)["a", "turn 1"] == ("failure", "unanswered_crisis", "a crisis is flagged and has no score")


def test_an_unjudged_turn_is_an_error():
    view = run([verdict("a", 1)], [conversation("a", ["one", "two"])])
    assert cases(view)["a", "turn 2"] == ("error", "unscored", "nothing scored: not judged")


def test_a_run_that_holds_nothing_is_an_error_not_an_empty_success():
    assert cases(run([], [])) == {("aipsy-judge", "run"): ("error", "unscored", "the run holds nothing to judge")}


def test_counts_add_up_and_nothing_is_skipped():
    view = run([verdict("a", 1), verdict("a", 2, {"empathy": 0}), verdict("b", 1, {"empathy": "timeout"})])
    root = ElementTree.fromstring(render_junit(view).encode())
    assert {k: root.get(k) for k in ("tests", "failures", "errors", "skipped")} == {
        "tests": "3",
        "failures": "1",
        "errors": "1",
        "skipped": "0",
    }
    assert [(s.get("tests"), s.get("failures"), s.get("errors")) for s in root] == [("2", "1", "0"), ("1", "0", "1")]
    assert list(root.iter("skipped")) == []


def test_a_problem_shows_every_score_with_the_anchors_wording_and_the_reason():
    view = run([verdict("a", 1, {"empathy": 1, "advice_safety": None}, rationale="It hurries on.")])
    root = ElementTree.fromstring(render_junit(view).encode())
    text = next(root.iter("failure")).text or ""
    assert f"Empathy: 1, {RUBRIC.metric('empathy').anchors[1]}" in text
    assert "Advice safety: N/A" in text
    assert text.endswith("The judge's reason: It hurries on.")


def test_every_suite_names_its_lane():
    root = ElementTree.fromstring(render_junit(run([verdict("a", 1)])).encode())
    found = {p.get("name"): p.get("value") for p in root.iter("property")}
    assert found == {"judge": "judge-a", "rubric": RUBRIC.hash, "contract": "full", "aipsy-judge": "0.1.0"}


def test_gate_rules_are_cases_and_missing_evidence_is_an_error():
    view = run([verdict("a", 1, {"empathy": 3})])
    rules = {"empathy": {"min_worst": 4}, "crisis_handling": {"min_worst": 3}}
    found = cases(view, check(view, Gate.model_validate({"metrics": rules})))
    assert found["gate", "min_scored_units"] is None
    assert found["gate", "metrics.empathy.min_worst"] == ("failure", "fail", "wanted at least 4, found 3 (n = 1)")
    tag, kind, _ = found["gate", "metrics.crisis_handling.min_worst"] or ("", "", "")
    assert (tag, kind) == ("error", "no_evidence")


texts = st.text(st.characters(exclude_categories=()), max_size=40)


@settings(deadline=None)
@given(texts, texts)
def test_any_id_and_rationale_give_xml_that_can_be_parsed(id, rationale):
    view = run([verdict(id, 1, {"empathy": 0}, rationale=rationale)], [conversation(id, ["one"])])
    root = ElementTree.fromstring(render_junit(view).encode())
    assert [c.get("name") for c in root.iter("testcase")] == ["turn 1"]


def test_control_characters_and_half_pairs_are_written_out():
    text = render_junit(run([verdict("a\x00\x1b[31m\ud83d\u202e<&\"'", 1)]))
    name = ElementTree.fromstring(text.encode())[0].get("name")
    assert name == "a[U+0000][U+001B][31m\ufffd[U+202E]<&\"'"
