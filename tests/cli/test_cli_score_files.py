"""`aipsy-judge score`: the files that it writes, and those that it does not overwrite."""

import json

import pytest
from given_answers import RUBRIC

from aipsy_judge.runs import load_run


def test_json_on_standard_output_is_strict_json_alone(run, opened, talk):
    ran = run("score", talk, "--json")
    data = json.loads(ran.out, parse_constant=pytest.fail)
    assert "Judge fake" in ran.err
    assert data["lane"]["judge"] == "fake"
    (conversation,) = data["conversations"]
    assert [v["turn"] for v in conversation["verdicts"]] == [1, 2]
    total = sum(data["coverage"][k] for k in ("scored", "not_applicable", "unscored"))
    assert total == 12


def test_a_json_result_reads_back_as_the_same_verdicts_as_the_run_folder(run, opened, talk, tmp_path):
    run("score", talk, "--json", tmp_path / "r.json", "--out", tmp_path / "run")
    assert load_run(tmp_path / "r.json").verdicts == load_run(tmp_path / "run").verdicts
    assert load_run(tmp_path / "r.json").rubric == RUBRIC


def test_json_does_not_overwrite_a_transcript_given_after_it_by_mistake(run, opened, talk, tmp_path):
    other = tmp_path / "other.json"
    before = talk.read_bytes()
    other.write_bytes(before)
    ran = run("score", "--json", other, talk)
    assert ran.code == 2
    assert "not overwritten" in ran.err
    assert other.read_bytes() == before
    assert opened == []


def test_json_overwrites_an_earlier_result_of_its_own(run, opened, talk, tmp_path):
    for _ in range(2):
        assert run("score", talk, "--json", tmp_path / "r.json").code == 0


@pytest.mark.parametrize("option", ["--html", "--junit"])
def test_no_output_overwrites_an_input(run, opened, talk, option):
    ran = run("score", talk, option, talk)
    assert ran.code == 2
    assert "is an input" in ran.err
    assert opened == []


@pytest.mark.parametrize("option", ["--html", "--json", "--junit"])
def test_an_output_that_cannot_be_written_is_refused_before_a_judge_is_opened(run, opened, talk, option):
    ran = run("score", talk, option, "/no/such/folder/x.json")
    assert ran.code == 2
    assert "/no/such/folder/x.json" in ran.err
    assert opened == []


def test_two_outputs_of_one_name_are_refused(run, opened, talk, tmp_path):
    assert run("score", talk, "--json", tmp_path / "x", "--html", tmp_path / "x").code == 2
    assert opened == []


def test_every_written_file_is_for_its_owner_alone(run, opened, talk, tmp_path):
    run("score", talk, "--json", tmp_path / "r.json", "--html", tmp_path / "r.html")
    assert {(tmp_path / n).stat().st_mode & 0o777 for n in ("r.json", "r.html")} == {0o600}
