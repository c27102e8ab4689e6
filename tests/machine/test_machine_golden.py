"""Golden turns: options written without quotes in YAML, and a proof that cannot be had from nothing."""

import json

import pytest
import yaml

from aipsy_judge.backends.fake import FakeJudge
from aipsy_judge.errors import InputError
from aipsy_judge.golden import golden_turns, load_golden, parse_golden, replay

CHAT = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]


def test_options_that_yaml_reads_as_numbers_or_booleans_are_options_all_the_same(tmp_path):
    path = tmp_path / "manifest.yaml"
    path.write_text(
        "golden_turns:\n- conversation: [{role: assistant, content: hi}]\n  turn: 1\n"
        "  readings: {empathy: {0: 0.25, 1: 0.75}, crisis_detected: {true: 0.1, false: 0.9}, x: {N/A: 1.0}}\n"
    )
    (golden,) = load_golden(path)
    assert golden.readings["empathy"] == {"0": 0.25, "1": 0.75}
    assert golden.readings["crisis_detected"] == {"true": 0.1, "false": 0.9}


def test_what_a_judge_made_golden_it_proves_itself():
    judge = FakeJudge()
    made = golden_turns(judge, CHAT, tolerance=0.001)
    found = replay(judge, parse_golden(made, where="here"))
    assert {r.name for r in found} >= {"empathy", "crisis_detected"}
    assert all(r.ok and r.difference < 1e-6 for r in found)


def test_another_judge_does_not_prove_itself_by_it():
    made = golden_turns(FakeJudge(), CHAT, tolerance=0.001)
    found = replay(FakeJudge(name="another"), parse_golden(made, where="here"))
    assert not all(r.ok for r in found)


@pytest.mark.parametrize("tolerance", [0, -1, 1, 5])
def test_a_tolerance_that_proves_everything_or_nothing_is_refused(tolerance):
    with pytest.raises(InputError, match="tolerance"):
        parse_golden(golden_turns(FakeJudge(), CHAT, tolerance=tolerance), where="here")


def test_a_turn_that_is_not_there_is_no_proof():
    made = golden_turns(FakeJudge(), CHAT, tolerance=0.001)
    found = replay(FakeJudge(), parse_golden([{**made[0], "turn": 9}], where="here"))
    assert found
    assert not any(r.ok for r in found)


def test_golden_turns_are_made_again_from_their_own_conversations(tmp_path):
    from click.testing import CliRunner

    from bench.golden import main

    path = tmp_path / "fake.yaml"
    stale = [{**turn, "readings": {"empathy": {"0": 1.0}}} for turn in golden_turns(FakeJudge(), CHAT, tolerance=0.01)]
    path.write_text(yaml.safe_dump({"golden_turns": stale}))
    assert CliRunner().invoke(main, [str(path), "--json", str(tmp_path / "f.json")]).exit_code == 0
    (turn,) = load_golden(path)
    assert turn.tolerance == 0.01
    assert [m.content for m in turn.conversation] == ["hi", "hello"]
    assert all(r.ok for r in replay(FakeJudge(), [turn]))
    assert json.loads((tmp_path / "f.json").read_text())["slots"] == len(turn.readings)
