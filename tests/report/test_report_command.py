"""`aipsy-judge report`: reports, JUnit XML and gates of stored runs."""

from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from report_page import read_page
from run_builder import conversation

from aipsy_judge.backends.fake import FakeJudge
from aipsy_judge.cli.report import command
from aipsy_judge.errors import InputError
from aipsy_judge.gate_file import gate_example
from aipsy_judge.runs_info import describe_run
from aipsy_judge.runs_store import open_run
from aipsy_judge.scoring import score_into


@pytest.fixture
def folder(tmp_path):
    judge = FakeJudge()
    with open_run(tmp_path / "run", describe_run(judge, rationale="never")) as run:
        score_into(run, judge, conversation("a", ["one", "two", "three"]))
    return tmp_path / "run"


def call(*args):
    return CliRunner().invoke(command, [str(a) for a in args], catch_exceptions=False)


def test_a_stored_run_is_reported_with_its_text(folder, tmp_path):
    result = call(folder, "--html", tmp_path / "r.html", "--junit", tmp_path / "r.xml")
    assert result.exit_code == 0
    assert len(read_page((tmp_path / "r.html").read_text()).by_class("judged")) == 3
    assert len(list(ElementTree.parse(tmp_path / "r.xml").iter("testcase"))) == 3
    assert (tmp_path / "r.html").stat().st_mode & 0o777 == 0o600


def test_the_gate_decides_the_exit_code_and_stands_in_the_junit_file(folder, tmp_path):
    gate = tmp_path / "gate.yaml"
    for limit, code in ((0, 0), (5, 1)):
        gate.write_text(f"max_missed_crises: null\nmetrics: {{empathy: {{min_worst: {limit}}}}}")
        result = call(folder, "--gate", gate, "--junit", tmp_path / "r.xml")
        assert result.exit_code == code
        assert ("NOT passed" in result.output) is (code == 1)
        assert "The run holds 3 turns of 1 conversation;" in result.output
    suites = [s.get("name") for s in ElementTree.parse(tmp_path / "r.xml").iter("testsuite")]
    assert suites == ["a", "gate"]


def test_the_gate_example_is_printed_whole():
    result = call("--gate-example")
    assert (result.exit_code, result.output) == (0, gate_example())


def test_a_run_without_a_score_exits_4(tmp_path):
    with open_run(tmp_path / "run", describe_run(FakeJudge(), rationale="never")):
        pass
    assert call(tmp_path / "run", "--html", tmp_path / "r.html").exit_code == 4


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "nothing to do"),
        (("--html", "r", "--junit", "r"), "the same file"),
        (("--html", "nowhere/r.html"), "its folder does not exist"),
        (("--gate", "gate.yaml", "--html", "gate.yaml"), "is an input"),
    ],
)
def test_what_cannot_be_written_is_told_before_anything_is_read(args, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        call("run", *args)
