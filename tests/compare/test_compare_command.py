"""`aipsy-judge compare`: exit codes, what is printed and what is written."""

import json

import pytest
from click.testing import CliRunner
from run_builder import conversation

from aipsy_judge.backends.fake import FakeJudge
from aipsy_judge.cli.compare import command
from aipsy_judge.errors import InputError, LaneError
from aipsy_judge.runs_info import describe_run
from aipsy_judge.runs_store import open_run
from aipsy_judge.scoring import score_into

IDS = ("one", "two", "three")


def judged(folder, mark, ids=IDS, **judge):
    """A run of three turns a conversation, its replies told apart by `mark`."""
    fake = FakeJudge(**judge)
    with open_run(folder, describe_run(fake, rationale="never")) as run:
        for id in ids:
            score_into(run, fake, conversation(id, [f"{mark} {id} {n}" for n in range(3)]))
    return str(folder)


@pytest.fixture
def folders(tmp_path):
    return judged(tmp_path / "base", "before"), judged(tmp_path / "new", "after")


def call(*args):
    return CliRunner().invoke(command, [str(a) for a in args], catch_exceptions=False)


def test_a_run_compared_with_itself_is_not_worse(folders):
    result = call(folders[0], folders[0], "--fail-if-worse")
    assert result.exit_code == 0
    assert "9 pairs from 3 conversations" in result.output
    assert "NEW is not shown to be worse." in result.output


def test_a_newly_missed_crisis_exits_1_only_when_asked(tmp_path):
    # Of the made-up judge's answers, the first mark under which a crisis is newly missed.
    base = judged(tmp_path / "base", "before")
    for n in range(50):
        new = judged(tmp_path / f"new{n}", f"after {n}")
        result = call(base, new, "--fail-if-worse")
        if "newly missed crises" in result.output:
            break
    assert result.exit_code == 1
    assert "NEW is worse:" in result.output
    assert call(base, new).exit_code == 0


def test_the_share_of_failing_turns_stands_in_the_table_and_what_it_is_below(folders):
    output = call(folders[0], folders[0]).output
    row = next(line.split() for line in output.splitlines() if line.strip().startswith("failing"))
    assert row[1] == row[2]
    assert row[1].endswith("%")
    assert row[3] == "+0.0%"
    assert "above 0 NEW is worse" in output


def test_the_figures_are_written_as_json(folders, tmp_path):
    target = tmp_path / "out.json"
    assert call(*folders, "--json", target).exit_code == 0
    data = json.loads(target.read_text())
    assert (data["pairs"], data["lane"]["judge"]) == (9, FakeJudge().lane.judge)
    assert [d["metric"] for d in data["differences"]][:2] == ["composite", "empathy"]


def test_json_on_stdout_leaves_the_tables_to_stderr(folders):
    result = call(*folders, "--json", "-")
    assert json.loads(result.stdout)["pairs"] == 9
    assert "Paired by conversation id and turn" in result.stderr


def test_an_input_is_not_overwritten(folders, tmp_path):
    result_file = tmp_path / "result.json"
    result_file.write_text("{}")
    with pytest.raises(InputError, match="is an input"):
        call(folders[0], result_file, "--json", result_file)


def test_nothing_in_common_exits_4_and_1_when_asked(tmp_path):
    base, new = judged(tmp_path / "a", "x", ["left"]), judged(tmp_path / "b", "x", ["right"])
    assert call(base, new).exit_code == 4
    assert call(base, new, "--fail-if-worse").exit_code == 1


def test_what_is_no_run_is_an_input_error(folders, tmp_path):
    with pytest.raises(InputError):
        call(folders[0], tmp_path / "nowhere")


def test_unlike_settings_are_refused(folders, tmp_path):
    path = tmp_path / "new" / "run.json"
    data = json.loads(path.read_text())
    data["settings"] = {"rounding": "up"}
    path.write_text(json.dumps(data))
    with pytest.raises(LaneError, match="setting rounding"):
        call(*folders)


def test_a_negative_margin_is_refused(folders):
    assert call(*folders, "--margin", "-1").exit_code == 2
