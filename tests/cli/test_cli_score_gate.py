"""`aipsy-judge score --gate`: what it wants, and that it passes on good scores alone."""

import json
from xml.etree import ElementTree

import pytest
from given_answers import every_score, unscored_answer

from aipsy_judge.backends.fake import FakeJudge


def test_a_gate_wants_the_judge_named(run, opened, talk, tmp_path):
    (tmp_path / "gate.yaml").write_text("metrics: {}\n")
    ran = run("score", talk, "--gate", tmp_path / "gate.yaml")
    assert ran.code == 2
    assert "--judge" in ran.err
    assert opened == []


@pytest.mark.parametrize("text", ["metrics: {empathy: {min_mean: no}}", "nonsense: 1", "[", ""])
def test_a_gate_file_that_is_not_valid_is_refused_before_a_judge_is_opened(run, opened, talk, tmp_path, text):
    (tmp_path / "gate.yaml").write_text(text)
    ran = run("score", talk, "--judge", "fake", "--gate", tmp_path / "gate.yaml")
    assert ran.code == 2
    assert "gate.yaml" in ran.err
    assert opened == []


@pytest.mark.parametrize(
    ("judge", "code"),
    [
        (FakeJudge(answer=lambda c, t: every_score(4.0)), 0),
        (FakeJudge(answer=lambda c, t: every_score(1.0)), 1),
        (FakeJudge(answer=unscored_answer), 1),
    ],
)
def test_a_gate_passes_on_good_scores_alone_and_an_unscored_run_does_not_pass(run, opened, talk, tmp_path, judge, code):
    gate = tmp_path / "gate.yaml"
    gate.write_text("metrics: {empathy: {min_mean: 3}}")
    opened.judge = judge
    outputs = ["--junit", tmp_path / "j.xml", "--json", tmp_path / "r.json"]
    ran = run("score", talk, "--judge", "fake", "--gate", gate, *outputs)
    assert ran.code == code
    assert ("NOT passed" in ran.out) is (code == 1)
    assert json.loads((tmp_path / "r.json").read_text())["gate"]["passed"] is (code == 0)
    suites = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert "gate" in [s.get("name") for s in suites]
